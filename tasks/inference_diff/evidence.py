"""How limits and baselines read an inference diff."""

from __future__ import annotations

import math

from evaltools.metrics.metric import Metric
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged, OutputFigures
from evaltools.tasks.inference_diff.metrics import METRICS, output_figures
from evaltools.tasks.inference_diff.result import InferenceDiff
from evaltools.tasks.shared.conclusions import no_setup, task_name

subject = task_name
setup = no_setup


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """Each figure of the output in which it is worst; None where it is no number, or where nothing differs."""
    by_output = [values for _, values in _outputs(result, configuration)]
    found: dict[str, float | None] = {}
    for metric in METRICS:
        values = [each[metric.name] for each in by_output if metric.name in each]
        if values:
            found[metric.name] = _worst(metric, values)
    return found


def _worst(metric: Metric, values: list[float | None]) -> float | None:
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if len(numbers) < len(values):
        return None
    worst = min(numbers) if metric.better == "higher" else max(numbers)
    return worst if math.isfinite(worst) else None


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The figures of each output, and the time of each run."""
    part: InferenceDiff = result.part
    times = part.times.get(configuration.name)
    return Judged(outputs=_outputs(result, configuration), times_us=times.invokes_us if times is not None else ())


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
        ((found.output, *(tensor.name for tensor in tensors[number : number + 1]), str(number)), output_figures(found))
        for number, found in enumerate(differences)
    ]


def examples(result: EvaluationResult) -> list[str]:
    """Texts that identify the inputs: the seed, and where each input came from."""
    part: InferenceDiff = result.part
    return [str(part.seed), *(used.source for used in part.inputs)]
