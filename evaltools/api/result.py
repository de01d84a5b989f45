"""Results in Python: of one command, of several models, and of a search for the operator."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from evaltools.api.frames import changed_frame, changed_rows, data_frame, example_rows, require_pandas
from evaltools.api.measured import Measured, shown
from evaltools.api.plot import Plot, plot_of
from evaltools.errors import OutputError, UsageError
from evaltools.parameter import did_you_mean
from evaltools.report.content import Sources
from evaltools.report.files.output_file import write_file
from evaltools.report.files.rows import csv_of_rows
from evaltools.report.page.file import page_file, require_page_file
from evaltools.report.screen.first import first_screen
from evaltools.report.screen.table import summary_of
from evaltools.result.json_file import encode_json
from evaltools.result.places import reference_of
from evaltools.result.result import Result as Whole
from evaltools.result.result import Row
from evaltools.result.section import Lines, Sentence, Table
from evaltools.result.verdict import Verdict

if TYPE_CHECKING:
    import pandas

    from evaltools import AnyRow
    from evaltools.api.changed_frame import ChangedFrame
    from evaltools.api.confusion import ConfusionFrame


class Rows:
    """What has ``rows``, which are a table: of figures, for a notebook, or one figure against another one."""

    index: ClassVar[str | list[str]] = "configuration"
    """The columns that name a row."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What a table has in each row: the configuration, facts about it, figures."""
        raise NotImplementedError

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per configuration, and per model of several; a column per figure and end of an interval.

        Needs pandas.
        """
        return data_frame(self.rows).set_index(self.index)

    def plot(self, x: str = "", y: str = "") -> Plot:
        """One figure of each configuration against another one, such as ``plot("latency_ms", "top1")``."""
        return plot_of(self.rows, x, y)

    @property
    def short(self) -> Table:
        """The table of the first screen; :attr:`full` has every figure."""
        raise NotImplementedError

    def to_markdown(self) -> str:
        """The table of the first screen in Markdown; :meth:`to_dataframe` has every figure."""
        from evaltools.report.page.rendering.markdown import table_of

        return table_of(self.short)

    def to_latex(self) -> str:
        """The table of the first screen in LaTeX, a ``tabular`` of the package booktabs."""
        from evaltools.report.files.latex import latex_of

        return latex_of(self.short)

    @property
    def full(self) -> FullTable:
        """The table with every figure, for a notebook."""
        return FullTable(self.rows)


class Result(Rows):
    """What was found: ``result["gpu"].top1``; iteration gives each row, ``result.result`` is the whole of it, typed.

    A configuration that could not be measured is there, too, with its reason. ``located`` has, by configuration, what
    ``locate=True`` found of those that differ.
    """

    def __init__(self, result: Whole, located: Mapping[str, Located] | None = None) -> None:
        self.result: Final = result
        self.located: Final = dict(located or {})

    def __getitem__(self, name: str) -> AnyRow:
        """The row of that name; raises :class:`KeyError`."""
        found: AnyRow | None = next((row for row in self if name in (row.name, row.title)), None)
        if found is None:
            names = [row.name for row in self]
            there_are = ", ".join(names)
            raise KeyError(f"no configuration is named {name!r}.{did_you_mean(str(name), names)} There are {there_are}")
        return found

    def __iter__(self) -> Iterator[AnyRow]:
        return (cast("AnyRow", Measured(self.result, place)) for place in range(len(self)))

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

    def save(self, path: str | Path) -> None:
        """Write ``FILE.json``, which :func:`evaltools.load` reads, or ``FILE.csv``, a table of all figures.

        Raises :class:`~evaltools.errors.OutputError`, and :class:`~evaltools.errors.UsageError` for another ending.
        """
        file = Path(path)
        known = {".json": encode_json, ".csv": csv_of_rows}
        if file.suffix.lower() not in known:
            raise UsageError(
                f"path={file}: a result is saved as FILE.json, which evaltools.load reads, or FILE.csv; pages are "
                'written by report("FILE.html")'
            )
        write_file(file, known[file.suffix.lower()](self.result))

    def report(self, path: str | Path, images: str | Path | None = None) -> None:
        """Write one page to forward: ``FILE.html``, or ``FILE.md`` for its first screen.

        ``images`` is the folder where pictures lie now, if they were moved. Raises
        :class:`~evaltools.errors.UsageError` for another ending, and where ``evaltools[report]`` is not installed;
        :class:`~evaltools.errors.OutputError` where the page cannot be written.
        """
        _write_page(self._sources(), Path(path), None if images is None else Path(images))

    def examples(self) -> pandas.DataFrame:
        """One row per example, model and configuration, with the answer; needs pandas and ``record_examples=True``.

        Of a classifier ``truth`` and ``answer`` are labels, ``truth_index`` and ``answer_index`` the numbers of their
        classes, ``latency_ms`` is that of one run in milliseconds.
        """
        return data_frame(example_rows(self.result))

    def confusion(self, configuration: str = "") -> ConfusionFrame:
        """How many examples of each class, a row, were taken for which class, a column; ``.plot()`` draws it.

        It is that of one ``configuration``, the first that was tested where none is named. Needs pandas and
        ``record_examples=True``, and a classifier: :func:`evaltools.imagenet`, or a task whose metric is ``topk``.
        """
        require_pandas()
        from evaltools.api.confusion import confusion_of

        return confusion_of(self.result, configuration)

    def classes(self) -> pandas.DataFrame:
        """One row per configuration and class: ``examples``, how many were ``right``, ``recall`` and ``precision``.

        ``lost`` and ``gained`` count the examples that are right only for the reference, or only here. Of a detector a
        category has ``objects`` and ``ap``. Shares are 0..1. It needs what :meth:`confusion` needs.
        """
        require_pandas()
        from evaltools.api.confusion import classes_of

        return classes_of(self.result)

    def changed(self) -> ChangedFrame:
        """One row per answer that is another than the reference's; its ``.gallery()`` shows the pictures.

        Needs pandas, and ``record_examples=True`` for tasks other than :func:`evaltools.imagenet`.
        """
        return changed_frame(changed_rows(self.result), [self.result])

    @property
    def short(self) -> Table:
        """The table of the first screen."""
        blocks = first_screen({self._name: self.result}).blocks
        table: Table | None = next((block for block in blocks if isinstance(block, Table)), None)
        return _table_of_rows(self.rows) if table is None else table

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What a table has in each row: the configuration, facts about it, figures."""
        return [{"configuration": row.name, **row.facts, **row.columns} for row in self]

    def __repr__(self) -> str:
        return "\n".join(["<Result:", *(f"  {row!r}" for row in self), ">"])

    def _repr_html_(self) -> str:
        """The first screen for a notebook: what stands on top of it, its table, and what needs attention."""
        first = first_screen({self._name: self.result}).blocks
        said = [block.text for block in first if isinstance(block, Sentence)] * (not self.result.is_of_examples)
        return html_list(said) + html_of_table(self.short) + html_list(self.warnings)

    @property
    def _name(self) -> str:
        return Path(self.result.model.file).stem if self.result.is_of_examples else self.result.command

    def _sources(self) -> Sources:
        located = {self._name: [found.result for found in self.located.values()]} if self.located else {}
        return Sources({self._name: self.result}, located=located)


class Located(Result):
    """What was found: the ``verdict``, a row with figures for each of the ``operators``, and those suspected."""

    @property
    def verdict(self) -> Verdict:
        """The answer: its ``kind``, the sentence in ``texts``, and in ``output`` the operators at fault."""
        return self.result.rows[0].verdicts[0]

    @property
    def operators(self) -> list[Row]:
        """Every operator with its errors in ``figures``."""
        return [row for row in self.result.rows if row.role == "operator"]

    @property
    def suspects(self) -> list[Row]:
        """Each operator that was suspected: ``verdict`` says how sure that is, ``rows`` are evidence and causes."""
        return [row for row in self.operators if row.verdict is not None]

    @property
    def keep_in_float(self) -> list[Row]:
        """Of a quantised model compared with another: the operators to keep in float, best first."""
        worth_it = [row for row in self.operators if "keep_in_float" in row.counts]
        return sorted(worth_it, key=lambda row: row.counts["keep_in_float"])

    @property
    def in_words(self) -> list[str]:
        """The sentences of the command line."""
        lines = next(section.blocks[0] for section in self.result.blocks if section.place == "task")
        assert isinstance(lines, Lines)
        return [str(line) for line in lines.lines if line]

    @property
    def warnings(self) -> list[str]:
        """What needs attention."""
        return self.result.warnings

    def to_dataframe(self) -> pandas.DataFrame:
        """One row per operator; needs pandas."""
        return data_frame([_row(operator) for operator in self.operators]).set_index("index")

    def _sources(self) -> Sources:
        return Sources(results={Path(self.result.models[0].file).stem: self.result})

    def __repr__(self) -> str:
        return f"<Located: {self.in_words[0]}>"

    def _repr_html_(self) -> str:
        return html_list([*self.in_words, *self.warnings])


def _row(operator: Row) -> dict[str, Any]:
    figures = {name: figure.value for name, figure in operator.figures.items()}
    return {"index": operator.counts["index"], **operator.texts, **figures}


class Models(Rows, Mapping[str, Result]):
    """The result of each model by its name: ``models["int8"]["xnnpack"].top1``.

    The first model is the reference of the others, unless ``reference_model`` states another one.
    """

    index: ClassVar[str | list[str]] = ["model", "configuration"]

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
        _write_page(Sources({name: result.result for name, result in self.items()}), Path(path))

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

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of all models; a reference that several were compared with is there once, as its own model's.

        It was timed in turns with each of them: ``reference_latency_ms`` is the time that ``latency_ratio`` is by.
        """
        rows = (
            {
                **row,
                "model": self._model_of(name, each.result, row["configuration"]),
                "reference_latency_ms": _time_of_reference(entry.entry, each.result),
            }
            for name, each in self.items()
            for entry, row in zip(each, each.rows, strict=True)
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

    @property
    def short(self) -> Table:
        """The table of the first screen."""
        table = summary_of({name: result.result for name, result in self.items()})
        return _table_of_rows(self.rows) if table is None else table

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        return html_of_table(self.short) + html_list(self.warnings)


def _time_of_reference(row: Row, result: Whole) -> float | None:
    reference = reference_of(row, result.rows)
    return None if reference is None or reference is row else reference.value("latency_ms")


def _once(rows: Iterable[dict[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """The first of the rows that have the same in some columns."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), row)
    return list(found.values())


def _write_page(sources: Sources, file: Path, images: Path | None = None) -> None:
    require_page_file(file, "report")
    write_file(file, page_file(sources, file, images))


class FullTable:
    """Every figure of every configuration; a notebook shows it as a table."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "\n".join(", ".join(f"{name}={shown(value)}" for name, value in row.items()) for row in self.rows)

    def _repr_html_(self) -> str:
        return html_table(self.rows)


def _table_of_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Every figure as a table, where a command has no table of its own."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return Table("", columns, [[shown(row.get(column)) for column in columns] for row in rows])


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
    body = "".join(_line("td", [shown(row.get(column)) for column in columns]) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
