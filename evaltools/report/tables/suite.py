"""A suite as a table: every model in every configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from rich.console import Console

from evaltools.gates.suite_result import SuiteEntry, SuiteResult, SuiteRow
from evaltools.report.tables.cells import milliseconds, percent, times_as_fast
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.gates import print_gates
from evaltools.report.words.load import load_in_words
from evaltools.report.words.verdicts import kind_in_words, verdict_in_words
from evaltools.text import printable


class SuiteLine(Struct, frozen=True):
    """A line of the table: a configuration of an entry; of an entry without a result there is none."""

    entry: SuiteEntry
    row: SuiteRow | None = None

    @property
    def configuration(self) -> str:
        """Its name, or ``all`` of an entry without a result."""
        return "all" if self.row is None else printable(self.row.configuration)

    @property
    def found(self) -> str:
        """The verdict in a word or two; of what has none, whether it was measured."""
        if self.row is None:
            return self.entry.state
        if self.row.status == "not measured":
            return "not measured"
        if self.row.fallback:
            return "fallback to the CPU"
        not_clean = ", NOT CLEAN" if self.row.not_clean else ""
        judged = "measured" if self.row.verdict is None else kind_in_words(self.row.verdict)
        return f"{judged}{not_clean}"

    @property
    def accuracy(self) -> str:
        """The accuracy of a task with a ground truth."""
        return "" if self.row is None or self.row.accuracy is None else percent(self.row.accuracy)

    @property
    def time(self) -> str:
        """The median time."""
        return "" if self.row is None or self.row.p50_us is None else milliseconds(self.row.p50_us)

    @property
    def speed(self) -> str:
        """How many times as fast, with the interval where that says something."""
        if self.row is None or self.row.speed is None:
            return ""
        return times_as_fast(self.row.speed, self.row.speed_interval)

    @property
    def delegated(self) -> str:
        """Nodes on delegates of all nodes."""
        if self.row is None or self.row.total_nodes is None or not self.row.delegates:
            return ""
        return f"{self.row.delegated_nodes}/{self.row.total_nodes}"

    @property
    def why(self) -> str:
        """Why there are no figures, or why some are missing."""
        if self.row is None:
            return printable(self.entry.reason)
        if self.row.fallback:
            return printable(self.row.fallback)
        failed = f"{self.row.failed_examples} runs failed: " if self.row.failed_examples else ""
        reason = f"{failed}{self.row.reason}" if self.row.reason else ""
        return printable("; ".join(filter(None, (reason, self.row.not_clean))))

    @property
    def why_open(self) -> str:
        """Why nothing is decided."""
        return printable(verdict_in_words(self.row.not_decided)) if self.row and self.row.not_decided else ""


def lines_of(result: SuiteResult) -> list[SuiteLine]:
    """A line per configuration; without references that only others are held against."""
    return [line for entry in result.entries for line in _of_entry(entry)]


def _of_entry(entry: SuiteEntry) -> list[SuiteLine]:
    if entry.state != "done":
        return [SuiteLine(entry)]
    return [
        SuiteLine(entry, row)
        for row in entry.rows
        if row.role == "test" or row.status == "not measured" or row.accuracy is not None
    ]


def busiest_in_words(result: SuiteResult) -> str:
    """That the machine was busy, of the entry that was timed beside most others; empty where none was."""
    timed = [
        (entry, row.load) for entry in result.entries for row in entry.rows if row.load and load_in_words(row.load)
    ]
    if not timed:
        return ""
    entry, load = max(timed, key=lambda each: each[1].others)
    return printable(f"{entry.model}, {entry.job}: {load_in_words(load)}")


def print_suite(result: SuiteResult, console: Console) -> None:
    """The table, then each reason once, then how many of what there are."""
    lines = lines_of(result)
    names = [Column[SuiteLine]("model", lambda line: line.entry.model)]
    if len({line.entry.job for line in lines}) > 1:
        names.append(Column("job", lambda line: line.entry.job))
    names.append(Column("", lambda line: line.configuration))
    columns = [
        Column[SuiteLine]("verdict", lambda line: line.found),
        Column("accuracy", lambda line: line.accuracy),
        Column("p50", lambda line: line.time),
        Column("speed", lambda line: line.speed),
        Column("delegated", lambda line: line.delegated),
    ]
    filled = [column for column in columns if any(map(column.cell, lines))]
    print_columns(names, ranked(filled), lines, console)
    if reasons := reasons_of(lines):
        console.print()
        for reason, of in reasons.items():
            console.print(f"{', '.join(of)}: {reason}")
    console.print(f"\n{summary_of(result)}")
    if busy := busiest_in_words(result):
        console.print(busy, style="yellow")
    if result.changes is not None:
        console.print(f"\nsince {printable(result.changes.gates)}:")
        print_gates(result.changes, console)


def reasons_of(lines: Sequence[SuiteLine]) -> dict[str, list[str]]:
    """What is missing or not decided, and why: each reason with the configurations and models that it is about."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        for reason in filter(None, (line.why, line.why_open)):
            found.setdefault(reason, {}).setdefault(line.configuration, []).append(line.entry.model)
    return {
        reason: [f"{configuration} ({', '.join(dict.fromkeys(models))})" for configuration, models in of.items()]
        for reason, of in found.items()
    }


def summary_of(result: SuiteResult) -> str:
    """How many models and configurations there are, and what became of them."""
    lines = lines_of(result)
    counts = Counter(line.found for line in lines)
    models = len({entry.model for entry in result.entries})
    configurations = len({row.configuration for entry in result.entries for row in entry.rows if row.role == "test"})
    said = ", ".join(f"{count} {found}" for found, count in counts.most_common())
    return f"{models} models, {configurations} configurations: {said}{_why_no_times(result)}"


def _why_no_times(result: SuiteResult) -> str:
    beside = sum(not entry.is_timed for entry in result.entries)
    if not beside:
        return ""
    of_which = "" if beside == len(result.entries) else f" of {beside} runs"
    return f"; no times{of_which}, as others were made at the same time"
