"""Numbers and texts as tables, sentences and pages show them: each fact is put into words in one way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.console import Console

from evaltools.metrics.latency import Latency
from evaltools.metrics.metric import Metric
from evaltools.result.evaluation import ConfigurationResult, DelegateUsed, LatencyComparison
from evaltools.stats.interval import Interval
from evaltools.stats.latency import LatencyRatio, is_clear
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

NO_LATENCY: Final = "emulated: no latency"
_SMALLEST_P: Final = 1e-9
_LEAST_FACTOR: Final = 0.1
_WIDEST_INTERVAL: Final = 3.0
"""Ends of an interval that are further apart than this, as a ratio, say nothing."""


def device_text(device: str, is_cpu: bool) -> str:
    """The device that ran a delegate, with a word where that is the CPU after all; empty where none is named."""
    return f" on {printable(device)}{' [software: this is the CPU]' if is_cpu else ''}" if device else ""


def delegate_name(delegate: DelegateUsed) -> str:
    """A delegate with its device, and a word where nobody asked for it."""
    added = "" if delegate.requested else " (added by the runtime)"
    return f"{delegate.name}{added}{device_text(delegate.device, delegate.is_cpu)}"


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


def median_time(entry: ConfigurationResult) -> str:
    """The median of a configuration; of an emulated one the word that there is none."""
    if entry.inference_latency is None:
        return "emulated" if entry.is_emulated and entry.status == "measured" else "-"
    return median(entry.inference_latency)


def median(latency: Latency) -> str:
    """The p50, the average where no single times are known, ``-`` where nothing was timed."""
    if not latency.count:
        return "-"
    return f"{milliseconds(latency.avg_us)} (average)" if latency.p50_us is None else milliseconds(latency.p50_us)


def milliseconds(microseconds: float) -> str:
    """Microseconds as milliseconds with three digits, never in scientific notation."""
    return f"{three_digits(microseconds / 1000)} ms"


def megabytes(size_bytes: int) -> str:
    """The size of a file in millions of bytes.

    >>> megabytes(1234567)
    '1.23'
    """
    return f"{size_bytes / 1e6:.2f}"


def percent(share: float) -> str:
    """A share, 0..1, in percent.

    >>> percent(0.715)
    '71.50 %'
    """
    return f"{100 * share:.2f} %"


def figure_in_words(value: float | None, metric: Metric | None) -> str:
    """A figure with its unit, a share in percent.

    >>> figure_in_words(0.715, Metric("top1", "", lambda *_: 0.0, is_share=True)), figure_in_words(None, None)
    ('71.50 %', 'no number')
    """
    if value is None:
        return "no number"
    if metric is not None and metric.is_share:
        return percent(value)
    return f"{value:.4g} {metric.unit if metric is not None else ''}".rstrip()


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


def times_as_fast(factor: float, interval: Interval | None = None) -> str:
    """A factor with at least two digits, and its interval where that says something.

    >>> times_as_fast(1.25, Interval(1.1, 1.4)), times_as_fast(0.012, Interval(0.001, 9.0))
    ('1.25x [1.10, 1.40]', '0.012x')
    """
    ends = (interval.low, interval.high) if interval is not None and says_something(interval) else ()
    span = f" [{', '.join(map(_factor, ends))}]" if ends else ""
    return f"{_factor(factor)}x{span}"


def _factor(factor: float) -> str:
    return f"{factor:.2f}" if factor >= _LEAST_FACTOR else f"{factor:.2g}"


def paired_speed(found: LatencyComparison | LatencyRatio) -> str:
    """How many times as fast, of how many times as long, with its interval or the word for why it has none.

    >>> paired_speed(LatencyRatio(50, 0.5, None, withheld="jumped"))
    '2.00x [times jumped]'
    """
    interval = found.interval
    if interval is None and found.withheld == "jumped":
        return f"{times_as_fast(1 / found.ratio)} [times jumped]"
    if interval is None or not says_something(interval):
        return times_as_fast(1 / found.ratio)
    return times_as_fast(1 / found.ratio, Interval(1 / interval.high, 1 / interval.low))


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
        return paired_speed(paired[0])
    if configuration.place != reference.place:
        return ""
    if own.p50_us is None and base.p50_us is None:
        return times_as_fast(base.avg_us / own.avg_us) if own.avg_us and base.count else ""
    return times_as_fast(base.p50_us / own.p50_us) if own.p50_us and base.p50_us is not None and base.count else ""


def p_value(p: float) -> str:
    """A p-value in a cell.

    >>> p_value(0.351), p_value(0.0004), p_value(1e-12)
    ('p 0.35', 'p 0.0004', 'p <1e-9')
    """
    if p < _SMALLEST_P:
        return f"p <{_SMALLEST_P:.0e}".replace("e-0", "e-")
    return f"p {p:.2g}"


def drifts_in_words(configurations: Sequence[ConfigurationResult]) -> list[str]:
    """The configurations whose times rose or fell while they were measured."""
    found = []
    for configuration in configurations:
        drift = configuration.latency_drift
        if drift is not None and is_clear(drift):
            word = "rose" if drift.change > 0 else "fell"
            found.append(
                f"{configuration.name}: its times {word} by {100 * abs(drift.change):.0f} % while they were measured "
                f"({p_value(drift.p_value)}): the machine was not quiet"
            )
    return found
