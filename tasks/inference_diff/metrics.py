"""The metrics of an inference diff: figures of each output."""

from __future__ import annotations

import math
from typing import Final

from evaltools.metrics.metric import ABSENT, Figure, Metric, present
from evaltools.metrics.output_difference import OutputDifference


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
    figures = present({metric.name: metric.read(found) for metric in METRICS})
    return figures if is_sound else dict.fromkeys(figures)
