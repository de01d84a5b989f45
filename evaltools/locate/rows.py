"""The rows of a search: operators and outputs with their errors as figures, and what is known of them as texts.

Errors of quantised tensors are in steps of their scale, all others in the tensor's own unit.
"""

from __future__ import annotations

import math
import statistics
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.operators.answer import OperatorStatus
from evaltools.operators.judge import Limit
from evaltools.operators.part import TensorRuns
from evaltools.result.figure import Figure
from evaltools.result.result import Row
from evaltools.text import steps

COMPARED_BY_NAME: Final = "compared by name"
"""The answer where tensors were compared with others of the same name, so that nothing is tolerated."""
FLOAT_LAYER: Final = "float_layer.tflite"
"""The file of a bundle that has the model with one layer in float."""
SINGLE, ACCUMULATED = "single", "accumulated"
"""The error of an operator that runs by itself with the reference's inputs, and that in the whole model."""
IN_FLOAT: Final = "in_float_gain_db"
"""The figure of a layer: how much better the model is where only this one computes in float."""
RANK: Final = "keep_in_float"
"""The count of a layer that is worth keeping in float: 1 for the best."""


class Bundle(Struct, frozen=True):
    """What was written for others to reproduce it. ``printed`` is what its script printed, or why there is none."""

    folder: str
    files: tuple[str, ...]
    reproduced: bool
    printed: str

    @property
    def row(self) -> Row:
        """The same as a part of the row of the configuration."""
        texts = {"folder": self.folder, "files": ", ".join(self.files), "printed": self.printed}
        return Row("bundle", "bundle", counts={"reproduced": int(self.reproduced)}, texts=present(texts))


def operator_row(
    place: int, operator: str, tensor: str, status: OperatorStatus, why: str = "", ran_on: str = ""
) -> Row:
    """An operator of the main graph before its errors are known; ``tensor`` is its output that was furthest off."""
    texts = {"operator": operator, "tensor": tensor, "status": status, "why": why, "ran_on": ran_on}
    name = f"#{place} {operator}"
    return Row(name, "operator", "not measured", why or status, counts={"index": place}, texts=present(texts))


def cause_row(name: str, shown_by: str, remedy: str, link: str = "") -> Row:
    """A cause as a part of the row of what it explains."""
    return Row(name, "cause", texts=present({"shown_by": shown_by, "remedy": remedy, "link": link}))


def with_errors(row: Row, name: str, runs: TensorRuns, limit: Limit, in_steps: bool = False) -> Row:
    """The row with how far one tensor was off over all runs.

    ``name`` is the figure of the worst run's largest difference; others are those of the median run, the root mean
    square of the worst one divided by that of the reference, the share of runs ``beyond`` the limit, and the signal to
    noise in decibels. A value that is not finite is none. The count says which run was the first to give NaN or
    infinity where the reference has none.
    """
    unit, count = "steps" if in_steps else "", len(runs.largest)
    found = {
        name: replace(figure(runs.worst, unit), better="lower", count=count),
        f"{name}_median": figure(statistics.median(runs.largest), unit),
        f"{name}_relative": figure(runs.relative),
        f"{name}_beyond": Figure(limit.beyond(runs) / count, count=count, is_share=True),
        **figures("dB", **{f"{name}_sqnr_db": decibels(runs.relative)}),
    }
    strange = {} if runs.not_finite_run is None else {f"{name}_first_not_finite": runs.not_finite_run}
    return replace(
        row, status="measured", reason="", figures={**row.figures, **found}, counts={**row.counts, **strange}
    )


def decibels(relative: float | None) -> float | None:
    """Signal to noise in decibels of a relative error; None where that is nothing, or no number.

    >>> decibels(0.1), decibels(0.0)
    (20.0, None)
    """
    return -20 * math.log10(relative) if relative and math.isfinite(relative) else None


def figures(unit: str = "", /, **values: float | None) -> dict[str, Figure]:
    """A figure for each of these that is known."""
    return {name: figure(value, unit) for name, value in values.items() if value is not None}


def figure(value: float, unit: str = "", interval: Interval | None = None) -> Figure:
    """A figure without a value where that is not finite."""
    return Figure(value if math.isfinite(value) else None, unit, interval=interval)


def present(texts: dict[str, str]) -> dict[str, str]:
    """Those that say something."""
    return {name: text for name, text in texts.items() if text}


def index_of(row: Row) -> int:
    """The number of an operator."""
    return row.counts["index"]


def share(row: Row) -> float | None:
    """The error as a share of what is tolerated, above 1 beyond it; None where it was not run by itself."""
    if is_endless(row, SINGLE):
        return math.inf
    size, tolerance = row.value("size"), row.value("tolerance")
    if size is None or tolerance is None:
        return None
    return size / tolerance if tolerance else math.inf if size else 0.0


def is_endless(row: Row, name: str) -> bool:
    """Whether a tensor has NaN or infinite values, so that no number says how far off it is."""
    found = row.figures.get(name)
    return found is not None and (found.value is None or f"{name}_first_not_finite" in row.counts)


def error_in_words(row: Row, name: str) -> str:
    """The largest error with its unit, empty where nothing was compared.

    >>> error_in_words(Row("y", figures={"single": Figure(1.0, "steps")}), "single")
    '1 step'
    """
    found = row.figures.get(name)
    if found is None:
        return ""
    if found.value is None or is_endless(row, name):
        return "NaN or inf"
    worst = f"{found.value:.3g}"
    return steps(worst) if found.unit == "steps" else worst
