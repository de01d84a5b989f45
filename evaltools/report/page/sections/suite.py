"""A suite on a page: what became of each configuration, every model, what changed, which operators run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from evaltools.gates.suite_result import OperatorCell, SuiteChanges, SuiteResult
from evaltools.report.page.content.page import Saying
from evaltools.report.tables.suite import (
    SuiteLine,
    before_in_words,
    changes_in_words,
    lines_of,
    now_in_words,
    operator_configurations,
    operator_in_words,
    operator_rows,
    reasons_of,
    summary_of,
)
from evaltools.result.section import Block, Lines, Number, Section, Table, Tone

_BAD: Final = ("worse", "diverged")
_OPEN: Final = ("not decided", "not judged")
_TONES: Final[tuple[Tone, ...]] = ("bad", "open", "good")
"""The worst first."""


def sayings(result: SuiteResult) -> tuple[Saying, ...]:
    """One for each configuration: how many models of which verdict."""
    by_name: dict[str, list[SuiteLine]] = {}
    for line in lines_of(result):
        by_name.setdefault(line.configuration, []).append(line)
    found = [Saying(name, min(map(_tone, of), key=_TONES.index), _counted(of)) for name, of in by_name.items()]
    if result.changes is not None:
        tone: Tone = "bad" if result.changes.regressions else "good"
        found.insert(0, Saying("what changed", tone, changes_in_words(result.changes)))
    return tuple(found)


def _counted(lines: Sequence[SuiteLine]) -> str:
    return ", ".join(f"{count} {found}" for found, count in Counter(line.found for line in lines).most_common())


def _tone(line: SuiteLine) -> Tone:
    row = line.row
    if row is None or row.status == "not measured" or row.fallback or row.verdict in _BAD:
        return "bad"
    return "open" if row.is_weak or row.verdict in _OPEN else "good"


def sections(result: SuiteResult) -> list[Section]:
    """What changed, if there is something to compare with; every model."""
    found = [] if result.changes is None else [_changes(result.changes)]
    found.append(_models(lines_of(result), summary_of(result)))
    return [*found, _operators(result.operators)] if result.operators else found


def _operators(cells: Sequence[OperatorCell]) -> Section:
    names = operator_configurations(cells)
    rows = [(*operator, *(operator_in_words(of.get(name)) for name in names)) for operator, of in operator_rows(cells)]
    table = Table("Every operator alone, of all models together", ("operator", "types", *names), rows)
    return Section("Operators", [table], "accuracy")


def _changes(changes: SuiteChanges) -> Section:
    rows = [
        (change.kind, change.model, change.job, change.configuration, now_in_words(change), before_in_words(change),
         change.reason)
        for change in changes.changes
    ]  # fmt: skip
    columns = ("change", "model", "job", "configuration", "now", "before", "why")
    blocks: list[Block] = [Table("What changed", columns, rows)] if rows else []
    setup = [f"set up in another way: {line}" for line in changes.setup]
    return Section("Since the earlier suite", [*blocks, Lines([changes_in_words(changes), *setup])], "changes")


def _models(lines: Sequence[SuiteLine], summary: str) -> Section:
    rows = [
        (
            line.entry.model,
            line.entry.job,
            line.configuration,
            line.found,
            line.accuracy,
            Number(line.time, line.row.p50_us) if line.row else "",
            Number(line.speed, line.row.speed) if line.row else "",
            line.delegated,
        )
        for line in lines
    ]
    columns = ("model", "job", "configuration", "verdict", "accuracy", "p50", "speed", "delegated")
    blocks: list[Block] = [Table("Every model in every configuration", columns, rows)]
    reasons = [f"{', '.join(of)}: {reason}" for reason, of in reasons_of(lines).items()]
    return Section("Models", [*blocks, *([Lines(reasons)] if reasons else [])], "accuracy", summary)
