"""What a person sees on stderr: what ran, then the figures, then what needs attention."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.console import Console

from evaltools.report.tables.cells import delegate_name, drifts_in_words
from evaltools.report.tables.device import print_device_run
from evaltools.report.tables.execution import print_execution
from evaltools.report.tables.short_answers import print_answers
from evaltools.result.evaluation import (
    ConfigurationResult,
    DelegateUsed,
    DelegationProof,
    EvaluationResult,
)
from evaltools.task_kind import Detail, kind_of
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

Opened: TypeAlias = "ConfigurationResult | BenchmarkRow"
"""What is opened for an evaluation or a benchmark."""
_MOST_FAILURES: Final = 10
_LONGEST_PADDED: Final = 24


def describe_configuration(configuration: Opened) -> str:
    """One line: what ran this configuration, with proof, or why it was not measured."""
    if configuration.runtime is None:
        return f"not measured: {configuration.reason}"
    runtime, proof = configuration.runtime, configuration.delegation
    other = isinstance(configuration, ConfigurationResult) and configuration.other_model
    parts = [Path(other.file).name] if other else []
    parts += [f"{runtime.package} {runtime.version}", f"{runtime.kernels} kernels", _threads(configuration.num_threads)]
    if proof is None and not configuration.delegates:
        return ", ".join([*parts, "outputs loaded"])
    parts += [_delegate(delegate, proof) for delegate in configuration.delegates]
    if configuration.delegates and proof is not None and proof.cpu_operators:
        left = ", ".join(f"{name} x{count}" for name, count in list(proof.cpu_operators.items())[:4])
        parts.append(f"CPU keeps {left}{', ...' if len(proof.cpu_operators) > 4 else ''}")
    if configuration.fallback:
        parts.append(f"FALLBACK: {configuration.fallback}")
    return ", ".join(parts)


def _threads(count: int) -> str:
    if count == -1:
        return "threads chosen by the runtime"
    return f"{count} thread{'' if count == 1 else 's'}"


def _delegate(delegate: DelegateUsed, proof: DelegationProof | None) -> str:
    if delegate.nodes is None and not delegate.evidence:
        return f"{delegate.name} not created"
    count = delegate.partitions
    partitions = "" if count is None else f" in {count} partition{'' if count == 1 else 's'}"
    total = "" if proof is None else f" of {proof.total_nodes}"
    nodes = "nodes not told" if delegate.nodes is None else f"{delegate.nodes}{total} nodes"
    return f"{delegate_name(delegate)} {nodes}{partitions}"


def print_configurations(configurations: list[ConfigurationResult], console: Console) -> None:
    """What each configuration runs on, one line each; below each other unless a name is long.

    Those that cannot be opened for the same reason share a line.
    """
    width = max(len(configuration.name) for configuration in configurations)
    for alike in _with_one_reason(configurations):
        first = alike[0]
        style = "bold red" if first.status == "not measured" or first.fallback else "none"
        names = ", ".join(entry.name for entry in alike)
        name = f"{names:<{width}} " if width <= _LONGEST_PADDED and len(alike) == 1 else f"{names}:"
        console.print(printable(f"{name} {describe_configuration(first)}"), style=style)


def _with_one_reason(configurations: Sequence[ConfigurationResult]) -> Collection[Sequence[ConfigurationResult]]:
    groups: dict[str, list[ConfigurationResult]] = {}
    for entry in configurations:
        groups.setdefault(f"reason {entry.reason}" if entry.runtime is None else f"name {entry.name}", []).append(entry)
    return groups.values()


def print_result(result: EvaluationResult, console: Console, detail: Detail = "figures") -> None:
    """The figures of the task, failures that they do not explain, warnings, and the answer."""
    if detail != "answer":
        kind_of(result.task).report.print_figures(result, console, detail)
    explained = [entry.name for entry in result.configurations if entry.status == "not measured"]
    failed = [failure for failure in result.failed if failure.configuration not in explained]
    for failure in failed[:_MOST_FAILURES]:
        where = f" ({failure.configuration})" if failure.configuration else ""
        console.print(printable(f"failed: {failure.example}{where}: {failure.reason}"))
    if len(failed) > _MOST_FAILURES:
        console.print(f"... and {len(failed) - _MOST_FAILURES} more failures, listed in the JSON result")
    print_execution(result, console, detail)
    if result.device_run is not None:
        print_device_run(result.device_run, console)
    if detail != "answer":
        for line in drifts_in_words(result.configurations):
            console.print(f"{line}. Ratios are of pairs, which hides most of it", style="yellow")
    for warning in result.warnings:
        console.print(f"warning: {printable(warning)}", style="yellow")
    print_answers(result, console, with_reasons=detail == "answer")
