"""A suite on a page: what became of each configuration, every model, what changed."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Final

from evaltools.gates.suite_result import SuiteResult
from evaltools.report.page.content.page import Saying
from evaltools.report.page.sections import gates
from evaltools.report.tables.suite import (
    SuiteLine,
    lines_of,
    reasons_of,
    summary_of,
)
from evaltools.result.section import Block, Cell, Lines, Number, Section, Table, Tone, path_to

_RUN_DIR: Final = ("--run_dir=", "--run-dir=")
_LONGEST_REASON: Final = 200
_BAD: Final = ("worse", "diverged")
_OPEN: Final = ("not decided", "not judged", "the reference is the odd one out")
_TONES: Final[tuple[Tone, ...]] = ("bad", "open", "good")
"""The worst first."""


def sayings(result: SuiteResult) -> tuple[Saying, ...]:
    """One for each configuration: how many models of which verdict, how fast they are, what ran, where to look next."""
    by_name: dict[str, list[SuiteLine]] = {}
    for line in lines_of(result):
        by_name.setdefault(line.configuration, []).append(line)
    folder = _run_folder(result)
    found = [_saying(name, lines, folder) for name, lines in by_name.items()]
    if result.changes is not None:
        found.insert(0, gates.saying(result.changes))
    return tuple(found)


def _run_folder(result: SuiteResult) -> str:
    """The run folder as the command names it."""
    stated = [word.partition("=")[2] for word in result.environment.command if word.startswith(_RUN_DIR)]
    return stated[-1] if stated else "RUN_DIR"


def _saying(name: str, lines: Sequence[SuiteLine], folder: str) -> Saying:
    counts = Counter(line.found for line in lines)
    said = ", ".join(f"{count} {found}" for found, count in counts.most_common())
    facts = (("how fast", _how_fast(lines)), ("did it run", _what_ran(lines)), ("why not", _why_not(lines)))
    known = tuple((question, answer) for question, answer in facts if answer)
    return Saying(name, min(map(_tone, lines), key=_TONES.index), said, known, _where_next(lines, folder))


def _how_fast(lines: Sequence[SuiteLine]) -> str:
    """The slowest and the fastest model, each against its reference."""
    speeds = [line.row.speed for line in lines if line.row is not None and line.row.speed is not None]
    if not speeds:
        return ""
    slowest, fastest = (f"{speed:.2f}x" for speed in (min(speeds), max(speeds)))
    return f"{slowest if slowest == fastest else f'{slowest} to {fastest}'} the speed of the reference"


def _what_ran(lines: Sequence[SuiteLine]) -> str:
    """How many nodes of all models delegates took, and of how many models there are no figures."""
    rows = [line.row for line in lines if line.row is not None and line.delegated]
    taken, nodes = sum(row.delegated_nodes or 0 for row in rows), sum(row.total_nodes or 0 for row in rows)
    missing = sum(line.row is None or line.row.status == "not measured" for line in lines)
    said = [f"{taken} of {nodes} nodes on delegates"] if rows else []
    return "; ".join([*said, *([f"{missing} of {len(lines)} not measured"] if missing else [])])


def _why_not(lines: Sequence[SuiteLine]) -> str:
    """The reason for which most models were not measured, and how many other reasons there are."""
    reasons = Counter(line.why for line in lines if line.why)
    if not reasons:
        return ""
    first, *others = (reason for reason, _ in reasons.most_common())
    more = f" (and {len(others)} other reason{'s' * (len(others) != 1)}, see Models)" if others else ""
    return textwrap.shorten(first, _LONGEST_REASON, placeholder=" ...") + more


def _where_next(lines: Sequence[SuiteLine], folder: str) -> tuple[str, ...]:
    """The page of the first entry that is not as it should be."""
    bad = next((line for line in lines if line.entry.result and _tone(line) != "good"), None)
    if bad is None:
        return ()
    command = shlex.join(["evaltools", "report", f"{folder}/{bad.entry.result}", "--output=FILE.html"])
    return (f"{command} tells all about {bad.entry.model}",)


def _tone(line: SuiteLine) -> Tone:
    row = line.row
    if row is None or row.status == "not measured" or row.fallback or row.verdict in _BAD:
        return "bad"
    return "open" if row.verdict in _OPEN else "good"


def sections(result: SuiteResult) -> list[Section]:
    """What changed, if there is something to compare with; every model."""
    found = [] if result.changes is None else [gates.gates(result.changes)]
    return [*found, _models(result)]


def _models(result: SuiteResult) -> Section:
    lines = lines_of(result)
    has_jobs = len({line.entry.job for line in lines}) > 1
    rows = [
        (
            line.entry.model,
            line.entry.job if has_jobs else "",
            line.configuration,
            line.found,
            line.accuracy,
            _figure(result, line, "p50_us", line.time),
            _figure(result, line, "speed", line.speed),
            line.delegated,
        )
        for line in lines
    ]
    columns = ("model", "job", "configuration", "verdict", "accuracy", "p50", "speed", "delegated")
    blocks: list[Block] = [Table("Every model in every configuration", columns, rows)]
    reasons = [f"{', '.join(of)}: {reason}" for reason, of in reasons_of(lines).items()]
    return Section("Models", [*blocks, *([Lines(reasons)] if reasons else [])], "accuracy", summary_of(result))


def _figure(result: SuiteResult, line: SuiteLine, name: str, shown: str) -> Cell:
    """A figure of a line with its place in the result; empty where there is none."""
    if line.row is None or not shown:
        return ""
    place, row = result.entries.index(line.entry), line.entry.rows.index(line.row)
    return Number(shown, getattr(line.row, name), path_to("entries", place, "rows", row, name))
