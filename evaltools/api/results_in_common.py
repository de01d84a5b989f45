"""What results in Python have in common: entries with figures by name, tables, files."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from evaltools.api.frames import data_frame
from evaltools.api.plot import Plot, plot_of
from evaltools.parameter import did_you_mean
from evaltools.report.content import Sources
from evaltools.report.files.output_file import write_file
from evaltools.report.page.file import page_file, require_page_file
from evaltools.result.evaluation import ConfigurationResult, DelegationProof, EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from evaltools.result.result import Row as ResultRow
from evaltools.result.section import Table

if TYPE_CHECKING:
    import pandas

_DIGITS: Final = 4


Row = TypeVar("Row", bound=ConfigurationResult | ResultRow)
Timing = TypeVar("Timing", bound=EvaluationResult | Result)


class Entry(ABC, Generic[Timing, Row]):
    """One configuration: its figures are attributes, and in :attr:`figures` by name; ``entry`` has all of it."""

    def __init__(self, result: Timing, entry: Row) -> None:
        self._result: Final = result
        self.entry: Final = entry

    @property
    def name(self) -> str:
        """The name that it was given."""
        return self.entry.name

    @property
    def is_measured(self) -> bool:
        """Whether it has figures; :attr:`reason` says why not."""
        return self.entry.status == "measured"

    @property
    def reason(self) -> str | None:
        """Why it was not measured."""
        return self.entry.reason or None

    @property
    def delegation(self) -> DelegationProof | None:
        """Proof of what ran where: ``delegated_nodes`` of ``total_nodes``."""
        return self.entry.delegation

    @property
    def why_no_figures(self) -> str:
        """Why there are none, where that is so."""
        return self.reason or "nothing was measured"

    @property
    def main_figures(self) -> Mapping[str, float | None]:
        """Those that are shown first."""
        return self.figures

    @cached_property
    def figures(self) -> Mapping[str, float | None]:
        """Every figure by its name."""
        return self._figures()

    @property
    def columns(self) -> Mapping[str, float | None]:
        """Every figure by the name of its column in a table."""
        return self.figures

    @abstractmethod
    def _figures(self) -> Mapping[str, float | None]: ...

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, str | None]:
        """What stands before the figures in a table."""

    def __getattr__(self, name: str) -> Any:
        """A figure by its name."""
        if name.startswith("_") or not self.__dict__:
            raise AttributeError(name)
        known = self.figures
        if name not in known:
            there_are = ", ".join(known) or f"none: {self.why_no_figures}"
            raise AttributeError(f"{self.name} has no figure {name!r}.{did_you_mean(name, known)} It has {there_are}")
        return known[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.figures]

    @property
    def title(self) -> str:
        """Its name, with what else distinguishes it."""
        return self.name

    @property
    def judged(self) -> str:
        """The verdict on it in a word or two, where it is said beside its name."""
        return ""

    def __repr__(self) -> str:
        if not self.is_measured:
            return f"<{self.title}: not measured: {self.reason}>"
        figures = [f"{name}={_shown(value)}" for name, value in self.main_figures.items()]
        shown = ", ".join(filter(None, [self.judged, *figures]))
        return f"<{self.title}: {shown or f'no figures: {self.why_no_figures}'}>"


Each = TypeVar("Each", bound=Entry[Any, Any])
Whole = TypeVar("Whole", bound=EvaluationResult | Result)


class Saved(ABC, Generic[Whole]):
    """Something that was found, of which ``result`` is everything, typed: it can be saved, and shown on a page."""

    def __init__(self, result: Whole) -> None:
        self.result: Final = result

    @abstractmethod
    def _sources(self) -> Sources: ...

    def save(self, path: str | Path) -> None:
        """Write the result as JSON; :func:`evaltools.load` reads it.

        Raises :class:`~evaltools.errors.OutputError`.
        """
        write_file(Path(path), encode_json(self.result))

    def report(self, path: str | Path) -> None:
        """Write one page to forward: ``FILE.html``, or ``FILE.md`` for its first screen."""
        self._write_page(path, None)

    def _write_page(self, path: str | Path, images: str | Path | None) -> None:
        file = Path(path)
        require_page_file(file, "report")
        write_file(file, page_file(self._sources(), file, None if images is None else Path(images)))


class Entries(Saved[Timing], Generic[Timing, Each]):
    """A result: ``result["gpu"]`` is the entry of that name, iteration gives all."""

    @abstractmethod
    def _entries(self) -> Sequence[Each]: ...

    def __getitem__(self, name: str) -> Each:
        """The entry of that name; raises :class:`KeyError`."""
        found = next((entry for entry in self if name in (entry.name, entry.title)), None)
        if found is None:
            names = [entry.name for entry in self]
            there_are = ", ".join(names)
            raise KeyError(f"no configuration is named {name!r}.{did_you_mean(str(name), names)} There are {there_are}")
        return found

    def _ipython_key_completions_(self) -> list[str]:
        return [entry.name for entry in self]

    def __contains__(self, name: object) -> bool:
        return any(entry.name == name for entry in self)

    def __iter__(self) -> Iterator[Each]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

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
        return [{"configuration": entry.name, **entry.facts, **entry.columns} for entry in self]

    def __repr__(self) -> str:
        return "\n".join([f"<{type(self).__name__}:", *(f"  {entry!r}" for entry in self), ">"])

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        return self._table() + html_list(self.warnings)

    def _table(self) -> str:
        return html_table(self.rows)

    @property
    def warnings(self) -> list[str]:
        """What needs attention before these figures are believed."""
        lost = [f"{entry.title} was not measured: {entry.reason}" for entry in self if not entry.is_measured]
        return [*self.result.warnings, *lost]


class FullTable:
    """Every figure of every configuration; a notebook shows it as a table."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "\n".join(", ".join(f"{name}={_shown(value)}" for name, value in row.items()) for row in self.rows)

    def _repr_html_(self) -> str:
        return html_table(self.rows)


def html_of_table(table: Table) -> str:
    """A table of a page for a notebook."""
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]
    return html_table([dict(zip(table.columns, row, strict=True)) for row in rows])


def html_list(texts: Sequence[str]) -> str:
    """A line for each text."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table for a notebook."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = _line("th", columns)
    body = "".join(_line("td", [_shown(row.get(column)) for column in columns]) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)
