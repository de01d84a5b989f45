"""Latency in quiet: one worker, nothing else of ours running, the configurations in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from evaltools.engine.preparation import Preparer
from evaltools.engine.task import Example, Prepared
from evaltools.errors import InferenceError
from evaltools.runtime import Session

_TENTH: Final = 10
_MOST: Final = 100


@dataclass(frozen=True)
class QuietTimes:
    """Times per configuration in microseconds, in order: of each ``invoke``, and of each last one with its reading."""

    examples: int = 0
    invokes_us: dict[str, list[int]] = field(default_factory=dict)
    run_and_read_us: dict[str, list[int]] = field(default_factory=dict)
    interrupted: bool = False


def examples_for_latency(examples: Sequence[Example], wanted: int | None) -> list[Example]:
    """``wanted`` of the examples, spread evenly; None: a tenth of them, at least 10 and at most 100.

    >>> [example.index for example in examples_for_latency([Example(index, "") for index in range(9)], 3)]
    [0, 4, 8]
    """
    count = len(examples)
    chosen = min(max(count // _TENTH, _TENTH), _MOST) if wanted is None else wanted
    chosen = min(chosen, count)
    return [examples[round(place * (count - 1) / max(1, chosen - 1))] for place in range(chosen)]


def measure_in_quiet(
    maker: Preparer,
    sessions: Mapping[str, Session],
    examples: Sequence[Example],
    invocations: int,
    on_example: Callable[[], None] = lambda: None,
) -> QuietTimes:
    """Run each example on every session, after one run of each that does not count; failures are left out.

    ``maker`` makes the inputs, between the runs. Ctrl-C ends it, and what was measured until then is kept.
    """
    invokes: dict[str, list[int]] = {name: [] for name in sessions}
    with_reading: dict[str, list[int]] = {name: [] for name in sessions}
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
                    invokes[name] += inference.invokes_us
                    with_reading[name].append(inference.invokes_us[-1] + inference.read_us)
            if turn:
                done += 1
                on_example()
    except KeyboardInterrupt:
        return QuietTimes(done, invokes, with_reading, interrupted=True)
    return QuietTimes(done, invokes, with_reading)
