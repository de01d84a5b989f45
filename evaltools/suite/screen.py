"""The first screen of a suite: every model in every configuration, and what is missing."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Final

from evaltools.report.words.facts import counted, load_in_words
from evaltools.report.words.numbers import in_times_with_interval, milliseconds, percent
from evaltools.result.figure import Figure
from evaltools.result.result import ALL, Row
from evaltools.result.section import Block, Cell, Lines, Note, Number, Sentence, Table, Tone, Word, path_to
from evaltools.result.verdict import kind_in_words
from evaltools.text import printable

RESULT: Final = "result"
"""The text with the name of the file that has all about a row."""
STATE: Final = "state"
"""The text that says why a job gave no row of its own: it ``failed``, or was ``skipped``."""
_RUN_DIR: Final = ("--run_dir=", "--run-dir=")
_LONGEST_REASON: Final = 240


def first_screen(rows: Sequence[Row], models: Sequence[str]) -> list[Block]:
    """How many models and configurations there are of which verdict, all of them in one table, and each reason once."""
    shown = [(place, row) for place, row in enumerate(rows) if _is_shown(row)]
    notes = [Note(", ".join(of), _beginning(reason)) for reason, of in _reasons(shown, models).items()]
    if busy := _busiest(rows, models):
        notes.append(Note("warning", busy, "open"))
    blocks: list[Block] = [Sentence(f"{_summary(rows, shown)}.")]
    blocks += [_table(shown, models)] if shown else []
    return [*blocks, *([Lines(notes)] if notes else [])]


def next_step(rows: Sequence[Row], models: Sequence[str], typed: Sequence[str]) -> str:
    """The page of the first row that is not as it should be."""
    stated = [word.partition("=")[2] for word in typed if word.startswith(_RUN_DIR)]
    for row in filter(_is_shown, rows):
        if stated and row.texts.get(RESULT) and tone(row) not in ("good", "near"):
            command = shlex.join(["evaltools", "report", f"{stated[-1]}/{row.texts[RESULT]}", "--output=FILE.html"])
            return f"{command} shows all about {models[row.model]}"
    if not stated:
        return "the same command with --run_dir=FOLDER keeps the result of each model, for evaltools report"
    return "evaltools gate NEW.json --against=OLD.json says what a later suite measured worse than this one"


def found(row: Row) -> str:
    """The verdict in a word or two; of what has none, whether it was measured."""
    if row.status == "not measured":
        return row.texts.get(STATE, "not measured")
    if row.fallback:
        return "fell back"
    judged = "measured" if row.verdict is None else kind_in_words(row.verdict.kind)
    return f"{judged}{', NOT CLEAN' if row.not_clean else ''}"


def tone(row: Row) -> Tone:
    """The colour of the verdict; what did not run as asked is never good."""
    if row.status == "not measured":
        return "bad" if row.texts.get(STATE) == "failed" else "missing"
    if row.fallback or row.not_clean:
        return "bad"
    return "good" if row.verdict is None else row.verdict.tone


def _is_shown(row: Row) -> bool:
    """Whether it is in the table: not a reference that is only there for comparison."""
    return row.role == "test" or row.status == "not measured" or _accuracy(row) is not None


def _accuracy(row: Row) -> tuple[str, Figure] | None:
    """That of a task with a ground truth, with the name of its figure."""
    name = row.texts.get("accuracy", "")
    return (name, row.figures[name]) if name in row.figures else None


def _name(row: Row) -> str:
    return "all" if row.name == ALL else printable(row.name)


def _summary(rows: Sequence[Row], shown: Sequence[tuple[int, Row]]) -> str:
    """How many models and configurations there are, and what became of them."""
    configurations = len({row.name for row in rows if row.role == "test" and row.name != ALL})
    what = f"{counted(len({row.model for row in rows}), 'model')}, {counted(configurations, 'configuration')}"
    counts = Counter(found(row) for _, row in shown)
    return f"{what}: {', '.join(f'{count} {kind}' for kind, count in counts.most_common())}"


def _table(shown: Sequence[tuple[int, Row]], models: Sequence[str]) -> Table:
    cells = [_cells(place, row, models[row.model]) for place, row in shown]
    columns = ("model", "job", "configuration", "verdict", "accuracy", "latency", "vs reference", "delegated")
    table = Table("Every model in every configuration", columns, cells, "", 3, (0, 0, 0, 0, 1, 2, 3, 4))
    has_jobs = len({row.job for _, row in shown}) > 1
    return table.of_columns([column for column in range(len(columns)) if has_jobs or column != 1]).compact


def _cells(place: int, row: Row, model: str) -> list[Cell]:
    """What ran on the CPU instead of its delegate has no figures: they would look like the delegate's."""
    names: list[Cell] = [model, row.job, _name(row), Word(found(row), tone(row))]
    if row.fallback:
        return [*names, "", "", "", ""]
    accuracy, time, ratio = _accuracy(row), row.value("latency_ms"), row.figures.get("latency_ratio")
    cells: dict[str, str] = {} if accuracy is None else {accuracy[0]: percent(accuracy[1].value or 0.0)}
    cells |= {} if time is None else {"latency_ms": milliseconds(1000 * time)}
    if ratio is not None and ratio.value:
        cells["latency_ratio"] = in_times_with_interval(ratio)
    shown = [accuracy[0] if accuracy is not None else "", "latency_ms", "latency_ratio"]
    figures = [
        Number(cells[name], row.value(name), path_to("rows", place, "figures", name, "value")) if name in cells else ""
        for name in shown
    ]
    used, proof = [each.name for each in row.delegates if each.nodes], row.delegation
    nodes = f"{', '.join(used)} {proof.delegated_nodes}/{proof.total_nodes}" if proof is not None and used else ""
    return [*names, *figures, nodes]


def _reasons(shown: Sequence[tuple[int, Row]], models: Sequence[str]) -> dict[str, list[str]]:
    """What is missing or not decided, and why: each reason with the configurations and models that it is about."""
    about: dict[str, dict[str, list[str]]] = {}
    for _, row in shown:
        for reason in filter(None, (_why(row), _why_open(row))):
            about.setdefault(reason, {}).setdefault(_name(row), []).append(models[row.model])
    return {
        reason: [f"{configuration} ({', '.join(dict.fromkeys(names))})" for configuration, names in of.items()]
        for reason, of in about.items()
    }


def _why(row: Row) -> str:
    """Why there are no figures, or why some are missing."""
    if row.fallback:
        return printable(row.fallback)
    failed, first = row.failed_examples, row.texts.get("first_failure", "")
    lost = f"{failed} runs failed: {first}" if failed else ""
    return printable("; ".join(filter(None, (row.reason, lost, row.not_clean))))


def _why_open(row: Row) -> str:
    verdict = row.verdict
    return printable(verdict.sentence) if verdict is not None and verdict.kind == "not decided" else ""


def _beginning(reason: str) -> str:
    """As many parts of a reason as there is room for; the page of the model has all of it."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    room = reason[:_LONGEST_REASON]
    return room.rpartition("; ")[0] or f"{room.rstrip(' ;,.')} ..."


def _busiest(rows: Sequence[Row], models: Sequence[str]) -> str:
    """That the machine was busy, of the row that was timed beside most others; empty where none was."""
    timed = [(row, row.load) for row in rows if row.load is not None and load_in_words(row.load)]
    if not timed:
        return ""
    row, load = max(timed, key=lambda each: each[1].others or 0.0)
    return printable(f"{models[row.model]}, {row.job}: {load_in_words(load)}")
