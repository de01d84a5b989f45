"""Times of operators as the native benchmark reports them: tables as text and as CSV, and a protobuf.

Layout, order and rounding are those of TSL's ``StatsCalculator`` and of TensorFlow Lite's summary formatter; shares are
computed in single precision where they are. The memory of an operator is not known and stands as 0, as the native tool
has it for all operators.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from google.protobuf import text_format
from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.op_profile import (
    Opening,
    OpFigures,
    OpProfile,
    OpTimes,
    by_time,
    by_type,
    op_figures,
    run_totals_us,
)
from evaltools.native.lines.stat_line import stat_line
from evaltools.proto import PROFILING, message_class

RUNS_HEADER: Final = "Operator-wise Profiling Info for Regular Benchmark Runs:"
INITIALIZATION_HEADER: Final = "Profiling Info for Benchmark Initialization:"
Steps = Sequence[tuple[str, int]]
"""What was done before the first run: names, as ``AllocateTensors``, and microseconds."""
TEXT: Final = "stdout"
CSV: Final = "csv"
PROTO: Final = "proto"
_TOP: Final = 10
_RULE: Final = "=" * 30
_OP_WIDTHS: Final = (40, 9, 9, 8, 8, 10, 9, 0)
_TEXT_HEAD: Final = ("[node type]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]", "[Name]")
_CSV_HEAD: Final = ("node type", "first", "avg_ms", "%", "cdf%", "mem KB", "times called", "name")
_TYPE_WIDTHS: Final = (40, 9, 10, 11, 11, 10, 9)
_TEXT_TYPE_HEAD: Final = ("[Node type]", "[count]", "[avg ms]", "[avg %]", "[cdf %]", "[mem KB]", "[times called]")
_CSV_TYPE_HEAD: Final = ("node type", "count", "avg_ms", "avg %", "cdf %", "mem KB", "times called")


class _Section(Struct, frozen=True):
    """One graph of a report."""

    graph: int
    name: str
    ops: list[OpTimes]


def profile_report(profile: OpProfile, steps: Steps, mode: str) -> str:
    """Both reports, about the initialisation and about regular runs; without ``steps`` the second alone.

    ``mode`` is the value of ``--op_profiling_output_mode``; titles and sums make its CSV no pure one, as in the native
    tool, whose log has one more line end behind the tables.
    """
    if mode == PROTO:
        return text_format.MessageToString(_message(profile, steps))
    initialization = _report(INITIALIZATION_HEADER, [_initialization(steps)], mode == CSV) if steps else ""
    return initialization + _report(RUNS_HEADER, _sections(profile), mode == CSV)


def profile_file(profile: OpProfile, steps: Steps, mode: str) -> bytes:
    """What stands in a file: the same, but the protobuf in binary."""
    if mode == PROTO:
        data: bytes = _message(profile, steps).SerializeToString()
        return data
    return profile_report(profile, steps, mode).encode()


def opening_steps(opening: Opening) -> Steps:
    """The steps of the runtime's initialisation, by the native tool's names.

    The interpreters apply XNNPACK while they allocate tensors; ``ModifyGraphWithDelegate`` is that of other delegates.

    >>> opening_steps(Opening(0, 12, 3, 0, 9))
    [('AllocateTensors', 9)]
    """
    steps = [("ModifyGraphWithDelegate", opening.delegates_us), ("AllocateTensors", opening.allocate_us)]
    return [(name, time) for name, time in steps if time]


def _message(profile: OpProfile, steps: Steps) -> Any:
    """A ``BenchmarkProfilingData``; averages, variances and deviations are whole numbers, as the native tool's.

    The minimum and the maximum are those of runs, also where an operator is called several times in one.
    """
    message = message_class("BenchmarkProfilingData", PROFILING)()
    if steps:
        _fill_sections(message.init_profile, [_initialization(steps)])
    _fill_sections(message.runtime_profile, _sections(profile))
    return message


def _sections(profile: OpProfile) -> list[_Section]:
    called = [_Section(each.graph, each.name, each.ops) for each in profile.called]
    return [_Section(0, profile.graph_name, profile.ops), *called]


def _initialization(steps: Steps) -> _Section:
    ops = [OpTimes(kind, f"{kind}/0", None, False, [time_us]) for kind, time_us in steps]
    return _Section(0, "", ops)


def _report(header: str, sections: Sequence[_Section], as_csv: bool) -> str:
    several = len(sections) > 1
    lines = [header]
    for number, section in enumerate(sections):
        subgraph = f"Subgraph (index: {section.graph}, name: {section.name}) " if number else ""
        if several:
            lines.append(f"{subgraph or f'Primary graph (name: {section.name}) '}profile:")
        lines += _tables(_merged(section.ops), as_csv)
        lines += _summary(section.ops, subgraph)
    return "\n".join([*lines, "", ""])


def _merged(ops: Sequence[OpTimes]) -> list[OpTimes]:
    """Operators by name, of which the native tool knows one each: XNNPACK's partitions use the same ones again."""
    found: dict[str, OpTimes] = {}
    for op in ops:
        known = found.get(op.name)
        found[op.name] = op if known is None else _together(known, op)
    return list(found.values())


def _together(first: OpTimes, second: OpTimes) -> OpTimes:
    return replace(
        first,
        times_us=[sum(times) for times in zip(first.times_us, second.times_us, strict=True)],
        calls_per_run=first.calls_per_run + second.calls_per_run,
        first_call_us=first.times_us[0] if first.first_call_us is None else first.first_call_us,
    )


def _tables(ops: Sequence[OpTimes], as_csv: bool) -> list[str]:
    total = sum(sum(op.times_us) for op in ops)
    head = _joined(_CSV_HEAD if as_csv else _TEXT_HEAD, _OP_WIDTHS, as_csv)
    runs = max((len(op.times_us) for op in ops), default=1)
    lines = []
    for title, chosen in (("Run Order", list(ops)), ("Top by Computation Time", by_time(ops)[:_TOP])):
        lines += [f"{_RULE} {title} {_RULE}", head]
        seen = 0
        for figures in op_figures(chosen, total):
            seen += figures.sum_us
            lines.append(_op_row(figures, _single_share(seen, total), as_csv))
        lines.append("")
    lines += [f"Number of nodes executed: {len(ops)}", f"{_RULE} Summary by node type {_RULE}"]
    return [*lines, *_type_rows(ops, runs, as_csv), ""]


def _single_share(part: int, whole: int) -> float:
    """Percent, ``(part * 100.0f) / whole``."""
    if whole == 0:
        return math.nan
    return float(np.float32(part) * np.float32(100) / np.float32(whole))


def _op_row(figures: OpFigures, cumulative: float, as_csv: bool) -> str:
    """In CSV commas in names become tabs; those in types stay, as in the native tool."""
    cells = [
        figures.op.type,
        _number(figures.first_us / 1000, as_csv),
        _number(figures.avg_us / 1000, as_csv),
        _share(figures.share, 7, as_csv),
        _share(cumulative, 7, as_csv),
        _number(0, as_csv),
        str(figures.times_called),
        figures.op.name.replace(",", "\t") if as_csv else figures.op.name,
    ]
    return _joined(cells, _OP_WIDTHS, as_csv)


def _type_rows(ops: Sequence[OpTimes], runs: int, as_csv: bool) -> list[str]:
    """All in single precision, ``cdf`` summed up in it."""
    types = by_type(ops, runs)
    whole = np.float32(sum(each.time_us for each in types))
    cumulative = np.float32(0)
    lines = [_joined(_CSV_TYPE_HEAD if as_csv else _TEXT_TYPE_HEAD, _TYPE_WIDTHS, as_csv)]
    for each in types:
        share = np.float32(each.time_us) / whole * np.float32(100) if whole else np.float32(math.nan)
        cumulative = np.float32(cumulative + share)
        cells = [
            each.type,
            str(each.count),
            _number(float(np.float32(each.time_us) / np.float32(1000)), as_csv),
            _share(float(share), 10, as_csv),
            _share(float(cumulative), 10, as_csv),
            _number(0, as_csv),
            str(each.times_called),
        ]
        lines.append(_joined(cells, _TYPE_WIDTHS, as_csv))
    return lines


def _number(value: float, as_csv: bool) -> str:
    return f"{value:g}" if as_csv else f"{value:.3f}"


def _share(value: float, width: int, as_csv: bool) -> str:
    return f"{value:g}%" if as_csv else f"{value:{width}.3f}%"


def _joined(cells: Sequence[str], widths: Sequence[int], as_csv: bool) -> str:
    """A row; in text each cell stands behind a tab, on the right of its column."""
    if as_csv:
        return ", ".join(cells)
    return "".join(f"\t{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _summary(ops: Sequence[OpTimes], subgraph: str) -> list[str]:
    return [
        f"{subgraph}Timings (microseconds): {stat_line(run_totals_us(ops), percentiles=False)}",
        "Memory (bytes): count=0",
        f"{len(_merged(ops))} nodes observed",
        "",
    ]


def _fill_sections(message: Any, sections: Sequence[_Section]) -> None:
    for section in sections:
        graph = message.subgraph_profiles.add()
        graph.subgraph_name = section.name
        graph.subgraph_index = section.graph
        for place, op in enumerate(_merged(section.ops)):
            _fill_op(graph.per_op_profiles.add(), op, place)


def _fill_op(message: Any, op: OpTimes, place: int) -> None:
    times = summarise_latency(op.times_us)
    calls = times.count * op.calls_per_run
    variance = sum(time * time for time in op.times_us) / times.count - times.avg_us**2 if times.count else 0
    message.node_type = op.type
    stat = message.inference_microseconds
    stat.first = times.first_us if op.first_call_us is None else op.first_call_us
    stat.last = times.last_us
    stat.avg = times.sum_us // calls if calls else 0
    stat.stddev = times.std_us
    stat.variance = int(max(0, variance))
    stat.min = times.min_us
    stat.max = times.max_us
    stat.sum = times.sum_us
    stat.count = calls
    memory = message.mem_kb
    memory.first = memory.last = memory.avg = memory.min = memory.max = memory.sum = 0
    memory.stddev = memory.variance = 0
    memory.count = calls
    message.times_called = op.calls_per_run
    message.name = op.name
    message.run_order = place
