"""What limits and baselines need of an inference diff."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evaltools.gates.criteria import LARGER_IS_BETTER, PER_OUTPUT
from evaltools.gates.evidence import Judged, OutputFigures
from evaltools.metrics.output_difference import OutputDifference
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.inference_diff.result import InferenceDiff


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """Those of the worst output that has such a figure; null where it is no number, or where nothing differs."""
    by_output = [values for _, values in _outputs(result, configuration)]
    found: dict[str, float | None] = {}
    for figure in sorted(PER_OUTPUT):
        values = [each[figure] for each in by_output if figure in each]
        if values:
            found[figure] = _worst(figure, values)
    return found


def _worst(figure: str, values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if len(numbers) < len(values):
        return None
    worst = min(numbers) if figure in LARGER_IS_BETTER else max(numbers)
    return worst if math.isfinite(worst) else None


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The figures of each output."""
    return Judged(outputs=_outputs(result, configuration))


def _outputs(result: EvaluationResult, configuration: ConfigurationResult) -> list[OutputFigures]:
    part: InferenceDiff = result.part
    compared = [entry for entry in part.comparisons if entry.configuration == configuration.name]
    tensors = result.model.outputs
    by_native_tool: list[OutputFigures] = [
        ((*(tensor.name for tensor in tensors[number : number + 1]), str(number)), {"avg_error": error.avg_error})
        for entry in compared
        for number, error in enumerate(entry.native_errors)
    ]
    differences = [output.difference for entry in compared for output in entry.outputs]
    return by_native_tool or [
        ((found.output, *(tensor.name for tensor in tensors[number : number + 1]), str(number)), _figures_of(found))
        for number, found in enumerate(differences)
    ]


def _figures_of(found: OutputDifference) -> Mapping[str, float | None]:
    """Those that such an output has: texts have no distances, an output without elements nothing at all."""
    if not found.same_shape:
        return dict.fromkeys(PER_OUTPUT)
    if not found.elements:
        return {}
    figures: dict[str, float | None] = {"snr_db": math.inf if found.identical else found.snr_db}
    if found.native is not None:
        figures |= {
            "avg_error": found.native.avg_error,
            "max_error": found.max,
            "relative_rms": found.relative_rms,
        }
    if found.quanta is not None:
        figures["max_quanta"] = float(found.quanta.max)
    sound = not any(side.nan or side.infinite for side in (found.test, found.reference))
    return figures if sound else dict.fromkeys(figures)


def examples(result: EvaluationResult) -> list[str]:
    """The same for two results of the same inputs."""
    part: InferenceDiff = result.part
    return [str(part.seed), *(used.source for used in part.inputs)]
