"""How the figures are shown: the native tool's lines and protobuf, sections of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.content import some_of
from evaltools.report.words.numbers import change, p_value
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Lines, Note, Number, Picture, Section, Table, Tone
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, ImagenetPart
from evaltools.tasks.shared.showing import next_steps

__all__ = ["fill", "lines", "next_steps", "sections"]

_MOST_SHOWN: Final = 24
_SHOWN_K: Final = (1, 5)
_TONES: Final[dict[str, Tone]] = {"lost": "bad", "gained": "good", "neither": ""}


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers as C++ streams print them, ``%g``, accuracies in float32; the preprocessing ``std_dev`` is always 0."""
    preprocessing, inference, classification = _figures(result, configuration)
    printed = [
        f"Num evaluation runs: {classification.topk.example_count}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev=0(us)",
        latency_line("Inference", inference),
    ]
    return printed + [
        f"Top-{k} Accuracy: {np.float32(accuracy):g}"
        for k, accuracy in enumerate(classification.topk.accuracies, start=1)
    ]


def fill(message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
    """Fill an ``EvaluationStageMetrics``.

    Field presence is the native tool's: every field of the inference latency, the preprocessing latency without
    ``std_deviation_us``, no ``total_latency``.
    """
    preprocessing, inference, classification = _figures(result, configuration)
    message.num_runs = classification.topk.example_count
    metrics = message.process_metrics.image_classification_metrics
    fill_latency(metrics.pre_processing_latency, preprocessing, with_std=False)
    fill_latency(metrics.inference_latency, inference)
    metrics.inference_metrics.num_inferences = classification.topk.example_count
    metrics.topk_accuracy_metrics.topk_accuracies.extend(classification.topk.accuracies)


def _figures(
    result: EvaluationResult, configuration: ConfigurationResult
) -> tuple[Latency, Latency | None, ClassificationMetrics]:
    """The figures that every measured configuration has."""
    part: ImagenetPart = result.part
    preprocessing = configuration.preprocessing_latency or part.data.preprocessing_latency
    return preprocessing, configuration.inference_latency, part.classified[configuration.name].metrics


def sections(result: EvaluationResult) -> list[Section]:
    """How many answers changed, paired counts of each comparison, and for each a gallery of what changed."""
    part: ImagenetPart = result.part
    against_the_first = [entry for entry in part.comparisons if entry.baseline == part.comparisons[0].baseline]
    galleries: list[Block] = [_gallery(part, entry) for entry in against_the_first if entry.changed]
    paired: list[Block] = [_paired(part)] if part.comparisons else []
    changed = [
        Note(entry.other, _changed(entry))
        for entry in against_the_first
        if entry.agreement.same_top1 < entry.agreement.example_count
    ]
    return [
        Section("Changed answers", [Lines(changed)] if changed else [], "first"),
        Section("Lost and gained", paired, "accuracy"),
        Section("What changed", galleries, "changes"),
    ]


def _changed(comparison: Comparison) -> str:
    """How many of the changed first answers were right before, are right now, or neither, and how many are ties."""
    found = comparison.agreement
    lost, gained, count = found.right_to_wrong, found.wrong_to_right, found.example_count - found.same_top1
    text = f"{count} of {found.example_count} answers changed: {lost} lost, {gained} gained"
    text += f", {count - lost - gained} wrong both ways" if count > lost + gained else ""
    ties = f"{comparison.ties} {'is an exact tie' if comparison.ties == 1 else 'are exact ties'}"
    return f"{text}; {ties}" if comparison.ties else text


def _paired(part: ImagenetPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(part.comparisons):
        path, agreement = f"part/comparisons/{place}", comparison.agreement
        share = agreement.share
        for number, found in enumerate(comparison.topk):
            if found.k not in _SHOWN_K:
                continue
            of = f"{path}/topk/{number}"
            interval = found.interval
            rows.append(
                [
                    f"{comparison.other} against {comparison.baseline}",
                    f"top-{found.k}",
                    Number(str(found.lost), found.lost, f"{of}/lost"),
                    Number(str(found.gained), found.gained, f"{of}/gained"),
                    Number(change(found.change, interval.low, interval.high, True), found.change, f"{of}/change"),
                    Number(p_value(found.p_value), found.p_value, f"{of}/p_value"),
                    Number(str(comparison.ties), comparison.ties, f"{path}/ties"),
                    Number(str(comparison.identical), comparison.identical, f"{path}/identical"),
                    "-" if share is None else Number(f"{100 * share:.4g} %", share),
                ]
            )
    columns = (
        "configuration", "figure", "lost", "gained", "change [95 %]", "McNemar", "ties", "identical",
        "same first answer",
    )  # fmt: skip
    below = "ties: another first answer, but one that has the best score as well on one of the sides"
    return Table("Pictures that changed sides", columns, rows, below, 2)


def _gallery(part: ImagenetPart, comparison: Comparison) -> Gallery:
    changed = comparison.worst_first
    count = comparison.agreement.example_count - comparison.agreement.same_top1
    shown = [_picture(part, comparison, found) for found in changed[:_MOST_SHOWN]]
    below = some_of(len(shown), count, "pictures")
    if len(changed) < count:
        below = f"{len(shown)} of {count} pictures shown, the first {len(changed)} in the JSON result"
    return Gallery(f"{count} pictures with another first answer: {comparison.other}", shown, below)


def _picture(part: ImagenetPart, comparison: Comparison, found: ChangedAnswer) -> Picture:
    return Picture(
        folder=part.data.images,
        name=found.example,
        effect=found.effect_in_words,
        tone=_TONES[found.effect],
        lines=(
            f"right: {found.truth}",
            f"{comparison.baseline}: {found.baseline.in_words}",
            f"{comparison.other}: {found.other.in_words}",
        ),
    )
