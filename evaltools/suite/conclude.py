"""From the rows of all jobs to the result of a suite."""

from __future__ import annotations

from pathlib import Path

from evaltools.report.page.sections.run import origin
from evaltools.result.facts import Environment, Model
from evaltools.result.result import HINT, NEXT, WARNING, Result, Row, model_names
from evaltools.result.section import Note, Section
from evaltools.suite.screen import RESULT, first_screen, next_step


def conclude(environment: Environment, models: list[Model], rows: list[Row], stopped: str = "") -> Result:
    """The result of the rows that the jobs gave, with what there is to show of them."""
    names = model_names([Path(model.file) for model in models])
    notes = [Note(WARNING, f"the suite ended early: {stopped}", "open")] if stopped else []
    notes.append(Note(NEXT, next_step(rows, names, environment.command)))
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
        blocks=[Section("", first_screen(rows, names), "first"), origin(environment)],
    )
