"""What stands in the rows of frames: figures with their intervals, examples, and answers that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.result.figure import Figure, contribution_to
from evaltools.result.result import CHANGED, EXAMPLES, Result, Row

if TYPE_CHECKING:
    import pandas

    from evaltools.api.changed_frame import ChangedFrame

Cells = dict[str, Any]
EXAMPLE: Final = "example"
CONFIGURATION: Final = "configuration"


def data_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> pandas.DataFrame:
    """A table; raises :class:`~evaltools.errors.UsageError` where pandas is not installed."""
    require_pandas()
    import pandas

    return pandas.DataFrame(rows, columns=columns)


def require_pandas() -> None:
    """Raise :class:`~evaltools.errors.UsageError` where pandas is not installed."""
    try:
        import pandas  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "to_dataframe, examples, changed, confusion and classes need pandas: pip install pandas"
        ) from error


def changed_frame(rows: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> ChangedFrame:
    """A table of what changed, which can show pictures of these results; raises as :func:`data_frame` does."""
    table = data_frame(rows, changed_columns(results[0]))
    from evaltools.api.changed_frame import ChangedFrame

    frame = ChangedFrame(table)
    frame.results = tuple(results)
    return frame


def model_name(result: Result, entry: Row) -> str:
    """What the model is called that a row is of, or that it ran in the place of that."""
    return result.model_names[entry.model] if entry.other_model is None else Path(entry.other_model.file).stem


def with_intervals(figures: Mapping[str, Figure], entry: Row) -> dict[str, float | None]:
    """Each figure, and behind one that has a 95 % interval ``NAME_low`` and ``NAME_high``.

    The last ones are ``change`` of the first figure that was judged against what it was compared with.
    """
    found: dict[str, float | None] = {}
    for name, figure in figures.items():
        found[name] = figure.value
        if figure.interval is not None:
            found |= {f"{name}_low": figure.interval.low, f"{name}_high": figure.interval.high}
    verdict = entry.verdicts[0] if entry.verdicts else None
    if verdict is not None and verdict.change is not None:
        found |= {"change": verdict.change, "change_low": verdict.low, "change_high": verdict.high}
    return found


def example_rows(result: Result) -> list[Cells]:
    """A row for each example and configuration that answered it.

    Raises :class:`~evaltools.errors.UsageError` where the examples were not recorded.
    """
    recorded = _recorded(result, EXAMPLES)
    if CONFIGURATION in recorded:
        return _rows(result, recorded)
    models = {row.name: model_name(result, row) for row in result.rows}
    scores = {
        row.name: {
            name if figure.scores else contribution_to(name): figure.of_examples
            for name, figure in row.figures.items()
            if figure.of_examples
        }
        for row in result.rows
    }
    return [
        {EXAMPLE: example, "model": models[name], CONFIGURATION: name, **found}
        for place, example in enumerate(recorded[EXAMPLE])
        for name, own in scores.items()
        for found in [{each: kept[place] for each, kept in own.items()}]
        if any(value is not None for value in found.values())
    ]


def changed_columns(result: Result) -> list[str]:
    """The columns of :func:`changed_rows`."""
    own = [name for name in result.tables.get(CHANGED, {}) if name not in (EXAMPLE, CONFIGURATION)]
    return [EXAMPLE, "model", CONFIGURATION, *own]


def changed_rows(result: Result) -> list[Cells]:
    """A row for each answer of a configuration that is another than the reference's.

    Of a task of one's own: for each score of an example that differs. Raises :class:`~evaltools.errors.UsageError`
    where what is needed for it was not recorded.
    """
    return _rows(result, _recorded(result, CHANGED))


def _rows(result: Result, columns: Mapping[str, Sequence[Any]]) -> list[Cells]:
    """The rows of columns, with the model that each configuration ran behind the example."""
    models = {row.name: model_name(result, row) for row in result.rows}
    names = [name for name in columns if name not in (EXAMPLE, CONFIGURATION)]
    return [
        {EXAMPLE: example, "model": models[name], CONFIGURATION: name, **dict(zip(names, values, strict=True))}
        for example, name, *values in zip(
            columns[EXAMPLE], columns[CONFIGURATION], *(columns[each] for each in names), strict=True
        )
    ]


def _recorded(result: Result, name: str) -> Mapping[str, Sequence[Any]]:
    """A table of single examples; raises :class:`UsageError` where they were not recorded, or never are."""
    if result.tables.get(name):
        return result.tables[name]
    command = task_command(result.command) if result.is_of_examples else None
    if command is None or "record_examples" not in command.parameters:
        words = result.command if command is None else command.words
        raise UsageError(f"a result of {words} says nothing of single examples; result.result has what it says")
    raise UsageError("the examples were not recorded; give record_examples=True where they are measured")
