"""The metrics of an inference diff, and the figures of each output."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from evaltools.metrics.metric import ABSENT, Absent, Better, Figure, Metric, OutputNames, present
from evaltools.metrics.output_difference import OutputDifference
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.inference_diff.result import InferenceDiff

_READ: Final[dict[str, Callable[[OutputDifference], Figure]]] = {
    "avg_error": lambda found: ABSENT if found.native is None else found.native.avg_error,
    "max_error": lambda found: ABSENT if found.native is None else found.max,
    "max_quanta": lambda found: ABSENT if found.quanta is None else float(found.quanta.max),
    "snr_db": lambda found: math.inf if found.identical else found.snr_db,
    "relative_rms": lambda found: ABSENT if found.native is None else found.relative_rms,
    "same_best": lambda found: ABSENT if found.scores is None else found.scores.share,
}


def output_figures(found: OutputDifference) -> dict[str, float | None]:
    """The figures that an output has, by name; None where NaN, infinite values or the shape leave no number.

    Texts have no distances, and an output without elements has nothing at all. Equal outputs have an infinite SNR.
    """
    if not found.same_shape:
        return dict.fromkeys(_READ)
    if not found.elements:
        return {}
    is_sound = not any(side.nan or side.infinite for side in (found.test, found.reference))
    figures = present({name: read(found) for name, read in _READ.items()})
    return figures if is_sound else dict.fromkeys(figures)


def _outputs(
    result: EvaluationResult, configuration: ConfigurationResult
) -> list[tuple[OutputNames, dict[str, float | None]]]:
    part: InferenceDiff = result.part
    compared = [entry for entry in part.comparisons if entry.configuration == configuration.name]
    tensors = result.model.outputs
    by_native_tool: list[tuple[OutputNames, dict[str, float | None]]] = [
        ((*(tensor.name for tensor in tensors[number : number + 1]), str(number)), {"avg_error": error.avg_error})
        for entry in compared
        for number, error in enumerate(entry.native_errors)
    ]
    differences = [output.difference for entry in compared for output in entry.outputs]
    return by_native_tool or [
        ((found.output, *(tensor.name for tensor in tensors[number : number + 1]), str(number)), output_figures(found))
        for number, found in enumerate(differences)
    ]


def _of_outputs(
    name: str, result: EvaluationResult, configuration: ConfigurationResult
) -> list[tuple[OutputNames, Figure]]:
    return [(names, figures.get(name, ABSENT)) for names, figures in _outputs(result, configuration)]


def _worst(name: str, better: Better, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    """The figure of the output in which it is worst; None where it is not a number, or where nothing differs."""
    found = [value for _, value in _of_outputs(name, result, configuration) if not isinstance(value, Absent)]
    if not found:
        return ABSENT
    numbers = [value for value in found if value is not None and not math.isnan(value)]
    if len(numbers) < len(found):
        return None
    worst = min(numbers) if better == "higher" else max(numbers)
    return worst if math.isfinite(worst) else None


def _of_output(name: str, meaning: str, unit: str = "", better: Better = "lower", is_share: bool = False) -> Metric:
    return Metric(
        name,
        f"inference_diff: {meaning}",
        partial(_worst, name, better),
        unit,
        better,
        is_share=is_share,
        may_be_negative=unit == "dB",
        of_reference=True,
        of_outputs=partial(_of_outputs, name),
    )


METRICS: Final = (
    _of_output("avg_error", "mean absolute error as the native tool prints it (raw numbers of quantised outputs)"),
    _of_output("max_error", "largest absolute error, real units"),
    _of_output("max_quanta", "largest error of a quantised output in quanta", "quanta"),
    _of_output("snr_db", "signal to noise, dB; no number where nothing differs", "dB", "higher"),
    _of_output("relative_rms", "RMS of the error by that of the reference"),
    _of_output(
        "same_best", "share of the answers of scores with the same best class, 0..1", better="higher", is_share=True
    ),
)
