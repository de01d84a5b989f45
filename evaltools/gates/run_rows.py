"""What gates look at: the rows of one model in a run, whatever command gave them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from evaltools.result.facts import Environment, Model
from evaltools.result.result import Result, Row, standing_alone


class RunRows(Struct, frozen=True):
    """The rows of one model with one command.

    ``task``, ``subject``, what that is called, and the name of the ``model`` are what patterns are compared with; all
    are empty where they are not known. ``failure`` says why there are no rows, also where their names are not known.
    ``given`` is everything else that decides the figures, by name. ``measured`` is the model, None where nothing was.
    """

    task: str = ""
    subject: str = ""
    model: str = ""
    rows: Sequence[Row] = ()
    failure: str = ""
    elapsed_s: float = 0.0
    warnings: Sequence[str] = ()
    given: dict[str, str] = field(default_factory=dict)
    measured: Model | None = None
    environment: Environment | None = None

    @property
    def tests(self) -> list[Row]:
        """The rows that are no references."""
        return [row for row in self.rows if row.role == "test"]


def parts_of(run: str, result: Result) -> dict[str, RunRows]:
    """What gates are compared with, by the name of the run or a part of it."""
    if not result.rows:
        return {run: _of_rows((), result)}
    names = part_names(run, [model.file for model in result.models])
    found: dict[str, list[Row]] = {}
    for row in standing_alone(result):
        name = f"{run}/{result.model_names[row.model]}/{row.job}" if row.job else names[row.model]
        found.setdefault(name, []).append(row)
    return {name: _of_rows(rows, result) for name, rows in found.items()}


def _of_rows(rows: Sequence[Row], result: Result) -> RunRows:
    first = rows[0] if rows else Row("", command=result.command)
    model = result.models[first.model]
    named = [row for row in rows if not row.is_all]
    return RunRows(
        first.command,
        first.texts.get("subject", first.command),
        Path(model.file).name,
        named,
        "" if named else first.reason,
        first.value("elapsed_s") or result.environment.elapsed_s,
        () if first.job else result.warnings,
        first.given,
        model,
        result.environment,
    )


def part_names(run: str, models: Sequence[str]) -> list[str]:
    """The names of the runs of one or several models.

    >>> part_names("fast", ["a/m.tflite"]), part_names("fast", ["a/m.tflite", "n.tflite"])
    (['fast'], ['fast/m', 'fast/n'])
    """
    if len(models) == 1:
        return [run]
    stems = [Path(model).stem for model in models]
    return [f"{run}/{stem if stems.count(stem) == 1 else model}" for stem, model in zip(stems, models, strict=True)]
