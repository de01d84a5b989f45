"""Numbers as they stand in tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from evaltools.metrics.latency import Latency
from evaltools.report.result import ConfigurationResult


def one_line(text: str) -> str:
    r"""A name from a file, safe to print: what is no printable character becomes ``?``.

    >>> one_line("two\nlines")
    'two?lines'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def device_text(device: str, is_cpu: bool) -> str:
    """The device that ran a delegate, with a word where that is the CPU after all; empty where none is named."""
    return f" on {one_line(device)}{' [software: this is the CPU]' if is_cpu else ''}" if device else ""


def delegated(configuration: ConfigurationResult) -> str:
    """Nodes that ran on a delegate of all nodes, ``-`` where no delegate is in force."""
    proof = configuration.delegation
    return f"{proof.delegated_nodes}/{proof.total_nodes}" if proof and configuration.delegates else "-"


def speed_heading(baseline: ConfigurationResult | None) -> str:
    """What the speeds are held against."""
    return "vs ref" if baseline is None or baseline.role == "reference" else f"vs {baseline.name}"


def print_not_measured(configurations: Sequence[ConfigurationResult], console: Console) -> None:
    """Configurations that could run, but have no figures after all, with the reason."""
    for configuration in configurations:
        if configuration.status == "not measured" and configuration.runtime is not None:
            console.print(f"{configuration.name} not measured: {configuration.reason}", style="bold red")


def median(latency: Latency) -> str:
    """The p50, ``-`` where nothing was timed."""
    return milliseconds(latency.p50_us) if latency.count else "-"


def milliseconds(microseconds: float) -> str:
    """Three digits, never in scientific notation."""
    milliseconds = microseconds / 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.3g} ms"


def speed(configuration: ConfigurationResult, reference: ConfigurationResult | None) -> str:
    """How many times as fast as the reference, from the medians."""
    own = configuration.inference_latency
    base = reference.inference_latency if reference else None
    if own is None or base is None or configuration is reference or not own.count or not base.count:
        return ""
    if not own.p50_us:
        return ""
    return f"{base.p50_us / own.p50_us:.2f}x"
