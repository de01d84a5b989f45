"""Numbers and texts as they stand in the cells of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.console import Console

from evaltools.metrics.latency import Latency
from evaltools.result.evaluation import ConfigurationResult, LatencyComparison
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import is_clear
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

_SMALLEST_P: Final = 1e-9
_WIDEST_INTERVAL: Final = 3.0
"""Ends of an interval that are further apart than this, as a ratio, say nothing."""


def device_text(device: str, is_cpu: bool) -> str:
    """The device that ran a delegate, with a word where that is the CPU after all; empty where none is named."""
    return f" on {printable(device)}{' [software: this is the CPU]' if is_cpu else ''}" if device else ""


def delegated(configuration: ConfigurationResult | BenchmarkRow) -> str:
    """Nodes that ran on a delegate of all nodes, ``-`` where no delegate is in force."""
    proof = configuration.delegation
    return f"{proof.delegated_nodes}/{proof.total_nodes}" if proof and configuration.delegates else "-"


def speed_heading(baseline: ConfigurationResult | None) -> str:
    """The heading of the column with speeds: what they are compared with."""
    return "vs ref" if baseline is None or baseline.role == "reference" else f"vs {baseline.name}"


class Said(Struct, frozen=True):
    """What is said of a configuration."""

    configuration: str
    text: str
    style: str | None = None


def print_said(found: Iterable[Said], console: Console) -> None:
    """Print each sentence on a line of its own.

    A sentence that several configurations share is printed once, with all their names.
    """
    names: dict[tuple[str, str | None], list[str]] = {}
    for entry in found:
        names.setdefault((entry.text, entry.style), []).append(entry.configuration)
    for (text, style), of in names.items():
        console.print(printable(f"{', '.join(of)}: {text}"), style=style)


def print_steps(steps: Iterable[str], console: Console) -> None:
    """Print what to do next, each step once."""
    for step in dict.fromkeys(steps):
        console.print(printable(f"next: {step}"))


def median(latency: Latency) -> str:
    """The p50, the average where no single times are known, ``-`` where nothing was timed."""
    if not latency.count:
        return "-"
    return f"{milliseconds(latency.avg_us)} (average)" if latency.p50_us is None else milliseconds(latency.p50_us)


def milliseconds(microseconds: float) -> str:
    """Microseconds as milliseconds with three digits, never in scientific notation."""
    return f"{three_digits(microseconds / 1000)} ms"


def three_digits(number: float) -> str:
    """Three digits, more before the point where there are more.

    >>> three_digits(0.05312), three_digits(12345.6)
    ('0.0531', '12346')
    """
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def says_something(interval: Interval) -> bool:
    """Whether a factor or a time is known well enough that its ends are worth showing.

    >>> says_something(Interval(0.5, 1.4)), says_something(Interval(0.05, 50.0))
    (True, False)
    """
    return interval.low > 0 and interval.high / interval.low <= _WIDEST_INTERVAL


def speed(
    configuration: ConfigurationResult,
    reference: ConfigurationResult | None,
    comparisons: Sequence[LatencyComparison],
) -> str:
    """How many times as fast as the reference: on the same examples with its interval, else from the medians.

    From the averages where neither has a median. An interval that says nothing is left out. Empty where only medians of
    different places are known.
    """
    own = configuration.inference_latency
    base = reference.inference_latency if reference else None
    if reference is None or own is None or base is None or configuration is reference:
        return ""
    paired = [entry for entry in comparisons if (entry.baseline, entry.other) == (reference.name, configuration.name)]
    if paired:
        interval = paired[0].interval
        span = f" [{1 / interval.high:.2f}, {1 / interval.low:.2f}]" if interval and says_something(interval) else ""
        return f"{1 / paired[0].ratio:.2f}x{span}"
    if configuration.place != reference.place:
        return ""
    if own.p50_us is None and base.p50_us is None:
        return f"{base.avg_us / own.avg_us:.2f}x" if own.avg_us and base.count else ""
    return f"{base.p50_us / own.p50_us:.2f}x" if own.p50_us and base.p50_us is not None and base.count else ""


def p_value(p: float) -> str:
    """A p-value in a cell.

    >>> p_value(0.351), p_value(0.0004), p_value(1e-12)
    ('p 0.35', 'p 0.0004', 'p <1e-9')
    """
    if p < _SMALLEST_P:
        return f"p <{_SMALLEST_P:.0e}".replace("e-0", "e-")
    return f"p {p:.2g}"


def print_drift(configurations: Sequence[ConfigurationResult], console: Console) -> None:
    """Configurations whose times rose or fell while they were measured."""
    for configuration in configurations:
        drift = configuration.latency_drift
        if drift is not None and is_clear(drift):
            word = "rose" if drift.change > 0 else "fell"
            console.print(
                f"{configuration.name}: its times {word} by {100 * abs(drift.change):.0f} % while they were measured "
                f"({p_value(drift.p_value)}): the machine was not quiet. Ratios are of pairs, which hides most of it",
                style="yellow",
            )
