"""Results of several models in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.api.frames import changed_frame, changed_rows, data_frame, example_rows
from evaltools.api.plot import Plot, plot_of
from evaltools.api.result import Result
from evaltools.api.results_in_common import FullTable, html_list, html_of_table, html_table
from evaltools.errors import OutputError
from evaltools.report.content import Sources
from evaltools.report.files.output_file import write_file
from evaltools.report.page.file import page_file, require_page_file
from evaltools.report.page.sections.summary import summary_of
from evaltools.result.json_file import encode_json

if TYPE_CHECKING:
    import pandas

    from evaltools.api.changed_frame import ChangedFrame
    from evaltools.result.result import Result as Whole


def _once(rows: Iterable[dict[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """The first of the rows that have the same in some columns."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), row)
    return list(found.values())


class Models(Mapping[str, Result]):
    """The result of each model by its name: ``models["int8"]["xnnpack"].top1``.

    The first model is the reference of the others, unless ``reference_model`` states another one.
    """

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results: Final = dict(results)

    def __getitem__(self, name: str) -> Result:
        """The result of a model; raises :class:`KeyError`."""
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def warnings(self) -> list[str]:
        """What needs attention."""
        return [f"{name}: {warning}" for name, result in self.items() for warning in result.warnings]

    def save(self, folder: str | Path) -> None:
        """Write the result of each model as ``FOLDER/NAME.json``, which :func:`evaltools.load` reads.

        A folder that is not there is made. Raises :class:`~evaltools.errors.OutputError`.
        """
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder} cannot be made: {error.strerror}") from error
        for name, result in self.items():
            write_file(Path(folder) / f"{name}.json", encode_json(result.result))

    def report(self, path: str | Path) -> None:
        """Write one page about all models: ``FILE.html``, or ``FILE.md`` for its first screen."""
        file = Path(path)
        require_page_file(file, "report")
        sources = Sources({name: result.result for name, result in self.items()})
        write_file(file, page_file(sources, file, None))

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per model and configuration, one column per figure; needs pandas."""
        return data_frame(self._rows()).set_index(["model", "configuration"])

    def examples(self) -> pandas.DataFrame:
        """One row per example, model and configuration: see :meth:`evaltools.Result.examples`."""
        rows = (
            {**row, "model": self._model_of(name, each.result, row["configuration"])}
            for name, each in self.items()
            for row in example_rows(each.result)
        )
        return data_frame(_once(rows, "example", "model", "configuration"))

    def changed(self) -> ChangedFrame:
        """One row per answer that is another than the reference's: see :meth:`evaltools.Result.changed`."""
        rows = [{**row, "model": name} for name, each in self.items() for row in changed_rows(each.result)]
        return changed_frame(rows, [each.result for each in self.values()])

    def plot(self, x: str, y: str) -> Plot:
        """One figure of each model and configuration against another one."""
        return plot_of(self._rows(), x, y)

    @property
    def full(self) -> FullTable:
        """The table with every figure, for a notebook."""
        return FullTable(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        """The rows of all models; a reference that several were compared with is there once, as its own model's."""
        rows = (
            {**row, "model": self._model_of(name, each.result, row["configuration"])}
            for name, each in self.items()
            for row in each.rows
        )
        return _once(rows, "model", "configuration")

    def _model_of(self, name: str, result: Whole, configuration: str) -> str:
        """The name of the model that a configuration ran: the result's, but of a reference that ran another model."""
        other = next(row.other_model for row in result.rows if row.name == configuration)
        if other is None:
            return name
        known = (each for each, found in self.items() if found.result.model.sha256 == other.sha256)
        return next(known, Path(other.file).stem)

    def __repr__(self) -> str:
        entries = (f"  {name}: {entry!r}" for name, result in self.items() for entry in result)
        return "\n".join(["<Models:", *entries, ">"])

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        table = summary_of({name: result.result for name, result in self.items()})
        shown = html_table(self._rows()) if table is None else html_of_table(table)
        return shown + html_list(self.warnings)
