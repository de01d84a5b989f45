"""From the rows of all jobs to the result of a suite."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.report.screen.table import is_good, is_shown
from evaltools.report.words.facts import load_in_words
from evaltools.result.facts import Environment, Model
from evaltools.result.result import HINT, Result, Row, model_names, next_step, warning
from evaltools.result.section import Note
from evaltools.text import printable

RESULT: Final = "result"
"""The text with the name of the file that has all about a row."""
_RUN_DIR: Final = ("--run_dir=", "--run-dir=")


def conclude(environment: Environment, models: list[Model], rows: list[Row], stopped: str = "") -> Result:
    """The result of the rows that the jobs gave, with what to do next."""
    names = model_names([Path(model.file) for model in models])
    notes = [*map(warning, _busiest(rows, names)), _next_step(rows, names, environment.command)]
    if any(RESULT in row.texts for row in rows):
        notes.append(Note(HINT, "all about one of the models: evaltools report RUN_DIR/entries/NAME/result.json"))
    return Result(
        command="suite",
        environment=environment,
        models=models,
        rows=rows,
        complete=not stopped,
        stopped=stopped,
        notes=notes,
    )


def _next_step(rows: Sequence[Row], models: Sequence[str], typed: Sequence[str]) -> Note:
    """The page of the first row that is not as it should be."""
    stated = [word.partition("=")[2] for word in typed if word.startswith(_RUN_DIR)]
    for row in filter(is_shown, rows):
        if stated and row.texts.get(RESULT) and not is_good(row):
            command = shlex.join(["evaltools", "report", f"{stated[-1]}/{row.texts[RESULT]}", "--output=FILE.html"])
            return next_step(f"shows all about {models[row.model]}", command)
    if not stated:
        return next_step("the same command with --run_dir=FOLDER keeps the result of each model, for evaltools report")
    return next_step(
        "says what a later suite measured worse than this one", "evaltools gate NEW.json --against=OLD.json"
    )


def _busiest(rows: Sequence[Row], models: Sequence[str]) -> Iterator[str]:
    """That the machine was busy, of the row that was timed beside most others; nothing where none was."""
    timed = [(row, row.load) for row in rows if row.load is not None and load_in_words(row.load)]
    if timed:
        row, load = max(timed, key=lambda each: each[1].others or 0.0)
        yield printable(f"{models[row.model]}, {row.job}: {load_in_words(load)}")
