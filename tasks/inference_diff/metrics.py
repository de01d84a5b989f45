"""The metrics of an inference diff, figures of each output, and how limits and baselines read them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from evaltools.metrics.metric import ABSENT, Better, Figure, Metric, present
from evaltools.metrics.output_difference import OutputDifference
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged, OutputFigures
from evaltools.tasks.inference_diff.result import InferenceDiff
from evaltools.tasks.shared.showing import task_name


def _avg_error(found: OutputDifference) -> Figure:
    return ABSENT if found.native is None else found.native.avg_error


def _max_error(found: OutputDifference) -> Figure:
    return ABSENT if found.native is None else found.max


def _max_quanta(found: OutputDifference) -> Figure:
    return ABSENT if found.quanta is None else float(found.quanta.max)


def _snr_db(found: OutputDifference) -> Figure:
    return math.inf if found.identical else found.snr_db


def _relative_rms(found: OutputDifference) -> Figure:
    return ABSENT if found.native is None else found.relative_rms


def _same_best(found: OutputDifference) -> Figure:
    return ABSENT if found.scores is None else found.scores.share


def _of_output(
    name: str,
    meaning: str,
    read: Callable[[OutputDifference], Figure],
    unit: str = "",
    better: Better = "lower",
    is_share: bool = False,
) -> Metric:
    return Metric(
        name,
        f"inference_diff: {meaning}",
        read,
        unit,
        better,
        is_share=is_share,
        may_be_negative=unit == "dB",
        of_reference=True,
        is_per_output=True,
    )


METRICS: Final = (
    _of_output(
        "avg_error", "mean absolute error as the native tool prints it (raw numbers of quantised outputs)", _avg_error
    ),
    _of_output("max_error", "largest absolute error, real units", _max_error),
    _of_output("max_quanta", "largest error of a quantised output in quanta", _max_quanta, "quanta"),
    _of_output("snr_db", "signal to noise, dB; no number where nothing differs", _snr_db, "dB", "higher"),
    _of_output("relative_rms", "RMS of the error by that of the reference", _relative_rms),
    _of_output(
        "same_best",
        "share of the answers of scores with the same best class, 0..1",
        _same_best,
        better="higher",
        is_share=True,
    ),
)


def output_figures(found: OutputDifference) -> dict[str, float | None]:
    """The figures that an output has, by name; None where NaN, infinite values or the shape leave no number.

    Texts have no distances, and an output without elements has nothing at all. Equal outputs have an infinite SNR.
    """
    if not found.same_shape:
        return {metric.name: None for metric in METRICS}
    if not found.elements:
        return {}
    is_sound = not any(side.nan or side.infinite for side in (found.test, found.reference))
    figures = present({metric.name: metric.read(found) for metric in METRICS})
    return figures if is_sound else dict.fromkeys(figures)


subject = task_name


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """Each figure of the output in which it is worst; None where it is not a number, or where nothing differs."""
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


def inputs(result: EvaluationResult) -> dict[str, str]:
    """The runs, the seed, and where each input came from."""
    part: InferenceDiff = result.part
    given = {f"input {place}": used.source for place, used in enumerate(part.inputs)}
    return {"runs": str(part.num_runs), "seed": str(part.seed), **given}


def nan_outputs(result: EvaluationResult, configuration: ConfigurationResult) -> int:
    """Elements of outputs that are NaN or infinite, on either side."""
    part: InferenceDiff = result.part
    own = [entry for entry in part.comparisons if entry.configuration == configuration.name]
    found = [output.difference for entry in own for output in entry.outputs]
    sides = [side for difference in found for side in (difference.test, difference.reference)]
    return sum(side.nan + side.infinite for side in sides)
