"""What ran a configuration and how fast, as texts: one for each fact, wherever it is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.known_tasks import metric_named
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Drift, is_clear
from evaltools.metrics.words import ends
from evaltools.report.words.numbers import in_milliseconds, milliseconds, p_value, says_something, three_digits
from evaltools.result.facts import DelegateUsed, DelegationProof, Load, Model
from evaltools.result.figure import Figure
from evaltools.result.result import ACCURACY, Row, model_names
from evaltools.result.section import Word
from evaltools.text import printable

MOST_OPERATORS = 4
BUSY: Final = 0.5
"""So many other processes for each core, on average, are mentioned."""
MUCH_STEAL: Final = 0.05
"""Of the time of all cores."""


def counted(count: int, what: str, several: str = "") -> str:
    """A number with what it counts.

    >>> counted(1, "thread"), counted(2, "thread"), counted(2, "process", "processes")
    ('1 thread', '2 threads', '2 processes')
    """
    return f"{count} {what}" if count == 1 else f"{count} {several or f'{what}s'}"


def heading_of(metric: str) -> str:
    """What a metric is called where people read it; its name where nothing else is known."""
    found = metric_named(metric)
    return (found.heading if found is not None else "") or metric


def describe_configuration(configuration: Row) -> str:
    """One line: what ran this configuration, with proof, or why it was not measured."""
    if configuration.runtime is None:
        return f"not measured: {configuration.reason}"
    runtime, proof = configuration.runtime, configuration.delegation
    other = configuration.other_model
    parts = [] if other is None else [Path(other.file).name]
    parts += [f"{runtime.package} {runtime.version}", *([f"on {runtime.machine}"] if runtime.machine else [])]
    parts += [f"{runtime.kernels} kernels", _threads(configuration.num_threads)]
    if proof is None and not configuration.delegates:
        return ", ".join([*parts, "outputs loaded"])
    parts += [_delegate(delegate, proof) for delegate in configuration.delegates]
    if runtime.emulator and not any(runtime.emulator in delegate.device for delegate in configuration.delegates):
        parts.append(f"emulated by {runtime.emulator}")
    if configuration.delegates and proof is not None and proof.cpu_operators:
        parts.append(f"CPU keeps {left_on_cpu(proof, MOST_OPERATORS)}")
    if configuration.fallback:
        parts.append(f"FALLBACK: {configuration.fallback}")
    return ", ".join(parts)


def left_on_cpu(proof: DelegationProof, most: int) -> str:
    """The kinds of operators that no delegate took, with their numbers."""
    shown = [f"{name} x{count}" for name, count in list(proof.cpu_operators.items())[:most]]
    more = len(proof.cpu_operators) - len(shown)
    return ", ".join([*shown, *([f"and {counted(more, 'more kind')}"] if more else [])])


def _threads(count: int) -> str:
    return "threads chosen by the runtime" if count == -1 else counted(count, "thread")


def _delegate(delegate: DelegateUsed, proof: DelegationProof | None) -> str:
    if delegate.nodes is None and not delegate.evidence:
        return f"{delegate.name} not created"
    partitions = "" if delegate.partitions is None else f" in {counted(delegate.partitions, 'partition')}"
    total = "" if proof is None else f" of {proof.total_nodes}"
    nodes = "nodes not stated" if delegate.nodes is None else f"{delegate.nodes}{total} nodes"
    return f"{delegate_name(delegate)} {nodes}{partitions}"


def device_text(device: str, is_cpu: bool) -> str:
    """The device that ran a delegate, with a word where that is the CPU after all; empty where none is named."""
    return f" on {printable(device)}{' [software: this is the CPU]' if is_cpu else ''}" if device else ""


def delegate_name(delegate: DelegateUsed) -> str:
    """A delegate with its device, and a word where nobody asked for it."""
    added = "" if delegate.requested else " (added by the runtime)"
    return f"{delegate.name}{added}{device_text(delegate.device, delegate.is_cpu)}"


def delegated(configuration: Row) -> str | Word:
    """The delegates with the nodes that ran on them of all nodes; ``-`` where none is in force, or it fell back."""
    if configuration.fallback:
        return Word("fell back", "bad")
    if configuration.status != "measured":
        return "-"
    proof, used = configuration.delegation, configuration.delegates
    if proof is not None and len(used) > 1 and all(each.nodes is not None for each in used):
        return f"{', '.join(f'{each.name} {each.nodes}' for each in used)} of {proof.total_nodes}"
    return with_nodes(", ".join(dict.fromkeys(each.name for each in used)), proof if used else None)


def with_nodes(names: str, proof: DelegationProof | None) -> str:
    """The names of delegates and how many of all nodes they took; ``-`` where there is neither."""
    return f"{names} {proof.delegated_nodes}/{proof.total_nodes}".strip() if proof else names or "-"


def median_time(row: Row) -> str:
    """The median of a row, the average where no single times are known; of an emulated one that there is none."""
    median_ms, latency = row.value("latency_ms"), row.latency
    if median_ms is not None:
        return in_milliseconds(median_ms)
    if latency is not None and latency.count:
        return f"{milliseconds(latency.avg_us)} (average)"
    return "emulated" if row.is_emulated and row.status == "measured" else "-"


def latency_of(row: Row) -> float | None:
    """The median in milliseconds, the average where a log has no median; None of a row that is not measured."""
    if row.status != "measured":
        return None
    median_ms = row.value("latency_ms")
    return row.value("latency_average_ms") if median_ms is None else median_ms


def by_latency(rows: Iterable[Row]) -> list[Row]:
    """The rows that have a time, the fastest first."""
    timed = [(time, row) for row in rows if (time := latency_of(row)) is not None]
    return [row for _, row in sorted(timed, key=lambda entry: entry[0])]


def median_interval_of(row: Row) -> Interval | None:
    """The interval of the median time."""
    found = row.figures.get("latency_ms")
    return None if found is None else found.interval


def is_faster(row: Row, other: Row) -> bool | None:
    """Whether the interval of its median lies below that of a slower row; None where one has no interval."""
    own, others = median_interval_of(row), median_interval_of(other)
    return None if own is None or others is None else own.high < others.low


def is_uneven(row: Row) -> bool:
    """Whether times differ so much that their median says little, and a ratio of medians nothing."""
    interval = median_interval_of(row)
    return interval is not None and not says_something(interval)


def median_with_interval(row: Row) -> str:
    """The median time with its interval, or why it has none; the average where a log has no median."""
    found, time = row.figures.get("latency_ms"), in_milliseconds(latency_of(row) or 0.0)
    if found is None:
        return f"{time} (average)"
    if is_uneven(row):
        return f"{time} [too uneven]"
    if found.interval is None:
        return f"{time} [{found.withheld}]" if found.withheld else time
    return f"{time} {ends(three_digits(found.interval.low), three_digits(found.interval.high))}"


def accuracy_of(row: Row) -> Figure | None:
    """The accuracy of a task with a ground truth, measured or given."""
    return row.figures.get(row.texts.get(ACCURACY, ""))


def speed_of(row: Row, reference: Row | None) -> Figure | None:
    """How many times as long as the reference: on the same examples with an interval, else of the medians.

    Of the averages where neither has a median. None where only medians of different places are known, or none.
    """
    if reference is None or row is reference or row.latency is None or reference.latency is None:
        return None
    paired = row.figures.get("latency_ratio")
    if paired is not None:
        return without_interval_in_doubt(paired, row, reference) if paired.value else None
    if row.place != reference.place:
        return None
    own, base = row.value("latency_ms"), reference.value("latency_ms")
    if own is None and base is None:
        own, base = row.latency.avg_us, reference.latency.avg_us
    return Figure(own / base) if own and base else None


def without_interval_in_doubt(ratio: Figure, *rows: Row) -> Figure:
    """A ratio of the times of rows, without its interval where these were uneven, or the machine was busy.

    An interval says what chance does. What another process does to one of the two sides it does not know.
    """
    is_in_doubt = any(is_uneven(row) or load_in_words(row.load) for row in rows)
    return replace(ratio, interval=None) if is_in_doubt else ratio


def drift_in_words(drift: Drift | None) -> str:
    """That times rose or fell while they were measured; empty where they did not."""
    if drift is None or not is_clear(drift):
        return ""
    word = "rose" if drift.change > 0 else "fell"
    return (
        f"its times {word} by {100 * abs(drift.change):.0f} % while they were measured ({p_value(drift.p_value)}): the "
        "machine was not quiet; ratios are of pairs, which hides most of it"
    )


def label(models: Sequence[Model], row: Row) -> str:
    """The configuration's name, with the model where there are several."""
    name = "all" if row.is_all else row.name
    return name if len(models) == 1 else f"{name} of {model_name(models, row)}"


def model_name(models: Sequence[Model], row: Row) -> str:
    """The name of a row's model among those of its result."""
    return model_names([Path(model.file) for model in models])[row.model]


def load_in_words(load: Load | None) -> str:
    """A short sentence where the load matters for latencies; empty where it does not, or is not known.

    >>> load_in_words(Load(2, 11.2, 1.4)), load_in_words(Load(2, 0.4, 0.2)), load_in_words(None)
    ('the machine was busy: 11 other processes on 2 cores', '', '')
    >>> load_in_words(Load(8, 0.2, 0.1, steal=0.12, throttled=3))
    'the machine was busy: its hypervisor gave 12 % of the time to others, heat slowed it down 3 times'
    """
    if load is None:
        return ""
    found = []
    if load.others is not None and load.others >= BUSY * load.cpu_count:
        others = counted(max(1, round(load.others)), "other process", "other processes")
        found.append(f"{others} on {counted(load.cpu_count, 'core')}")
    if load.steal is not None and load.steal >= MUCH_STEAL:
        found.append(f"its hypervisor gave {100 * load.steal:.0f} % of the time to others")
    if load.throttled:
        found.append(f"heat slowed it down {counted(load.throttled, 'time')}")
    return f"the machine was busy: {', '.join(found)}" if found else ""
