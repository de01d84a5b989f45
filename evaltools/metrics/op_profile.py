"""Times of opening a session, and of operators: what a profiler saw, summed up as the native tool does.

Formulas: ``StatsCalculator`` of TSL. Times are whole microseconds; operators of called graphs are left out of all sums,
for the node that calls them has their time already.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct, field


class Opening(Struct, frozen=True):
    """What opening a session took, in microseconds.

    ``import_us``: loading the runtime's library, where that was not loaded yet; ``total_us``: all that follows. Of this
    ``load_us`` is reading the model and building the interpreter, ``delegates_us`` applying external delegates, and
    ``allocate_us`` allocating tensors, in which the interpreters apply XNNPACK; None where the runtime does not say
    them apart.
    """

    import_us: int
    total_us: int
    load_us: int | None = None
    delegates_us: int | None = None
    allocate_us: int | None = None


class OpTimes(Struct, frozen=True):
    """One operator over all profiled runs.

    ``type`` is the operator's name, ``name`` what stands in the native tool's table. ``node`` is its index in its graph
    where that is known; ``internal`` says that it ran in a delegate, which gave it its name and a number of its own and
    may run several for one node. ``times_us`` has the microseconds of each run in order, the sum where it is called
    several times in one; ``first_call_us`` is then only the first call.
    """

    type: str
    name: str
    node: int | None
    internal: bool
    times_us: list[int]
    calls_per_run: int = 1
    first_call_us: int | None = None


class CalledGraph(Struct, frozen=True):
    """A graph that nodes as WHILE and IF call: its number, its name, what ran in it."""

    graph: int
    name: str
    ops: list[OpTimes]


class OpProfile(Struct, frozen=True):
    """All operators of the graph that is run, in the order in which they were first seen. ``runs`` were profiled.

    ``runtime`` is what was profiled. ``invoke_us`` has the time of the graph as a whole in each of these runs, by the
    profiler's own clock; ``plain_us`` that of as many runs without the profiler, one before each, by Python's clock.
    ``called`` has the graphs that this one calls, whose time is in ``ops`` already; ``graph_name`` is its own name.
    """

    runtime: str
    runs: int
    ops: list[OpTimes] = field(default_factory=list)
    invoke_us: list[int] = field(default_factory=list)
    plain_us: list[int] = field(default_factory=list)
    called: list[CalledGraph] = field(default_factory=list)
    graph_name: str = ""


class OpFigures(Struct, frozen=True):
    """What the calls of one operator say together, in microseconds.

    ``avg_us`` is per call, ``share`` in percent.
    """

    op: OpTimes
    first_us: int
    avg_us: float
    share: float
    times_called: int
    sum_us: int


class TypeFigures(Struct, frozen=True):
    """All operators of one type: how many, their time per run in whole microseconds, calls per run."""

    type: str
    count: int
    time_us: int
    times_called: int


def total_us(profile: OpProfile) -> int:
    """The time of all operators in all runs.

    >>> total_us(OpProfile("", 2, [OpTimes("ADD", "[sum]:0", 0, False, [3, 4])]))
    7
    """
    return sum(sum(op.times_us) for op in profile.ops)


def run_totals_us(ops: Sequence[OpTimes]) -> list[int]:
    """The time of all operators in each run.

    >>> run_totals_us([OpTimes("ADD", "[a]:0", 0, False, [3, 4]), OpTimes("MUL", "[b]:1", 1, False, [10, 20])])
    [13, 24]
    """
    return [sum(times) for times in zip(*(op.times_us for op in ops), strict=True)]


def op_figures(ops: Sequence[OpTimes], of_us: int | None = None) -> list[OpFigures]:
    """The figures of operators in the order given; percentages are of ``of_us``, or else of them all together.

    ``avg = sum / (runs * calls)``; ``share = 100 * sum / of_us``, not a number where that is 0.

    >>> ops = [OpTimes("ADD", "[a]:0", 0, False, [2, 4]), OpTimes("MUL", "[b]:1", 1, False, [6, 12])]
    >>> [(each.avg_us, each.share) for each in op_figures(ops)]
    [(3.0, 25.0), (9.0, 75.0)]
    """
    whole = sum(sum(op.times_us) for op in ops) if of_us is None else of_us
    return [_figures(op, whole) for op in ops]


def by_time(ops: Sequence[OpTimes]) -> list[OpTimes]:
    """Operators by their average time of a call, longest first; those of equal times stay in their order."""
    return sorted(ops, key=_average_us, reverse=True)


def top_on_cpu(profile: OpProfile, count: int) -> list[OpTimes]:
    """The operators that ran outside any delegate, longest time of all runs first, at most ``count``.

    >>> profile = OpProfile("", 1, [OpTimes("ADD", "", 0, False, [1]), OpTimes("Add (ND)", "", None, True, [3])])
    >>> [op.type for op in top_on_cpu(profile, 5)]
    ['ADD']
    """
    outside = (op for op in profile.ops if not op.internal)
    return sorted(outside, key=lambda op: sum(op.times_us), reverse=True)[:count]


def explained_share(profile: OpProfile) -> float | None:
    """How much of a run the operators make up: the median of their sum by the time of the run. None without operators.

    It is well below 1 where a run is short, for the runtime's own work is then no small part of it, and delegates cut
    the times of their operators off to whole microseconds.

    >>> explained_share(OpProfile("", 2, [OpTimes("ADD", "[sum]:0", 0, False, [9, 6])], [10, 10]))
    0.75
    """
    if not profile.ops:
        return None
    pairs = zip(run_totals_us(profile.ops), profile.invoke_us, strict=True)
    shares = [total / whole for total, whole in pairs if whole]
    return statistics.median(shares) if shares else None


def slowdown(profile: OpProfile) -> float | None:
    """How many times as long a run takes with the profiler: the ratio of the medians. None where that is not known.

    Graphs that are called many times suffer most: the profiler asks for the memory in use around each call.

    >>> slowdown(OpProfile("", 2, [], [12, 12], [10, 10]))
    1.2
    """
    plain = statistics.median(profile.plain_us) if profile.plain_us else 0
    return statistics.median(profile.invoke_us) / plain if profile.invoke_us and plain else None


def by_type(ops: Sequence[OpTimes], runs: int) -> list[TypeFigures]:
    """The types of operators by time per run, longest first, then by name backwards.

    ``time = sum of int(op's sum / runs)``, so that types of many short operators lose most.

    >>> ops = [OpTimes("ADD", "[a]:0", 0, False, [2, 3]), OpTimes("ADD", "[b]:1", 1, False, [8, 8])]
    >>> by_type(ops, 2)
    [TypeFigures(type='ADD', count=2, time_us=10, times_called=2)]
    """
    names = sorted({op.type for op in ops})
    members = {name: [op for op in ops if op.type == name] for name in names}
    times = {name: sum(sum(op.times_us) // max(1, runs) for op in members[name]) for name in names}
    return [
        TypeFigures(name, len(members[name]), times[name], sum(op.calls_per_run for op in members[name]))
        for name in sorted(names, key=lambda each: (times[each], each), reverse=True)
    ]


def _figures(op: OpTimes, whole_us: int) -> OpFigures:
    total = sum(op.times_us)
    return OpFigures(
        op=op,
        first_us=op.times_us[0] if op.first_call_us is None else op.first_call_us,
        avg_us=_average_us(op),
        share=100 * total / whole_us if whole_us else math.nan,
        times_called=op.calls_per_run,
        sum_us=total,
    )


def _average_us(op: OpTimes) -> float:
    return sum(op.times_us) / (max(1, len(op.times_us)) * max(1, op.calls_per_run))
