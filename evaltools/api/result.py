"""The result of any command in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.api.frames import changed_frame, changed_rows, data_frame, example_rows
from evaltools.api.locating import Located
from evaltools.api.measured import Measured
from evaltools.api.plot import Plot, plot_of
from evaltools.api.results_in_common import FullTable, Saved, html_list, html_of_table, html_table
from evaltools.parameter import did_you_mean
from evaltools.report.content import Sources
from evaltools.report.page.sections.summary import summary_of
from evaltools.result.result import Result as Whole
from evaltools.result.section import Sentence, Table

if TYPE_CHECKING:
    import pandas

    from evaltools.api.changed_frame import ChangedFrame


class Result(Saved):
    """What was found: ``result["gpu"].top1``; iteration gives each row, ``result.result`` is the whole of it, typed.

    A configuration that could not be measured is there, too, with its reason. ``located`` has, by configuration, what
    ``locate=True`` found of those that differ.
    """

    def __init__(self, result: Whole, located: Mapping[str, Located] | None = None) -> None:
        super().__init__(result)
        self.located: Final = dict(located or {})

    def __getitem__(self, name: str) -> Measured:
        """The row of that name; raises :class:`KeyError`."""
        found = next((row for row in self if name in (row.name, row.title)), None)
        if found is None:
            names = [row.name for row in self]
            there_are = ", ".join(names)
            raise KeyError(f"no configuration is named {name!r}.{did_you_mean(str(name), names)} There are {there_are}")
        return found

    def __iter__(self) -> Iterator[Measured]:
        return (Measured(self.result, place) for place in range(len(self)))

    def __len__(self) -> int:
        return len(self.result.rows)

    def __contains__(self, name: object) -> bool:
        return any(row.name == name for row in self.result.rows)

    def _ipython_key_completions_(self) -> list[str]:
        return [row.name for row in self.result.rows]

    @property
    def complete(self) -> bool:
        """Whether everything was run; else ``result.stopped`` says why not."""
        return self.result.complete

    @property
    def warnings(self) -> list[str]:
        """What needs attention: also what was not measured, ended early, failed, or did not end cleanly."""
        lost = [f"{row.title}: {row.why_no_figures}" for row in self if row.why_no_figures]
        open_ = [f"{row.title}: {row.doubt}" for row in self if row.entry.job and row.doubt and not row.why_no_figures]
        return list(dict.fromkeys([*self.result.warnings, *lost, *open_]))

    def report(self, path: str | Path, images: str | Path | None = None) -> None:
        """Write one page to forward: ``FILE.html``, or ``FILE.md`` for its first screen.

        ``images`` is the folder where pictures lie now, if they were moved. Raises
        :class:`~evaltools.errors.UsageError` for another ending, and where ``evaltools[report]`` is not installed;
        :class:`~evaltools.errors.OutputError` where the page cannot be written.
        """
        self._write_page(path, images)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per configuration, one column per figure and end of an interval; needs pandas."""
        return data_frame(self.rows).set_index("configuration")

    def examples(self) -> pandas.DataFrame:
        """One row per example, model and configuration, with the answer; needs pandas and ``record_examples=True``."""
        return data_frame(example_rows(self.result))

    def changed(self) -> ChangedFrame:
        """One row per answer that is another than the reference's; its ``.gallery()`` shows the pictures.

        Needs pandas, and ``record_examples=True`` for tasks other than :func:`evaltools.imagenet`.
        """
        return changed_frame(changed_rows(self.result), [self.result])

    def plot(self, x: str, y: str) -> Plot:
        """One figure of each configuration against another one, such as ``plot("latency_ms", "top1")``."""
        return plot_of(self.rows, x, y)

    @property
    def full(self) -> FullTable:
        """The table with every figure, for a notebook."""
        return FullTable(self.rows)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What a table has in each row: the configuration, facts about it, figures."""
        return [{"configuration": row.name, **row.facts, **row.columns} for row in self]

    def __repr__(self) -> str:
        return "\n".join(["<Result:", *(f"  {row!r}" for row in self), ">"])

    def _repr_html_(self) -> str:
        """The first screen for a notebook: what stands on top of it, its table, and what needs attention."""
        first = [block for section in self.result.blocks if section.place == "first" for block in section.blocks]
        said = [block.text for block in first if isinstance(block, Sentence)]
        table: Table | None = next((block for block in first if isinstance(block, Table)), None)
        if self.result.is_of_examples:
            table = summary_of({self._name: self.result})
        return (
            html_list(said)
            + (html_table(self.rows) if table is None else html_of_table(table))
            + html_list(self.warnings)
        )

    @property
    def _name(self) -> str:
        return Path(self.result.model.file).stem if self.result.is_of_examples else self.result.command

    def _sources(self) -> Sources:
        located = {self._name: [found.result for found in self.located.values()]} if self.located else {}
        return Sources({self._name: self.result}, located=located)
