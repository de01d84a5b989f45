"""The figures of an ImageNet evaluation, for a person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from evaltools.report.table_cells import delegated, median, p_value, print_not_measured, speed, speed_heading
from evaltools.result.evaluation import Comparison, ConfigurationResult, EvaluationResult, LatencyComparison


def print_figures(result: EvaluationResult, console: Console) -> None:
    """Accuracy, agreement and speed, one row per configuration, and verdicts; then what could not be measured."""
    if any(entry.status == "measured" for entry in result.configurations):
        console.print(_figures(result))
        _print_verdicts(result, console)
        _print_other_comparisons(result, console)
    print_not_measured(result.configurations, console)


def _figures(result: EvaluationResult) -> Table:
    baseline = _baseline_name(result)
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    against = {comparison.other: comparison for comparison in result.comparisons if comparison.baseline == baseline}
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
        table.add_row(
            configuration.name,
            *_row(configuration, against.get(configuration.name), reference, result.latency_comparisons),
        )
    return table


def _row(
    configuration: ConfigurationResult,
    comparison: Comparison | None,
    reference: ConfigurationResult | None,
    latencies: Sequence[LatencyComparison],
) -> list[str]:
    latency = configuration.inference_latency
    if configuration.classification is None or latency is None or configuration.delegation is None:
        return ["-"] * 9
    row = [_accuracy(configuration, k) for k in (1, 5)]
    if comparison is None:
        row += ["", "", "", ""]
    else:
        agreement = comparison.agreement
        row += [_percent(agreement.share, 1), str(agreement.right_to_wrong), str(agreement.wrong_to_right)]
        row.append(p_value(comparison.topk[0].p_value_holm) if comparison.topk else "-")
    row += [median(latency), speed(configuration, reference, latencies)]
    return [*row, delegated(configuration)]


def _accuracy(configuration: ConfigurationResult, k: int) -> str:
    """In percent, with half the width of its 95 % interval."""
    assert configuration.classification is not None
    accuracies, intervals = configuration.classification.topk.accuracies, configuration.topk_intervals
    if len(accuracies) < k:
        return "-"
    width = f" ±{50 * (intervals[k - 1].high - intervals[k - 1].low):.2f}" if len(intervals) >= k else ""
    return f"{100 * accuracies[k - 1]:.2f}{width} %"


def _print_verdicts(result: EvaluationResult, console: Console) -> None:
    for comparison in result.comparisons:
        if comparison.baseline == _baseline_name(result) and comparison.verdict:
            console.print(f"{comparison.other}: top-1 {comparison.verdict}")


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def _baseline_name(result: EvaluationResult) -> str | None:
    return result.comparisons[0].baseline if result.comparisons else None


def _print_other_comparisons(result: EvaluationResult, console: Console) -> None:
    for comparison in result.comparisons:
        if comparison.baseline == _baseline_name(result):
            continue
        agreement = comparison.agreement
        line = (
            f"{comparison.other} against {comparison.baseline}: same top-1 for {agreement.same_top1} of "
            f"{agreement.example_count} ({_percent(agreement.share, 1)}), {agreement.right_to_wrong} right->wrong, "
            f"{agreement.wrong_to_right} wrong->right"
        )
        console.print(line)
