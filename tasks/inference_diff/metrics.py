"""The metrics of an inference diff."""

from __future__ import annotations

from typing import Final

from evaltools.metrics.metric import Better, Metric


def _of_output(name: str, meaning: str, unit: str = "", better: Better = "lower", is_share: bool = False) -> Metric:
    return Metric(
        name,
        f"inference_diff: {meaning}",
        unit,
        better,
        is_share=is_share,
        may_be_negative=unit == "dB",
        of_reference=True,
        is_per_output=True,
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
