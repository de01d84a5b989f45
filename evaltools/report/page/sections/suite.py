"""A suite: every model in every configuration, and what is missing."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.gates.suite_result import SuiteEntry, SuiteResult
from evaltools.metrics.latency import LatencyRatio
from evaltools.report.content import First
from evaltools.report.page.sections.rows import tone_of_kind
from evaltools.report.words.facts import counted, load_in_words
from evaltools.report.words.numbers import in_times_with_interval, milliseconds, percent
from evaltools.result.figure import Figure
from evaltools.result.result import Row
from evaltools.result.section import Block, Cell, Lines, Note, Number, Sentence, Table, Tone, Word, path_to
from evaltools.result.verdict import kind_in_words
from evaltools.text import printable

_RUN_DIR: Final = ("--run_dir=", "--run-dir=")
_LONGEST_REASON: Final = 240


class SuiteLine(Struct, frozen=True):
    """A line of the table: a configuration of an entry; of an entry without a result there is none."""

    entry: SuiteEntry
    row: Row | None = None

    @property
    def configuration(self) -> str:
        """Its name, or ``all`` of an entry without a result."""
        return "all" if self.row is None else printable(self.row.name)

    @property
    def found(self) -> str:
        """The verdict in a word or two; of what has none, whether it was measured."""
        if self.row is None:
            return self.entry.state
        if self.row.status == "not measured":
            return "not measured"
        if self.row.fallback:
            return "fell back"
        not_clean = ", NOT CLEAN" if self.row.not_clean else ""
        judged = "measured" if self.row.verdict is None else kind_in_words(self.row.verdict.kind)
        return f"{judged}{not_clean}"

    @property
    def accuracy(self) -> str:
        """The accuracy of a task with a ground truth."""
        found = self.figure("accuracy")
        return "" if self._is_blank or found is None or found.value is None else percent(found.value)

    @property
    def time(self) -> str:
        """The median time."""
        found = self.figure("latency_ms")
        return "" if self._is_blank or found is None or found.value is None else milliseconds(1000 * found.value)

    @property
    def speed(self) -> str:
        """How many times faster or slower, with the interval where that says something."""
        found = self.figure("latency_ratio")
        if self._is_blank or found is None or not found.value:
            return ""
        return in_times_with_interval(LatencyRatio(0, found.value, found.interval))

    def figure(self, name: str) -> Figure | None:
        """A figure by its name; ``accuracy`` is the one of a task with a ground truth, which has a heading."""
        if self.row is None:
            return None
        if name == "accuracy":
            return next((each for each in self.row.figures.values() if each.heading), None)
        return self.row.figures.get(name)

    @property
    def tone(self) -> Tone:
        """The colour of the verdict; what did not run as asked is never good."""
        if self.row is None and self.entry.state == "failed":
            return "bad"
        if self.row is None or self.row.status == "not measured":
            return "missing"
        if self.row.fallback or self.row.not_clean:
            return "bad"
        return "good" if self.row.verdict is None else tone_of_kind(self.row.verdict.kind)

    @property
    def delegated(self) -> str:
        """The delegates, and the nodes on them of all nodes."""
        names = [] if self.row is None else [each.name for each in self.row.delegates if each.nodes]
        if self._is_blank or self.row is None or self.row.delegation is None or not names:
            return ""
        return f"{', '.join(names)} {self.row.delegation.delegated_nodes}/{self.row.delegation.total_nodes}"

    @property
    def _is_blank(self) -> bool:
        """Whether it ran on the CPU instead of its delegate, so that its figures would look like the delegate's."""
        return self.row is not None and bool(self.row.fallback)

    @property
    def why(self) -> str:
        """Why there are no figures, or why some are missing."""
        if self.row is None:
            return printable(self.entry.reason)
        if self.row.fallback:
            return printable(self.row.fallback)
        failed, first = self.row.counts.get("failed", 0), self.row.texts.get("first_failure", "")
        lost = f"{failed} runs failed: {first}" if failed else ""
        return printable("; ".join(filter(None, (self.row.reason, lost, self.row.not_clean))))

    @property
    def why_open(self) -> str:
        """Why nothing is decided."""
        verdict = None if self.row is None else self.row.verdict
        return printable(verdict.sentence) if verdict is not None and verdict.kind == "not decided" else ""


def lines_of(result: SuiteResult) -> list[SuiteLine]:
    """A line per configuration; without references that are only there for comparison."""
    return [line for entry in result.entries for line in _of_entry(entry)]


def _of_entry(entry: SuiteEntry) -> list[SuiteLine]:
    if entry.state != "done":
        return [SuiteLine(entry)]
    return [
        SuiteLine(entry, row)
        for row in entry.rows
        if row.role == "test" or row.status == "not measured" or any(each.heading for each in row.figures.values())
    ]


def busiest_in_words(result: SuiteResult) -> str:
    """That the machine was busy, of the entry that was timed beside most others; empty where none was."""
    timed = [
        (entry, row.load) for entry in result.entries for row in entry.rows if row.load and load_in_words(row.load)
    ]
    if not timed:
        return ""
    entry, load = max(timed, key=lambda each: each[1].others or 0.0)
    return printable(f"{entry.model}, {entry.job}: {load_in_words(load)}")


def answer(name: str, result: SuiteResult) -> First:
    """How many models and configurations there are of which verdict, all of them in one table, and each reason once."""
    lines = lines_of(result)
    notes = [Note(", ".join(of), _beginning(reason)) for reason, of in reasons_of(lines).items()]
    if busy := busiest_in_words(result):
        notes.append(Note("warning", busy, "open"))
    blocks: list[Block] = [Sentence(f"{summary_of(result)}.")]
    blocks += [_table(result, lines)] if lines else []
    blocks += [Lines(notes)] if notes else []
    return First("suite", tuple(blocks), steps=_where_next(result, lines), source=name)


def _beginning(reason: str) -> str:
    """As many parts of a reason as there is room for; the page of the model has all of it."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    room = reason[:_LONGEST_REASON]
    return room.rpartition("; ")[0] or f"{room.rstrip(' ;,.')} ..."


def _table(result: SuiteResult, lines: Sequence[SuiteLine]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            line.entry.model,
            line.entry.job,
            line.configuration,
            Word(line.found, line.tone),
            _figure(result, line, "accuracy", line.accuracy),
            _figure(result, line, "latency_ms", line.time),
            _figure(result, line, "latency_ratio", line.speed),
            line.delegated,
        )
        for line in lines
    ]
    columns = ("model", "job", "configuration", "verdict", "accuracy", "latency", "vs reference", "delegated")
    table = Table("Every model in every configuration", columns, rows, "", 3, (0, 0, 0, 0, 1, 2, 3, 4))
    has_jobs = len({line.entry.job for line in lines}) > 1
    return table.of_columns([place for place in range(len(columns)) if has_jobs or place != 1]).compact


def _figure(result: SuiteResult, line: SuiteLine, name: str, shown: str) -> Cell:
    """A figure of a line with its place in the result; empty where there is none."""
    found = line.figure(name)
    if line.row is None or not shown or found is None:
        return ""
    place, row = result.entries.index(line.entry), line.entry.rows.index(line.row)
    named = next(known for known, each in line.row.figures.items() if each is found)
    return Number(shown, found.value, path_to("entries", place, "rows", row, "figures", named, "value"))


def _where_next(result: SuiteResult, lines: Sequence[SuiteLine]) -> tuple[str, ...]:
    """The page of the first entry that is not as it should be."""
    stated = [word.partition("=")[2] for word in result.environment.command if word.startswith(_RUN_DIR)]
    for line in lines:
        if stated and line.entry.result and line.tone not in ("good", "near"):
            command = shlex.join(["evaltools", "report", f"{stated[-1]}/{line.entry.result}", "--output=FILE.html"])
            return (f"{command} shows all about {line.entry.model}",)
    if not stated:
        return ("the same command with --run_dir=FOLDER keeps the result of each model, for evaltools report",)
    return ("evaltools gate NEW.json --against=OLD.json says what a later suite measured worse than this one",)


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
    configurations = len({row.name for entry in result.entries for row in entry.rows if row.role == "test"})
    verdicts = ", ".join(f"{count} {found}" for found, count in counts.most_common())
    what = f"{counted(models, 'model')}, {counted(configurations, 'configuration')}"
    return f"{what}: {verdicts}"
