"""The metrics of an inference diff: figures of each output."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from evaltools.metrics.metric import ABSENT, Better, Figure, Metric, present
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


def _of_output(
    name: str, meaning: str, read: Callable[[OutputDifference], Figure], unit: str = "", better: Better = "lower"
) -> Metric:
    return Metric(
        name,
        f"inference_diff: {meaning}",
        read,
        unit,
        better,
        may_be_negative=unit == "dB",
        of_reference=True,
        is_per_output=True,
        against_baseline="number",
    )


METRICS: Final = (
    _of_output(
        "avg_error", "mean absolute error as the native tool prints it (raw numbers of quantised outputs)", _avg_error
    ),
    _of_output("max_error", "largest absolute error, real units", _max_error),
    _of_output("max_quanta", "largest error of a quantised output in quanta", _max_quanta, "quanta"),
    _of_output("snr_db", "signal to noise, dB; no number where nothing differs", _snr_db, "dB", "higher"),
    _of_output("relative_rms", "RMS of the error by that of the reference", _relative_rms),
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
