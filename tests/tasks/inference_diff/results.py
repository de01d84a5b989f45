"""A result of an inference diff made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from evaltools.gates.verdict import OutputVerdict
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference, Values
from evaltools.result.result import Result, Row
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import with_concluded
from evaltools.tasks.inference_diff.differences import concluded
from evaltools.tasks.inference_diff.page import WithReading
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    JudgedOutput,
    Variant,
)
from tests import results
from tests.results import row_with

VALUES = Values(0, 0, 0, -1.0, 1.0, False, False, 4)
DIFFERENCE = OutputDifference(
    output="scores",
    dtype="float32",
    kind="real",
    runs=4,
    elements=400,
    compared=400,
    different=40,
    native=NativeError(0.00123456789, 0.5, 0.001, 0.002),
    mean=0.0125,
    max=0.75,
    max_relative=None,
    p50=0.001,
    p90=0.002,
    p99=0.5,
    relative_rms=0.1,
    snr_db=20.0,
    cosine=0.9987654321,
    quanta=None,
    never_written=0,
    same_shape=True,
    test=VALUES,
    reference=VALUES,
    scores=None,
)
FAR_OFF = Verdict("diverged", "outputs", "reference", "scores", texts=["far off"])
REFERENCE_TIMES, TEST_TIMES = [2000] * 12, [1000] * 9 + [4000] * 3
FLOOR = replace(DIFFERENCE, mean=0.0001, p99=0.0002, max=0.0003, relative_rms=1e-7, snr_db=140.0, cosine=1.0)


def judged(
    difference: OutputDifference = DIFFERENCE,
    grade: Any = "diverged",
    in_boxes: bool = False,
    compared_with: tuple[str, ...] = (),
) -> JudgedOutput:
    verdict = OutputVerdict(grade, ["far off"])
    return JudgedOutput(difference, verdict, in_boxes, list(compared_with))


def comparison(name: str, *outputs: JudgedOutput, **changes: Any) -> DiffComparison:
    made = DiffComparison(name, list(outputs), None, None, None, [], None)
    return replace(made, **changes)


def configuration(name: str, times: list[int], role: str = "test") -> Row:
    return row_with(
        results.configuration(name, role),
        latency=summarise_latency(times),
        verdicts=[] if role == "reference" else [FAR_OFF],
    )


def result(
    *comparisons: DiffComparison,
    floor: tuple[OutputDifference, ...] = (),
    other_outputs: Sequence[str] = (),
    **changes: Any,
) -> Result:
    """``changes`` are those of everything that is not about one configuration."""
    reference = replace(configuration("reference", REFERENCE_TIMES, "reference"), delegates=[])
    tests = [configuration(entry.configuration, TEST_TIMES) for entry in comparisons]
    found = InferenceDiff(
        num_runs=4,
        seed=1,
        inputs=[],
        noise_floor_runs=2,
        noise_floor=[Variant(f"floor {place}", [], None, [entry], None) for place, entry in enumerate(floor)],
        comparisons=list(comparisons),
    )
    shown = comparisons[0].outputs if comparisons else []
    names = [(each.difference.output, f"tensor{place}", str(place)) for place, each in enumerate(shown)]
    times = {entry.name: WithReading(1500.0, 7000.0) for entry in (reference, *tests)}
    made = replace(results.result(reference, *tests), command="inference_diff", failed=[])
    return with_concluded(made, concluded(replace(found, **changes), names, other_outputs, times))
