"""Measures latency on a quiet machine: one worker, nothing else of evaltools running, the configurations in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.preparation import Preparer
from evaltools.engine.steps import Prepared, Record
from evaltools.errors import InferenceError
from evaltools.runtime import BlockSession

_TENTH: Final = 10
_MOST: Final = 100
_LOOK_AFTER: Final = 40
_GOLDEN: Final = 0.6180339887498949
Taken = Mapping[str, Sequence["QuietTime"]]


class QuietTime(Struct, frozen=True, gc=False):
    """The times of one example in microseconds: each ``invoke``, and the last one with the reading of its outputs.

    ``number`` is the example's. ``process`` numbers the processes of the configuration that ran examples in the quiet
    phase.
    """

    example: int
    invokes_us: tuple[float, ...]
    run_and_read_us: float
    process: int = 0


class QuietTimes(Struct, frozen=True):
    """The times of each configuration, by its name, in the order in which they were taken."""

    examples: int = 0
    taken: dict[str, list[QuietTime]] = field(default_factory=dict)
    interrupted: bool = False


def time_of(record: Record[Any]) -> QuietTime:
    """The times of an example in the pass, which is as quiet as a quiet phase where it has one worker."""
    return QuietTime(record.example, record.invokes_us, record.invokes_us[-1] + (record.read_us or 0.0))


def invoke_times(times: Iterable[QuietTime]) -> list[float]:
    """The time of each ``invoke``."""
    return [time for taken in times for time in taken.invokes_us]


def times_with_reading(times: Iterable[QuietTime]) -> list[float]:
    """The time from the last ``invoke`` of each example until its outputs are read."""
    return [taken.run_and_read_us for taken in times]


def examples_for_latency(examples: Sequence[int], wanted: int | None) -> list[int]:
    """``wanted`` of the examples, spread evenly; None: a tenth of them, at least 10 and at most 100.

    >>> examples_for_latency(range(9), 3)
    [0, 4, 8]
    """
    count = len(examples)
    chosen = min(max(count // _TENTH, _TENTH), _MOST) if wanted is None else wanted
    chosen = min(chosen, count)
    return [examples[round(place * (count - 1) / max(1, chosen - 1))] for place in range(chosen)]


def scattered(examples: Sequence[int]) -> list[int]:
    """The same examples in an order in which the first few are spread over all of them, however few these are.

    That of the fractional parts of multiples of the golden section.

    >>> scattered(range(9))
    [0, 5, 2, 7, 4, 1, 6, 3, 8]
    """
    return [examples[place] for place in sorted(range(len(examples)), key=lambda place: place * _GOLDEN % 1)]


def pooled(
    parts: Sequence[QuietTimes], are_same: Callable[[str, int], bool] = lambda _name, _part: False
) -> QuietTimes:
    """The times of several processes as one series, one process after the other.

    ``are_same`` takes a configuration's name and the number of a part, and says whether it ran there in the same
    process as in the first part.
    """
    together = QuietTimes(sum(part.examples for part in parts), {}, any(part.interrupted for part in parts))
    for number, part in enumerate(parts):
        for name, times in part.taken.items():
            earlier = together.taken.setdefault(name, [])
            first = 1 + max(each.process for each in earlier) if earlier and not are_same(name, number) else 0
            earlier.extend(replace(each, process=first + each.process) for each in times)
    return together


def measure_in_quiet(
    maker: Preparer,
    sessions: Mapping[str, BlockSession],
    examples: Sequence[int],
    invocations: int,
    on_example: Callable[[], None] = lambda: None,
    is_enough: Callable[[Taken], bool] | None = None,
) -> QuietTimes:
    """Run each example on every session, after one run of each that does not count. Failures are left out.

    ``maker`` makes the inputs between the runs. After 40 examples ``is_enough`` is asked, once, whether no more are
    needed: whoever looks often, until an interval is narrow, finds it too narrow. Ctrl-C ends it; what was measured
    until then is returned.
    """
    taken: dict[str, list[QuietTime]] = {name: [] for name in sessions}
    names = list(sessions)
    done = 0
    try:
        for turn, example in enumerate([*examples[:1], *examples]):
            prepared = maker.make([example])[0].prepared
            first = turn % max(1, len(names))
            for name in names[first:] + names[:first]:
                if not isinstance(prepared, Prepared):
                    break
                try:
                    inference = sessions[name].run(prepared.inputs, invocations)
                except InferenceError:
                    continue
                if turn:
                    with_reading = inference.invokes_us[-1] + inference.read_us
                    taken[name].append(QuietTime(example, inference.invokes_us, with_reading))
            if turn:
                done += 1
                on_example()
                if done == _LOOK_AFTER and is_enough is not None and is_enough(taken):
                    break
    except KeyboardInterrupt:
        return QuietTimes(done, taken, interrupted=True)
    return QuietTimes(done, taken)
