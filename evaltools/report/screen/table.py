"""The table of the first screen: a row for each row of a result that counts, of one command's results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.known_tasks import task_command
from evaltools.metrics.words import change
from evaltools.report.content import sentences
from evaltools.report.screen.rows import ModelRow, ModelRows, is_lost, is_share
from evaltools.report.words.facts import (
    accuracy_of,
    delegated,
    is_uneven,
    latency_of,
    median_time,
    median_with_interval,
    model_name,
    speed_of,
    without_interval_in_doubt,
)
from evaltools.report.words.numbers import (
    figure,
    figure_with_interval,
    in_milliseconds,
    megabytes,
    times_as_fast,
)
from evaltools.result.figure import ANSWERS, CHANGED_ANSWERS
from evaltools.result.metrics import of_task
from evaltools.result.places import machine_of, reference_of
from evaltools.result.result import ALL, FRONT, Result, Row
from evaltools.result.section import Cell, Number, Table, Word, number_cell, path_to
from evaltools.result.verdict import NOTHING_CHANGED

BENCHMARK: Final = "benchmark"
SUITE: Final = "suite"
_FACTS: Final = {"file MB": "the model has {} MB", "examples": "{} examples", "machine": "{}", "versions": "{}"}
"""Columns that are a line below the table where they say the same in each row."""
_UNLIKE: Final = "Not all of it was measured on one machine, with the same versions and on the same examples"
_FELL_BACK: Final = Word("fell back", "bad")
_MEASURED: Final = "measured"
_FIRST: Final = "first"
_SPEED: Final = "speed: how many times as fast, of times that were taken in turns,"
_VERDICT: Final = "verdict"
_MOST_METRICS: Final = 4
"""Beside the one that decides."""


class _At(Struct, frozen=True):
    """A row of the table, with what its cells need to know; ``name`` is that of its model's file."""

    found: ModelRows
    row: ModelRow
    name: str
    several: bool
    is_alike: bool
    is_on_front: bool

    @property
    def entry(self) -> Row:
        """The configuration."""
        return self.row.row

    def path(self, *names: str | int) -> str:
        """Where a fact of the configuration is in the JSON result, empty for those of several."""
        place = self.row.result.rows.index(self.entry)
        return "" if self.several else f"rows/{place}/{path_to(*names)}"

    def figure(self, name: str, show: Callable[[float], str]) -> Cell:
        """A figure; ``-`` where there is none, nothing of what failed."""
        if is_lost(self.row):
            return ""
        return number_cell(self.entry.value(name), show, self.path("figures", name, "value"))


class _Column(Struct, frozen=True):
    """A column of the table: its heading and what stands in it.

    Of those that do not fit a terminal, the one of the highest ``rank`` is left out first, none of rank 0.
    ``fell_back`` is the cell of what ran on the CPU instead of its delegate, whose figures would look like the
    delegate's; None for the same.
    """

    heading: str
    cell: Callable[[_At], Cell]
    rank: int = 0
    fell_back: Cell | None = ""
    of_several: bool = False


def summary_of(results: Mapping[str, Result]) -> Table | None:
    """A row for each configuration; the columns of several results that distinguish them stand at the end.

    None for results of several commands or tasks, and where there is no configuration.
    """
    found, several = ModelRows.of(results), len(results) > 1
    if not found.rows or len(list(by_task(results))) > 1:
        return None
    command = found.rows[0].result.command
    shown = _TABLES.get(command, _EVALUATIONS)
    rows = [row for row in found.rows if command != SUITE or is_shown(row.row)]
    are_alike = not several or is_alike(results.values())
    front = (found.on_front if several and are_alike else None) or [False] * len(found.rows)
    on_front = {id(row): is_on for row, is_on in zip(found.rows, front, strict=True)}
    if command == BENCHMARK:
        rows.sort(key=lambda row: latency_of(row.row) or math.inf)
    names = _model_names(results)
    places = [_At(found, row, _name_of_model(row, names), several, are_alike, on_front[id(row)]) for row in rows]
    columns = [
        column
        for each in shown.columns
        if several or not each.of_several
        for column in ((*map(_metric, _other_metrics(found)), each) if each.heading == _VERDICT else (each,))
    ]
    below = sentences(
        "On the front: no other one is as good and as fast" if any(front) else "",
        _how_to_read(found) if shown is _EVALUATIONS else "",
        _speed_in_words(places) if command in (BENCHMARK, SUITE) else "",
        _UNLIKE if several and not are_alike else "",
        *(_compared_with(results) if several else ()),
    )
    table = Table(
        shown.caption,
        [each.heading or found.heading for each in columns],
        [[_cell(column, at) for column in columns] for at in places],
        below,
        sum(each.heading in _NAMES for each in columns),
        [each.rank for each in columns],
    )
    models = {at.name for at in places}
    is_named = all(at.row.model == at.name for at in places)
    left_out = {"result"} if is_named or not several else set()
    left_out |= {"model"} if len(models) == 1 and not (several and is_named) and command != SUITE else set()
    left_out |= {"job"} if len({row.row.job for row in rows}) == 1 else set()
    kept = [place for place, each in enumerate(columns) if each.heading not in left_out]
    return table.of_columns(kept).compact.with_facts(_FACTS)


def _other_metrics(found: ModelRows) -> list[str]:
    """The other metrics of a task of one's own, whose figures are means or of all examples together."""
    main = found.any_figure
    if main is None or found.are_outputs or (main.spread is None and _has_accuracy(found.rows[0].result)):
        return []
    known = {name: None for row in found.rows for name, each in of_task(row.row).items() if each.spread or each.draws}
    return [name for name in known if name != found.figure][:_MOST_METRICS]


def _has_accuracy(result: Result) -> bool:
    return not result.is_of_examples or task_command(result.command).accuracy is not None


def _metric(name: str) -> _Column:
    return _Column(name, lambda at: _figure(at, name), 5)


def _cell(column: _Column, at: _At) -> Cell:
    return column.cell(at) if column.fell_back is None or not at.entry.fallback else column.fell_back


def _name_of_model(row: ModelRow, names: Mapping[str, str]) -> str:
    if row.result.is_of_examples:
        return names.get(row.model, row.model)
    return model_name(row.result.models, row.row)


def is_shown(row: Row) -> bool:
    """Whether a row of a suite is in its table: not a reference that is only there for comparison."""
    return row.role == "test" or accuracy_of(row) is not None


def word_of(row: ModelRow) -> str:
    """What became of a row in a word or two; of a suite's that has no verdict, that it was measured."""
    return row.word or ("" if row.result.is_of_examples else _MEASURED)


def _speed_in_words(places: Sequence[_At]) -> str:
    """What a speed is compared with: the first row of a benchmark, else the reference; empty where none is known."""
    commands = {at.entry.command for at in places if "latency_ratio" in at.entry.figures}
    of_model = " of the same model" if len({at.name for at in places}) > 1 else ""
    texts = [f"as the first{of_model}"] if BENCHMARK in commands else []
    texts += [f"as the reference{' in the other jobs' if texts else ''}"] if commands - {BENCHMARK} else []
    return f"{_SPEED} {', '.join(texts)}" if texts else ""


def _how_to_read(found: ModelRows) -> str:
    """Which direction is better of figures that are no accuracy."""
    if found.are_outputs:
        return (
            "relative RMS: size of the difference by that of the reference over all runs, of the worst output; "
            "lower is better"
        )
    main = found.any_figure
    if main is None or main.spread is None:
        return ""
    better = {found.heading: main.better}
    for name in _other_metrics(found):
        better[name] = next(row.row.figures[name].better for row in found.rows if name in row.row.figures)
    by_direction = {way: [name for name, own in better.items() if own == way] for way in ("higher", "lower")}
    return "; ".join(f"{', '.join(names)}: {way} is better" for way, names in by_direction.items() if names)


def _verdict(at: _At) -> Cell:
    text = word_of(at.row)
    return Word(text, "" if text == _MEASURED else at.row.tone) if text else ""


def _accuracy(at: _At) -> Cell:
    """With half the width of its 95 % interval, where it has one."""
    return "" if at.found.figure is None else _figure(at, at.found.figure)


def _figure(at: _At, name: str) -> Cell:
    known = at.row.figure(name)
    if known is None:
        return ""
    return Number(figure_with_interval(known), known.value, at.path("figures", name, "value"))


def _change(at: _At) -> Cell:
    verdict = at.row.verdict_on(at.found.figure)
    if verdict is None or verdict.change is None or is_lost(at.row):
        return ""
    ends = (None, None) if verdict.kind in NOTHING_CHANGED else (verdict.low, verdict.high)
    text = change(verdict.change, *ends, is_share(at.entry, verdict))
    return Number(text, verdict.change, at.path("verdicts", at.entry.verdicts.index(verdict), "change"))


def _changed_answers(at: _At) -> Cell:
    """How many answers are others than the reference's, of the output in which most are; empty for other outputs."""
    found = [
        (changed, answers, at.path("parts", place, "figures", CHANGED_ANSWERS, "value"))
        for place, part in enumerate(at.entry.parts)
        if CHANGED_ANSWERS in part.figures
        for changed, answers in [(part.figures[name].value or 0.0 for name in (CHANGED_ANSWERS, ANSWERS))]
    ]
    if not found or is_lost(at.row):
        return ""
    changed, answers, path = max(found, key=lambda each: each[0] / max(1, each[1]))
    return Number(f"{changed:.0f} of {answers:.0f}", changed, path)


def _latency(at: _At) -> Cell:
    median_ms, text = at.entry.value("latency_ms"), median_time(at.entry)
    return text if median_ms is None else Number(text, median_ms, at.path("figures", "latency_ms", "value"))


def _speed(at: _At) -> Cell:
    """How many times as fast as its reference; empty where no time of both is known."""
    entry, result = at.entry, at.row.result
    ratio = speed_of(entry, reference_of(entry, result.rows))
    if ratio is None or ratio.value is None or entry.status != "measured":
        return ""
    is_stated = "latency_ratio" in entry.figures
    return Number(times_as_fast(ratio), ratio.value, at.path("figures", "latency_ratio", "value") if is_stated else "")


def _examples(at: _At) -> Cell:
    return "" if at.is_alike else number_cell(at.row.result.examples_done)


def _machine(at: _At) -> Cell:
    result = at.row.result
    return "" if at.is_alike else machine_of(result.environment, result.device_run, at.entry.place)


def _packages(at: _At) -> Cell:
    return "" if at.is_alike else versions_in_words(at.row.result.environment.evaltools, at.entry)


def is_good(row: Row) -> bool:
    """Whether a row of a suite ran as asked, and nothing speaks against it."""
    is_as_asked = row.status == "measured" and not (row.fallback or row.not_clean)
    verdict = row.verdict
    return is_as_asked and (verdict is None or (verdict.tone in ("good", "near") and not verdict.is_open))


def _given_accuracy(at: _At) -> Cell:
    """The accuracy of a row with its name, as those of one table need not be of one figure."""
    known, name = accuracy_of(at.entry), at.entry.texts.get("accuracy", "")
    if known is None or is_lost(at.row):
        return ""
    return Number(f"{known.heading or name} {figure(known)}", known.value, at.path("figures", name, "value"))


def _median(at: _At) -> Cell:
    """With its interval, or why there is none; a word for what failed."""
    if is_lost(at.row):
        return Word(at.row.word, at.row.tone)
    name = "latency_ms" if "latency_ms" in at.entry.figures else "latency_average_ms"
    return at.figure(name, lambda _: median_with_interval(at.entry))


def _ratio(at: _At) -> Cell:
    """How many times as fast as the reference, or the first row; none of times that are too uneven."""
    ratio = at.entry.figures.get("latency_ratio")
    if ratio is None and _is_first(at):
        return _FIRST
    if ratio is None or not ratio.value or is_uneven(at.entry) or is_uneven(_base(at)):
        return "-"
    text = times_as_fast(without_interval_in_doubt(ratio, at.entry))
    text += " as the first model" if at.entry is _first_of(at) else ""
    return Number(text, ratio.value, at.path("figures", "latency_ratio", "value"))


def _is_first(at: _At) -> bool:
    """Whether a row of a benchmark is the one whose time others are compared with."""
    return at.entry is _first_of(at) and any("latency_ratio" in row.figures for row in _beside(at))


def _first_of(at: _At) -> Row | None:
    """The first measured row of a benchmark's model."""
    return next((row for row in _beside(at) if row.status == "measured"), None)


def _base(at: _At) -> Row:
    """Of a benchmark the row that another one's speed is by: the first of its model, of that the first model's."""
    first, rows = _first_of(at), at.row.result.rows
    if first is not at.entry:
        return first or at.entry
    return next((row for row in rows if row.name == at.entry.name and row.model == rows[0].model), at.entry)


def _beside(at: _At) -> list[Row]:
    job = (at.entry.model, at.entry.job, BENCHMARK)
    return [row for row in at.row.result.rows if (row.model, row.job, row.command) == job]


def _file_size(at: _At) -> Cell:
    path = "" if at.several or at.row.result.is_of_examples else f"models/{at.entry.model}/size_bytes"
    return Number(megabytes(at.row.size_bytes), at.row.size_bytes, path)


def _configuration(at: _At) -> Cell:
    """The name, with a word where the CPU did what an accelerator was asked for."""
    if at.entry.name == ALL:
        return "all"
    is_software = at.entry.command == BENCHMARK and any(used.requested and used.is_cpu for used in at.entry.delegates)
    return f"{at.entry.name}{' [software]' if is_software else ''}"


def _on_front(at: _At) -> Cell:
    return "yes" if at.is_on_front or at.entry.counts.get(FRONT) else ""


class _Shown(Struct, frozen=True):
    """The table of a command: its columns from left to right."""

    caption: str
    columns: tuple[_Column, ...]


_NAMES: Final = ("result", "model", "job", "configuration")
_RESULT: Final = _Column("result", lambda at: at.row.model, fell_back=None)
_MODEL: Final = _Column("model", lambda at: at.name, fell_back=None)
_CONFIGURATION: Final = _Column("configuration", _configuration, fell_back=None)
_OF_SEVERAL: Final = (
    _Column("machine", _machine, 12, fell_back=None, of_several=True),
    _Column("versions", _packages, 13, fell_back=None, of_several=True),
)
_EVALUATIONS: Final = _Shown(
    "All configurations",
    (
        _RESULT,
        _MODEL,
        _CONFIGURATION,
        _Column("", _accuracy, 3),
        _Column("change", _change, 4),
        _Column("answers changed", _changed_answers, 5),
        _Column(_VERDICT, _verdict, fell_back=_FELL_BACK),
        _Column("latency", _latency, 6, fell_back="-"),
        _Column("speed", _speed, 7),
        _Column("delegated", lambda at: delegated(at.entry), 8, fell_back="-"),
        _Column("file MB", _file_size, 9, fell_back=None),
        _Column("on the front", _on_front, 10, fell_back=None, of_several=True),
        _Column("examples", _examples, 11, fell_back=None, of_several=True),
        *_OF_SEVERAL,
    ),
)
"""The heading of the accuracy is that of the figure."""
_TABLES: Final = {
    BENCHMARK: _Shown(
        "All rows, the fastest first",
        (
            _RESULT,
            _MODEL,
            _CONFIGURATION,
            _Column("median (95 %)", _median, fell_back=_FELL_BACK),
            _Column("speed", _ratio, 4),
            _Column("accuracy", _given_accuracy, 1),
            _Column("on the front", _on_front, 2),
            _Column("delegated", lambda at: delegated(at.entry), 3),
            _Column("peak memory", lambda at: at.figure("peak_memory_mb", "{:.1f} MB".format), 5),
            _Column("load", lambda at: at.figure("load_ms", in_milliseconds), 6),
            _Column("p95", lambda at: at.figure("latency_p95_ms", in_milliseconds), 7),
            _Column("file MB", _file_size, 8, fell_back=None),
            *_OF_SEVERAL,
        ),
    ),
    SUITE: _Shown(
        "Every model in every configuration",
        (
            _RESULT,
            _MODEL,
            _Column("job", lambda at: at.entry.job, fell_back=None),
            _CONFIGURATION,
            _Column("verdict", _verdict, fell_back=_FELL_BACK),
            _Column("accuracy", _given_accuracy, 1),
            _Column("latency", _latency, 2),
            _Column("speed", _ratio, 3),
            _Column("delegated", lambda at: delegated(at.entry), 4),
            *_OF_SEVERAL,
        ),
    ),
}


def is_alike(results: Iterable[Result]) -> bool:
    """Whether all are of one machine, one version of each package, and the same examples read in the same way."""
    machines, versions, examples = set(), set(), set()
    for result in results:
        examples.add((result.examples_done, tuple(result.given.items())))
        for entry in result.rows:
            machines.add(machine_of(result.environment, result.device_run, entry.place))
            versions |= set(_versions(result.environment.evaltools, entry).items())
    packages = {package for package, _ in versions}
    return len(machines) < 2 and len(versions) == len(packages) and len(examples) < 2


def _versions(evaltools: str, opened: Row) -> dict[str, str]:
    """Those of evaltools and of the runtime, where one was opened, by name."""
    runtime = {opened.runtime.package: opened.runtime.version} if opened.runtime is not None else {}
    return {"evaltools": evaltools, **runtime}


def versions_in_words(evaltools: str, opened: Row) -> str:
    """The versions of evaltools and of the runtime that ran a configuration."""
    return ", ".join(f"{name} {version}" for name, version in _versions(evaltools, opened).items())


def _model_names(results: Mapping[str, Result]) -> dict[str, str]:
    """The file's name without its ending for each result, with a checksum where others of that name differ."""
    stems = {source: Path(result.model.file).stem for source, result in results.items()}
    contents: dict[str, set[str]] = {}
    for source, stem in stems.items():
        contents.setdefault(stem, set()).add(results[source].model.sha256)
    return {
        source: f"{stem} ({results[source].model.sha256[:6]})" if len(contents[stem]) > 1 else stem
        for source, stem in stems.items()
    }


def _compared_with(results: Mapping[str, Result]) -> Iterator[str]:
    """Which models were compared with which other one, and the time of that beside each.

    It is timed in turns with each of them, and has one row: the times that the others' ratios are by stand here.
    """
    found: dict[str, dict[str, str]] = {}
    for name, result in results.items():
        for row in result.rows:
            if row.other_model is not None:
                found.setdefault(Path(row.other_model.file).name, {})[name] = median_time(row)
    for other, times in found.items():
        timed = ", ".join(time for time in times.values() if time != "-")
        beside = f", {timed} in turns with {'it' if len(times) == 1 else 'them'}" if timed else ""
        yield f"{', '.join(times)}: compared with {other} on the same examples{beside}"


def by_task(results: Mapping[str, Result]) -> Iterator[Mapping[str, Result]]:
    """The results of each task."""
    found: dict[str, dict[str, Result]] = {}
    for name, result in results.items():
        found.setdefault(result.about, {})[name] = result
    yield from found.values()
