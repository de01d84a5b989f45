"""The metrics of an inference diff: figures of each output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.metrics.output_difference import OutputDifference
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


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


METRICS: Final = (
    Metric(
        "avg_error",
        "inference_diff: mean absolute error as the native tool prints it (raw numbers of quantised outputs)",
        _avg_error,
        better="lower",
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
    ),
    Metric(
        "max_error",
        "inference_diff: largest absolute error, real units",
        _max_error,
        better="lower",
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
    ),
    Metric(
        "max_quanta",
        "inference_diff: largest error of a quantised output in quanta",
        _max_quanta,
        unit="quanta",
        better="lower",
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
    ),
    Metric(
        "snr_db",
        "inference_diff: signal to noise, dB; no number where nothing differs",
        _snr_db,
        unit="dB",
        better="higher",
        may_be_negative=True,
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
    ),
    Metric(
        "relative_rms",
        "inference_diff: RMS of the error by that of the reference",
        _relative_rms,
        better="lower",
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
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
    read = {metric.name: metric.read(found) for metric in METRICS}
    return {name: value if is_sound else None for name, value in read.items() if value is not ABSENT}


def outputs_of(
    result: EvaluationResult, configuration: ConfigurationResult
) -> list[tuple[Sequence[str], Mapping[str, float | None]]]:
    """The figures of each output of a configuration, with the names that it goes by."""
    if result.inference_diff is None:
        return []
    compared = [entry for entry in result.inference_diff.comparisons if entry.configuration == configuration.name]
    judged = [output for entry in compared for output in entry.outputs]
    tensors = result.model.outputs
    by_native_tool: list[tuple[Sequence[str], Mapping[str, float | None]]] = [
        ((*(tensor.name for tensor in tensors[number : number + 1]), str(number)), {"avg_error": error.avg_error})
        for entry in compared
        for number, error in enumerate(entry.native_errors)
    ]
    return by_native_tool or [
        (
            (output.difference.output, *(tensor.name for tensor in tensors[number : number + 1]), str(number)),
            output_figures(output.difference),
        )
        for number, output in enumerate(judged)
    ]
