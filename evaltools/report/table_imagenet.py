"""The figures of an ImageNet evaluation, for a person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from evaltools.report.result import Comparison, ConfigurationResult, EvaluationResult
from evaltools.report.table_cells import delegated, median, print_not_measured, speed, speed_heading


def print_figures(result: EvaluationResult, console: Console) -> None:
    """Accuracy, agreement and speed, one row per configuration; then what could not be measured after all."""
    if any(entry.status == "measured" for entry in result.configurations):
        console.print(_figures(result))
        _print_other_comparisons(result, console)
    print_not_measured(result.configurations, console)


def _figures(result: EvaluationResult) -> Table:
    baseline = _baseline_name(result)
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    against = {comparison.other: comparison for comparison in result.comparisons if comparison.baseline == baseline}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in ("top-1", "top-5", "agrees", "lost", "gained", "p50", speed_heading(reference), "delegated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for configuration in result.configurations:
        table.add_row(configuration.name, *_row(configuration, against.get(configuration.name), reference))
    return table


def _row(
    configuration: ConfigurationResult, comparison: Comparison | None, reference: ConfigurationResult | None
) -> list[str]:
    classification, latency, proof = (
        configuration.classification,
        configuration.inference_latency,
        configuration.delegation,
    )
    if classification is None or latency is None or proof is None:
        return ["-"] * 8
    accuracies = classification.topk.accuracies
    row = [_percent(accuracies[k - 1] if len(accuracies) >= k else None, 2) for k in (1, 5)]
    if comparison is None:
        row += ["", "", ""]
    else:
        agreement = comparison.agreement
        row += [_percent(agreement.share, 1), str(agreement.right_to_wrong), str(agreement.wrong_to_right)]
    row += [median(latency), speed(configuration, reference)]
    return [*row, delegated(configuration)]


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
