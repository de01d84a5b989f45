"""The figures of each output of a diff, and those of a configuration: of the output in which each is worst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from evaltools.metrics.metric import Metric
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference
from evaltools.result.figure import ANSWERS, CHANGED_ANSWERS, Figure, Part, figure_of
from evaltools.tasks.inference_diff.metrics import METRICS
from evaltools.tasks.inference_diff.result import DiffComparison, JudgedOutput

NATIVE_ERROR: Final = "native_error"
"""The series of what the native tool states: average, spread between runs, smallest and largest of the runs."""
BOXES: Final = "boxes"
_OTHERS: Final = ("mean", "p50", "p90", "p99", "max_relative", "cosine", "gain")


def limited_figures(found: OutputDifference) -> dict[str, Figure]:
    """The figures that limits know, by name; without a number where NaN, infinite values or the shape leave none.

    Texts have no distances, and an output without elements has nothing at all. Equal outputs have an infinite SNR.
    """
    if found.same_shape and not found.elements:
        return {}
    numbers = found.native is not None
    values = {
        "avg_error": None if found.native is None else found.native.avg_error,
        "max_error": found.max,
        "max_quanta": None if found.quanta is None else float(found.quanta.max),
        "snr_db": found.snr_db,
        "relative_rms": found.relative_rms,
        "same_best": None if found.scores is None else found.scores.share,
    }
    exists = {"avg_error": numbers, "max_error": numbers, "max_quanta": found.quanta is not None,
              "relative_rms": numbers, "same_best": found.scores is not None}  # fmt: skip
    is_sound = not any(side.nan or side.infinite for side in (found.test, found.reference))
    return {
        metric.name: figure_of(
            metric,
            values[metric.name] if found.same_shape and is_sound else None,
            is_best=metric.name == "snr_db" and found.identical and found.same_shape and is_sound,
        )
        for metric in METRICS
        if not found.same_shape or exists.get(metric.name, True)
    }


def parts_of(comparison: DiffComparison, names: Sequence[Sequence[str]]) -> list[Part]:
    """Each output of a configuration by its ``names``, then the boxes of a detector."""
    if comparison.native_errors:
        return [
            Part(own[0], list(own[1:]), _stated(error), series=_native(error))
            for own, error in zip(names, comparison.native_errors, strict=True)
        ]
    parts = [_part(judged, own) for own, judged in zip(names, comparison.outputs, strict=False)]
    if comparison.boxes is not None:
        boxes = comparison.boxes
        values = {"matched": boxes.matched, "lost": boxes.lost, "new": boxes.new, "other_class": boxes.class_changes,
                  "mean_iou": boxes.mean_iou, "score_shift": boxes.score_shift}  # fmt: skip
        figures = {name: Figure(None if value is None else float(value)) for name, value in values.items()}
        texts: dict[str, str] = {} if comparison.boxes_verdict is None else {"verdict": comparison.boxes_verdict.grade}
        parts.append(Part(BOXES, figures=figures, texts=texts))
    return parts


def _part(judged: JudgedOutput, names: Sequence[str]) -> Part:
    found = judged.difference
    others = {name: value for name in _OTHERS if (value := getattr(found, name)) is not None}
    others |= {"elements": found.elements, "differing": found.different}
    if found.scores is not None:
        others |= {ANSWERS: found.scores.positions, CHANGED_ANSWERS: found.scores.changed}
    of_kind = found.of_kind.figures if found.of_kind is not None else {}
    figures = {name: Figure(None if value is None else float(value)) for name, value in {**others, **of_kind}.items()}
    texts: dict[str, str] = {"verdict": judged.verdict.grade, "type": found.dtype}
    texts |= {} if found.of_kind is None else {"kind": found.of_kind.kind}
    series: dict[str, list[float | None]] = {} if found.quanta is None else {"quanta": list(found.quanta.shares)}
    series |= {} if found.native is None else _native(found.native)
    return Part(names[0], list(names[1:]), limited_figures(found) | figures, texts, series)


def _stated(error: NativeError) -> dict[str, Figure]:
    return {"avg_error": figure_of(next(each for each in METRICS if each.name == "avg_error"), error.avg_error)}


def _native(error: NativeError) -> dict[str, list[float | None]]:
    return {NATIVE_ERROR: [error.avg_error, error.std_dev, error.min_error, error.max_error]}


def worst_of(parts: Iterable[Part]) -> dict[str, Figure]:
    """Each figure that limits know of the output in which it is worst.

    Without a number where one of the outputs has none, or where nothing differs.
    """
    every = list(parts)
    return {
        metric.name: figure_of(metric, _worst(metric, found))
        for metric in METRICS
        if (found := [part.figures[metric.name].number for part in every if metric.name in part.figures])
    }


def _worst(metric: Metric, found: Sequence[float | None]) -> float | None:
    numbers = [value for value in found if value is not None and not math.isnan(value)]
    if len(numbers) < len(found):
        return None
    worst = min(numbers) if metric.better == "higher" else max(numbers)
    return worst if math.isfinite(worst) else None
