"""Results of benchmarks made by hand."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields, replace

from evaltools.benchmark.conclude import Asked, result_of
from evaltools.metrics.interval import Interval
from evaltools.metrics.op_profile import Opening, OpProfile, OpTimes
from evaltools.result.facts import Environment, Load, Model
from evaltools.result.figure import Figure
from evaltools.result.result import ACCURACY, FRONT, STATE, Result, Row
from evaltools.result.rounds import Conditions, Measured, Memory, Phase, Round

QUIET = Conditions([0, 1], [], [], {})
PROFILE = OpProfile(
    "litert",
    2,
    [OpTimes("CONV_2D", "[conv]:0", 0, False, [70, 60]), OpTimes("SOFTMAX", "[out]:1", 1, False, [5, 0])],
    [80, 55],
)
_TIMES = ("latency_ms", "latency_average_ms", "first_run_ms", "latency_with_reading_ms", "load_ms")


class Sample(Struct, frozen=True):
    """A row with figures, and facts that it was not concluded from."""

    row: Row
    rounds: list[Round] = field(default_factory=list)
    profile: OpProfile | None = None
    profile_failure: str = ""

    @property
    def measured(self) -> Measured:
        return Measured(self.row, self.rounds, [], self.profile, self.profile_failure)


def a_round(warm_up: Phase, regular: Phase, load_us: int | None = 100) -> Round:
    """The three parts of opening take 100, 20 and 30 us, or are not told apart."""
    parts = (load_us, 20, 30) if load_us is not None else (None, None, None)
    memory = Memory(1000, 1500, 1600, 700, 1000, 1700, 1800)
    return Round(Opening(40, 155, *parts), warm_up, regular, memory, QUIET, QUIET, [], 2000)


def row(name: str, median_us: float, accuracy: float | None = None, model: int = 0, **more: Any) -> Sample:
    """The interval of the median reaches 10 % to both sides."""
    ms = median_us / 1000
    figures = {time: Figure(ms, "ms", "lower") for time in _TIMES}
    figures["latency_ms"] = Figure(ms, "ms", "lower", Interval(0.9 * ms, 1.1 * ms), count=1)
    if accuracy is not None:
        figures["top1"] = Figure(accuracy, better="higher", is_share=True, heading="top-1")
    counts = {"rounds": 0, "runs": 1}
    texts = {} if accuracy is None else {ACCURACY: "top1"}
    made = Row(
        name, command="benchmark", model=model, counts=counts, texts=texts, figures=figures, series={"invoke_us": []}
    )
    return changed(Sample(made), **more)


def changed(sample: Sample, interval: Interval | str | None = "", ratio: Figure | None = None, **more: Any) -> Sample:
    """With other facts; ``interval`` is that of the median in milliseconds, ``ratio`` by the first row's time."""
    of_sample = {name: more.pop(name) for name in [each.name for each in fields(Sample)] if name in more}
    sample, made = replace(sample, **of_sample), sample.row
    figures = dict(made.figures)
    if sample.rounds:
        figures |= {
            "peak_memory_mb": Figure(1800 / 1024, "MB", "lower"),
            "steady_memory_mb": Figure(1600 / 1024, "MB", "lower"),
        }
        times = [time for each in sample.rounds for time in each.regular.invokes_us]
        made = replace(made, counts={**made.counts, "rounds": len(sample.rounds)}, series={"invoke_us": times})
    if not isinstance(interval, str):
        withheld = "too few rounds" if interval is None else ""
        figures["latency_ms"] = replace(figures["latency_ms"], interval=interval, withheld=withheld)
    if ratio is not None:
        figures["latency_ratio"] = ratio
    changes = {"figures": figures, **more}
    if changes.get("status") == "not measured" and changes["figures"]:
        changes["texts"] = {**made.texts, STATE: "failed"}
    return replace(sample, row=replace(made, **changes))


def lost(sample: Sample, reason: str, **more: Any) -> Sample:
    """Not measured, without figures."""
    return changed(sample, **{"status": "not measured", "reason": reason, "figures": {}, **more})


def on_front(sample: Sample) -> Sample:
    return changed(sample, counts={**sample.row.counts, FRONT: 1})


def benchmark(*samples: Sample, sizes: tuple[int, ...] = (4_000_000,), **facts: Any) -> Result:
    """Of models a.tflite, b.tflite and so on; ``facts`` are those of what was asked for."""
    environment = Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, [], load=Load(2, 0.0, 0.0))
    models = [Model(f"models/{'abcdef'[number]}.tflite", "00", size, 1, [], []) for number, size in enumerate(sizes)]
    stopped = facts.pop("stopped", "")
    asked = Asked(**{"environment": environment, "options": {}, "models": models, **facts})
    rows = [replace(each.row, load=each.row.load or Load(2, 0.0, 0.0)) for each in samples]
    return result_of(asked, rows, [each.measured for each in samples], (), stopped)
