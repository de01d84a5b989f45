"""The figures of an ImageNet evaluation, for a person."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from evaltools.report.tables.cells import delegated, median, p_value, print_not_measured, speed, speed_heading
from evaltools.report.words.verdicts import change_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.imagenet.result import Classified, Comparison, ImagenetPart


def print_figures(result: EvaluationResult, console: Console) -> None:
    """Accuracy, agreement and speed, one row per configuration, and verdicts; then what could not be measured."""
    part: ImagenetPart = result.part
    baseline = part.comparisons[0].baseline if part.comparisons else None
    if any(entry.status == "measured" for entry in result.configurations):
        console.print(_figures(result, part, baseline))
        _print_verdicts(result, part, baseline, console)
        _print_other_comparisons(part, baseline, console)
    print_not_measured(result.configurations, console)


def _figures(result: EvaluationResult, part: ImagenetPart, baseline: str | None) -> Table:
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    against = {comparison.other: comparison for comparison in part.comparisons if comparison.baseline == baseline}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in (
        "top-1",
        "top-5",
        "agrees",
        "lost",
        "gained",
        "McNemar",
        "p50",
        speed_heading(reference),
        "delegated",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for configuration in result.configurations:
        row = _row(result, configuration, part.classified.get(configuration.name), against, reference)
        table.add_row(configuration.name, *row)
    return table


def _row(
    result: EvaluationResult,
    configuration: ConfigurationResult,
    classified: Classified | None,
    against: Mapping[str, Comparison],
    reference: ConfigurationResult | None,
) -> list[str]:
    latency, comparison = configuration.inference_latency, against.get(configuration.name)
    if classified is None or latency is None or configuration.delegation is None:
        return ["-"] * 9
    row = [_accuracy(classified, k) for k in (1, 5)]
    if comparison is None:
        row += ["", "", "", ""]
    else:
        agreement = comparison.agreement
        row += [_percent(agreement.share, 1), str(agreement.right_to_wrong), str(agreement.wrong_to_right)]
        row.append(p_value(comparison.topk[0].p_value_holm) if comparison.topk else "-")
    row += [median(latency), speed(configuration, reference, result.latency_comparisons)]
    return [*row, delegated(configuration)]


def _accuracy(classified: Classified, k: int) -> str:
    """In percent, with half the width of its 95 % interval."""
    accuracies, intervals = classified.metrics.topk.accuracies, classified.topk_intervals
    if len(accuracies) < k:
        return "-"
    width = f" ±{50 * (intervals[k - 1].high - intervals[k - 1].low):.2f}" if len(intervals) >= k else ""
    return f"{100 * accuracies[k - 1]:.2f}{width} %"


def _print_verdicts(result: EvaluationResult, part: ImagenetPart, baseline: str | None, console: Console) -> None:
    for configuration in result.configurations:
        for verdict in configuration.verdicts:
            if verdict.against == baseline:
                console.print(f"{configuration.name}: top-1 {change_in_words(verdict)}")
    for comparison in part.comparisons:
        if comparison.baseline == baseline and comparison.ties:
            others = comparison.agreement.example_count - comparison.agreement.same_top1
            ties = f"{comparison.ties} of them between equal best scores"
            console.print(f"{comparison.other}: {others} first answers differ, {ties}")


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def _print_other_comparisons(part: ImagenetPart, baseline: str | None, console: Console) -> None:
    for comparison in part.comparisons:
        if comparison.baseline == baseline:
            continue
        agreement = comparison.agreement
        line = (
            f"{comparison.other} against {comparison.baseline}: same top-1 for {agreement.same_top1} of "
            f"{agreement.example_count} ({_percent(agreement.share, 1)}), {agreement.right_to_wrong} right->wrong, "
            f"{agreement.wrong_to_right} wrong->right"
        )
        console.print(line)
