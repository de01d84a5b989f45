"""What a person sees on stderr: what ran, then the figures, then what needs attention."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from evaltools.report.result import Comparison, ConfigurationResult, DelegateUsed, EvaluationResult


def describe_configuration(configuration: ConfigurationResult) -> str:
    """One line: what ran this configuration, with proof, or why it was not measured."""
    if configuration.runtime is None or configuration.delegation is None:
        return f"not measured: {configuration.reason}"
    runtime, proof = configuration.runtime, configuration.delegation
    parts = [f"{runtime.package} {runtime.version}", f"{runtime.kernels} kernels", _threads(configuration.num_threads)]
    if configuration.delegates:
        parts.append(_coverage(configuration))
    if configuration.delegates and proof.cpu_operators:
        left = ", ".join(f"{name} x{count}" for name, count in list(proof.cpu_operators.items())[:4])
        parts.append(f"CPU keeps {left}{', ...' if len(proof.cpu_operators) > 4 else ''}")
    if configuration.fallback:
        parts.append(f"FALLBACK: {configuration.fallback}")
    return ", ".join(parts)


def _threads(count: int) -> str:
    if count == -1:
        return "threads chosen by the runtime"
    return f"{count} thread{'' if count == 1 else 's'}"


def _coverage(configuration: ConfigurationResult) -> str:
    assert configuration.delegation is not None
    total = configuration.delegation.total_nodes
    return ", ".join(_delegate(delegate, total) for delegate in configuration.delegates)


def _delegate(delegate: DelegateUsed, total: int) -> str:
    if delegate.nodes is None:
        return f"{delegate.name} not created"
    partitions = f"{delegate.partitions} partition{'' if delegate.partitions == 1 else 's'}"
    added = "" if delegate.requested else " (added by the runtime)"
    return f"{delegate.name}{added} {delegate.nodes} of {total} nodes in {partitions}"


def print_configurations(configurations: list[ConfigurationResult], console: Console) -> None:
    """What each configuration runs on, one line each."""
    width = max(len(configuration.name) for configuration in configurations)
    for configuration in configurations:
        style = "bold red" if configuration.status == "not measured" or configuration.fallback else "none"
        line = f"{configuration.name:<{width}}  {describe_configuration(configuration)}"
        console.print(line, style=style)


def print_result(result: EvaluationResult, console: Console) -> None:
    """The table of figures, the comparisons between test configurations, failures and warnings."""
    if any(entry.status == "measured" for entry in result.configurations):
        console.print(_figures(result))
        _print_other_comparisons(result, console)
    for configuration in result.configurations:
        if configuration.status == "not measured" and configuration.runtime is not None:
            line = f"{configuration.name} not measured: {configuration.reason}"
            console.print(line, style="bold red")
    for failure in result.failed[:10]:
        where = f" ({failure.configuration})" if failure.configuration else ""
        console.print(f"failed: {failure.example}{where}: {failure.reason}")
    if len(result.failed) > 10:
        console.print(f"... and {len(result.failed) - 10} more failures, listed in the JSON result")
    for warning in result.warnings:
        console.print(f"warning: {warning}", style="yellow")


def _figures(result: EvaluationResult) -> Table:
    baseline = _baseline_name(result)
    role = next((entry.role for entry in result.configurations if entry.name == baseline), "reference")
    speed_heading = "vs ref" if role == "reference" else f"vs {baseline}"
    against = {comparison.other: comparison for comparison in result.comparisons if comparison.baseline == baseline}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in ("top-1", "top-5", "agrees", "lost", "gained", "p50", speed_heading, "delegated"):
        table.add_column(heading, justify="right", no_wrap=True)
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
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
    row += [_milliseconds(latency.p50_us), _speed(configuration, reference)]
    return [*row, f"{proof.delegated_nodes}/{proof.total_nodes}" if configuration.delegates else "-"]


def _percent(share: float | None, digits: int) -> str:
    return "-" if share is None else f"{100 * share:.{digits}f} %"


def _milliseconds(microseconds: float) -> str:
    """Three digits, never in scientific notation."""
    milliseconds = microseconds / 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"


def _speed(configuration: ConfigurationResult, reference: ConfigurationResult | None) -> str:
    own = configuration.inference_latency
    base = reference.inference_latency if reference else None
    if own is None or base is None or configuration is reference or not own.p50_us:
        return ""
    return f"{base.p50_us / own.p50_us:.2f}x"


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
