"""Results of several models in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.api.result import Result
from evaltools.api.results_in_common import data_frame, html_table
from evaltools.report.files.output_file import write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import page_file, require_page_file
from evaltools.result.json_file import encode_json

if TYPE_CHECKING:
    import pandas


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

        Raises :class:`~evaltools.errors.OutputError`.
        """
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

    def _rows(self) -> list[dict[str, Any]]:
        return [{"model": name, **row} for name, result in self.items() for row in result.rows]

    def __repr__(self) -> str:
        entries = (f"  {name}: {entry!r}" for name, result in self.items() for entry in result)
        return "\n".join(["<Models:", *entries, ">"])

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        return html_table(self._rows())
