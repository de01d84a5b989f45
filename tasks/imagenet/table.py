"""The figures of an ImageNet evaluation, for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.console import Console

from evaltools.metrics.metric import ABSENT
from evaltools.report.tables.cells import Said, p_value, print_said
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, metric_columns, speed_columns
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import Detail
from evaltools.tasks.imagenet import metrics
from evaltools.tasks.imagenet.changes import MOST_LISTED, answer_in_words, effect_in_words, worst_first
from evaltools.tasks.imagenet.result import ChangedAnswer, Comparison, ImagenetPart
from evaltools.text import printable


def print_figures(result: EvaluationResult, console: Console, detail: Detail) -> None:
    """Accuracy, agreement and speed, one row per configuration, and what changed; which pictures, with all detail."""
    part: ImagenetPart = result.part
    baseline = part.comparisons[0].baseline if part.comparisons else None
    if any(entry.status == "measured" for entry in result.configurations):
        _print_table(result, part, baseline, console)
        print_said(_said(part, baseline, detail), console)
        if detail == "all":
            _print_other_comparisons(part, baseline, console)


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
        return "" if share is ABSENT else _percent(share, 1)

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
            yield Said(comparison.other, f"{_changed(comparison)}{_hint(comparison, detail)}")
            for found in worst_first(comparison)[:MOST_LISTED] if detail == "all" else ():
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


def _hint(comparison: Comparison, detail: Detail) -> str:
    return "; --verbose lists them" if comparison.changed and detail != "all" else ""


def _in_words(found: ChangedAnswer) -> str:
    answers = f"{answer_in_words(found.baseline)}, now {answer_in_words(found.other)}"
    return f"{printable(found.example)} {effect_in_words(found)}: was {answers}; right: {printable(found.truth)}"


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def _print_other_comparisons(part: ImagenetPart, baseline: str | None, console: Console) -> None:
    for comparison in part.comparisons:
        if comparison.baseline == baseline:
            continue
        console.print(f"{comparison.other} against {comparison.baseline}: {_changed(comparison)}")
