"""How the figures are shown: the native tool's lines and protobuf, a table for a person, sections of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from rich.console import Console

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency
from evaltools.metrics.metric import ABSENT
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.page.content.page import some_of
from evaltools.report.tables.cells import Said, p_value, print_said
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, metric_columns, speed_columns
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Number, Picture, Section, Table, Tone
from evaltools.task_kind import Detail
from evaltools.tasks.imagenet import metrics
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, ImagenetPart
from evaltools.tasks.shared.showing import next_steps
from evaltools.text import printable

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]

_MOST_LISTED: Final = 20
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


def print_figures(result: EvaluationResult, console: Console, detail: Detail) -> None:
    """Accuracy, agreement and speed, one row per configuration, and what changed; which pictures, with all detail."""
    part: ImagenetPart = result.part
    baseline = part.comparisons[0].baseline if part.comparisons else None
    if any(entry.status == "measured" for entry in result.configurations):
        _print_table(result, part, baseline, console)
        print_said(_said(part, baseline, detail), console)
        for comparison in part.comparisons if detail == "all" else ():
            if comparison.baseline != baseline:
                console.print(f"{comparison.other} against {comparison.baseline}: {_changed(comparison)}")


def _print_table(result: EvaluationResult, part: ImagenetPart, baseline: str | None, console: Console) -> None:
    """Print the figures, the most important ones on the left: accuracy, agreement, speed, proof."""
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    against = {comparison.other: comparison for comparison in part.comparisons if comparison.baseline == baseline}
    best, *others = metric_columns(metrics.METRICS, result)
    agrees, *flips = _flips(result, against)
    columns = [best, agrees, *speed_columns(result, reference), *others, *flips]
    print_columns([NAMES], ranked(columns), result.configurations, console)


def _flips(result: EvaluationResult, against: Mapping[str, Comparison]) -> list[Column[ConfigurationResult]]:
    """The cells about changed answers; empty where there is nothing to compare with."""

    def column(heading: str, cell: Callable[[Comparison], str]) -> Column[ConfigurationResult]:
        def of(configuration: ConfigurationResult) -> str:
            found = against.get(configuration.name)
            return "" if found is None else cell(found)

        return Column(heading, of)

    def agrees(configuration: ConfigurationResult) -> str:
        share = metrics.agreement(result, configuration) if configuration.name in against else ABSENT
        if share is ABSENT:
            return ""
        return "-" if share is None else f"{100 * share:.1f} %"

    return [
        Column("agrees", agrees),
        column("lost", lambda found: str(found.agreement.right_to_wrong)),
        column("gained", lambda found: str(found.agreement.wrong_to_right)),
        column("McNemar", lambda found: p_value(found.topk[0].p_value_holm) if found.topk else "-"),
    ]


def _said(part: ImagenetPart, baseline: str | None, detail: Detail) -> Iterator[Said]:
    """How many first answers changed, and which ones."""
    for comparison in part.comparisons:
        if comparison.baseline == baseline and comparison.agreement.same_top1 < comparison.agreement.example_count:
            hint = "; --verbose lists them" if comparison.changed and detail != "all" else ""
            yield Said(comparison.other, f"{_changed(comparison)}{hint}")
            for found in comparison.worst_first[:_MOST_LISTED] if detail == "all" else ():
                yield Said(comparison.other, _in_words(found))


def _changed(comparison: Comparison) -> str:
    """How many of the changed first answers were right before, are right now, or neither, and how many are ties."""
    found = comparison.agreement
    lost, gained, count = found.right_to_wrong, found.wrong_to_right, found.example_count - found.same_top1
    if not count:
        return f"none of {found.example_count} changed"
    text = f"{count} of {found.example_count} changed: {lost} lost, {gained} gained"
    text += f", {count - lost - gained} wrong both ways" if count > lost + gained else ""
    ties = f"{comparison.ties} {'is an exact tie' if comparison.ties == 1 else 'are exact ties'}"
    return f"{text}; {ties}" if comparison.ties else text


def _in_words(found: ChangedAnswer) -> str:
    answers = f"{found.baseline.in_words}, now {found.other.in_words}"
    return f"{printable(found.example)} {found.effect_in_words}: was {answers}; right: {printable(found.truth)}"


def sections(result: EvaluationResult) -> list[Section]:
    """Paired counts of each comparison, and for each a gallery of what changed."""
    part: ImagenetPart = result.part
    against_the_first = [entry for entry in part.comparisons if entry.baseline == part.comparisons[0].baseline]
    galleries: list[Block] = [_gallery(part, entry) for entry in against_the_first if entry.changed]
    paired: list[Block] = [_paired(part)] if part.comparisons else []
    return [
        Section("Lost and gained", paired, "accuracy"),
        Section("What changed", galleries, "changes"),
    ]


def _paired(part: ImagenetPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(part.comparisons):
        path, agreement = f"part/comparisons/{place}", comparison.agreement
        share = agreement.share
        for number, change in enumerate(comparison.topk):
            if change.k not in _SHOWN_K:
                continue
            of = f"{path}/topk/{number}"
            rows.append(
                [
                    f"{comparison.other} against {comparison.baseline}",
                    f"top-{change.k}",
                    Number(str(change.lost), change.lost, f"{of}/lost"),
                    Number(str(change.gained), change.gained, f"{of}/gained"),
                    Number(f"{100 * change.change:+.2f} points", change.change, f"{of}/change"),
                    f"[{100 * change.interval.low:+.2f}, {100 * change.interval.high:+.2f}]",
                    Number(p_value(change.p_value), change.p_value, f"{of}/p_value"),
                    Number(str(comparison.ties), comparison.ties, f"{path}/ties"),
                    Number(str(comparison.identical), comparison.identical, f"{path}/identical"),
                    "-" if share is None else Number(f"{100 * share:.4g} %", share),
                ]
            )
    columns = (
        "configuration", "figure", "lost", "gained", "change", "95 % interval", "McNemar", "ties", "identical",
        "same first answer",
    )  # fmt: skip
    below = "ties: another first answer, but one that has the best score as well on one of the sides"
    return Table("Pictures that changed sides", columns, rows, below)


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
