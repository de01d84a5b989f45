"""The sentence and the table of the first screen: who does the same job, and a row for each configuration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.metrics.words import change
from evaltools.report.content import sentences
from evaltools.report.page.sections.rows import ModelRow, ModelRows, is_share, tone_of, verdict_of
from evaltools.report.words.facts import counted, delegated, median_time, speed_of
from evaltools.report.words.numbers import figure, figure_with_interval, in_times, megabytes
from evaltools.result.facts import NOT_REPEATABLE
from evaltools.result.places import machine_of, reference_of
from evaltools.result.result import Result, Row
from evaltools.result.section import Cell, Number, Table, Word, number_cell, path_to

FACTS: Final = {"file MB": "a file of {} MB", "examples": "{} examples", "machine": "{}", "versions": "{}"}
"""Columns that are a line below the table where they say the same in each row."""
_UNLIKE: Final = "Not all of it was measured on one machine, with the same versions and on the same examples"


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
        """Where a figure of the configuration is in the JSON result, empty for those of several."""
        place = self.row.result.rows.index(self.entry)
        return "" if self.several else f"rows/{place}/{path_to(*names)}"


class _Column(Struct, frozen=True):
    """A column of the table: its heading and what stands in it.

    Of those that do not fit a terminal, the last is left out first, none that ``stays``. ``fell_back`` is the cell of
    what ran on the CPU instead of its delegate, whose figures would look like those of the delegate; None for the same.
    """

    heading: str
    cell: Callable[[_At], Cell]
    stays: bool = False
    fell_back: Cell | None = ""
    of_several: bool = False


def summary_of(results: Mapping[str, Result]) -> Table | None:
    """A row for each configuration; the columns of several results that distinguish them stand at the end.

    None for results of several tasks, and where there is no configuration.
    """
    found, several = ModelRows.of(results), len(results) > 1
    if not found.rows or len(list(by_task(results))) > 1:
        return None
    are_alike = not several or is_alike(results.values())
    front = (found.on_front if several and are_alike else None) or [False] * len(found.rows)
    names = _model_names(results)
    places = [
        _At(found, row, names.get(row.model, row.model), several, are_alike, is_on)
        for row, is_on in zip(found.rows, front, strict=True)
    ]
    compared = _compared_with(results) if several else {}
    columns = [each for each in COLUMNS if several or not each.of_several]
    rows = [[_cell(column, at) for column in columns] for at in places]
    ranks = [0 if each.stays else place for place, each in enumerate(columns)]
    below = sentences(
        "On the front: no other one is as good and as fast" if any(front) else "",
        _how_to_read(found),
        _UNLIKE if several and not are_alike else "",
        *(f"{', '.join(models)}: compared with {other} on the same examples" for other, models in compared.items()),
    )
    headings = [each.heading or found.heading for each in columns]
    table = Table("All configurations", headings, rows, below, 3, ranks)
    models = {at.name for at in places}
    is_named = all(at.row.model == at.name for at in places)
    left_out = {0} if is_named or not several else set()
    left_out |= {1} if len(models) == 1 and not (several and is_named) else set()
    table = table.of_columns([place for place in range(len(columns)) if place not in left_out]).compact
    return table.with_facts(FACTS)


def _cell(column: _Column, at: _At) -> Cell:
    return column.cell(at) if column.fell_back is None or not at.entry.fallback else column.fell_back


def _how_to_read(found: ModelRows) -> str:
    """Which direction is better of a figure that is no accuracy."""
    if found.are_outputs:
        return "relative RMS: size of the difference by that of the reference, of the worst output; lower is better"
    is_of_own_task = found.any_figure is not None and found.any_figure.spread is not None
    return f"{found.heading}: {found.better} is better" if is_of_own_task else ""


def _verdict(at: _At) -> Cell:
    row = at.row
    text = verdict_of(row).replace("expected precision of ", "") if row.is_clean else "not clean"
    text = "not measured" if is_lost(row) else text
    return Word(text, tone_of(row)) if text else ""


def _accuracy(at: _At) -> Cell:
    """With half the width of its 95 % interval, where it has one."""
    name = at.found.figure
    known = at.row.figure(name)
    if known is None or name is None:
        return ""
    return Number(figure_with_interval(known), known.value, at.path("figures", name, "value"))


def _change(at: _At) -> Cell:
    verdict = at.entry.verdict
    if verdict is None or verdict.change is None or is_lost(at.row):
        return ""
    text = change(verdict.change, verdict.low, verdict.high, is_share(at.entry, verdict))
    return Number(text, verdict.change, at.path("verdicts", 0, "change"))


def _latency(at: _At) -> Cell:
    median_ms, text = at.entry.value("latency_ms"), median_time(at.entry)
    return text if median_ms is None else Number(text, median_ms, at.path("figures", "latency_ms", "value"))


def _speed(at: _At) -> Cell:
    """How many times faster or slower than its reference; empty where no time of both is known."""
    entry, result = at.entry, at.row.result
    ratio = speed_of(entry, reference_of(entry, result.rows))
    if ratio is None or ratio.value is None or entry.status != "measured":
        return ""
    is_stated = entry.figures.get("latency_ratio") is ratio
    return Number(in_times(ratio.value), ratio.value, at.path("figures", "latency_ratio", "value") if is_stated else "")


def _file_size(at: _At) -> Cell:
    return Number(megabytes(at.row.size_bytes), at.row.size_bytes)


def _examples(at: _At) -> Cell:
    return "" if at.is_alike else number_cell(at.row.result.examples_done)


def _machine(at: _At) -> Cell:
    result = at.row.result
    return "" if at.is_alike else machine_of(result.environment, result.device_run, at.entry.place)


def _packages(at: _At) -> Cell:
    return "" if at.is_alike else versions_in_words(at.row.result.environment.evaltools, at.entry)


COLUMNS: Final = (
    _Column("result", lambda at: at.row.model, stays=True, fell_back=None),
    _Column("model", lambda at: at.name, stays=True, fell_back=None),
    _Column("configuration", lambda at: at.entry.name, stays=True, fell_back=None),
    _Column("", _accuracy),
    _Column("change", _change),
    _Column("verdict", _verdict, stays=True, fell_back=Word("fell back", "bad")),
    _Column("latency", _latency, fell_back="-"),
    _Column("vs reference", _speed),
    _Column("delegated", lambda at: delegated(at.entry), fell_back="-"),
    _Column("file MB", _file_size, fell_back=None),
    _Column("on the front", lambda at: "yes" if at.is_on_front else "", fell_back=None, of_several=True),
    _Column("examples", _examples, fell_back=None, of_several=True),
    _Column("machine", _machine, fell_back=None, of_several=True),
    _Column("versions", _packages, fell_back=None, of_several=True),
)
"""From left to right; the heading of the accuracy is that of the figure."""


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


def _compared_with(results: Mapping[str, Result]) -> dict[str, list[str]]:
    """The models that were compared with another one, by the name of that one's file."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        for model in result.other_models:
            found.setdefault(Path(model.file).name, []).append(name)
    return found


def by_task(results: Mapping[str, Result]) -> Iterator[Mapping[str, Result]]:
    """The results of each task."""
    found: dict[str, dict[str, Result]] = {}
    for name, result in results.items():
        found.setdefault(result.about, {})[name] = result
    yield from found.values()


def is_lost(row: ModelRow) -> bool:
    """Whether there is no figure of a configuration."""
    return row.row.status == "not measured"


_SAME: Final = ("identical", "equivalent")
_OTHER: Final = ("worse", "better", "diverged", "fp16", "bf16", "int8")
"""Verdicts that say that answers are others; all else is open, or was not compared."""
_UNCHANGED: Final = ("identical", "unchanged")
"""The words for answers of which none changed, where too few were seen for a verdict."""
_ODD_REFERENCE: Final = "the reference is the odd one out"
_MOST_NAMED: Final = 2


def answer_of(results: Mapping[str, Result]) -> str:
    """How many configurations do the same job as what they were compared with, and what the others do.

    Of one that was compared with nothing, what is known of it. It ends with why a run has not all of its examples.
    """
    early = dict.fromkeys(result.stopped for result in results.values() if result.stopped)
    return " ".join([_answer_of(results), *(f"Not complete: {why}." for why in early)])


def _answer_of(results: Mapping[str, Result]) -> str:
    every = ModelRows.of(results)
    if not every.rows:
        (first, *_) = results.values()
        return f"Nothing was measured: {first.stopped or 'the result has no configurations'}."
    rows = [row for row in every.rows if row.row.role == "test"]
    judged = [row for row in rows if row.row.verdict is not None or is_lost(row)]
    if not judged:
        return _single(every, every.rows[0]) if len(every.rows) == 1 else _best_of(every, results)
    same = [row for row in judged if _gives_the_same(row)]
    others = [row for row in judged if not _gives_the_same(row)]
    parts = []
    if len(judged) == 1 and same:
        parts = [f"{_name(same[0], results)} gives the same answers as {_baseline(judged)}{_on_examples(same)}"]
    elif len(judged) > 1 and (same or all(map(_is_another, others))):
        verb = "gives" if len(same) == 1 else "give"
        parts = [
            f"{len(same) or 'None'} of {len(judged)} configurations {verb} the same answers as {_baseline(judged)}"
            f"{_on_examples(same)}"
        ]
    if len(others) <= _MOST_NAMED:
        parts += [f"{_name(row, results)} {_what_else(row)}" for row in others]
    else:
        counts = Counter(map(_in_a_word, others))
        words = ", ".join(f"{count} {word}" for word, count in counts.items())
        parts += [words if parts else f"Of {len(judged)} configurations: {words}"]
    if not same and all(row.is_clean and _kind(row) == "not decided" for row in others):
        who = f"{_name(others[0], results)} gives" if len(others) == 1 else f"{len(others)} configurations give"
        parts = [f"Whether {who} the same answers as {_baseline(judged)} is not decided"]
    parts += [f"the reference {_name(row, results)} {_unclean(row)}" for row in every.rows if _is_bad_reference(row)]
    if len(results) > 1:
        parts += _best(every, [row for row in every.rows if row.is_clean], results)
    return f"{'; '.join(parts)}."


def _single(found: ModelRows, row: ModelRow) -> str:
    entry = row.row
    accuracy = f", {found.heading} {_figure_of(found, row)}" if _figure_of(found, row) else ""
    examples = counted(entry.finished_examples, "example")
    return f'"{entry.name}": {examples}{accuracy}; it was compared with nothing.'


def _figure_of(found: ModelRows, row: ModelRow) -> str:
    """The figure that a row is judged by; empty where it has none."""
    known = row.figure(found.figure)
    return "" if known is None else figure(known)


def _best_of(found: ModelRows, results: Mapping[str, Result]) -> str:
    """The best and the fastest of several configurations that were compared with nothing."""
    rows = [row for row in found.rows if row.is_clean]
    texts = [f"{counted(len(rows), 'configuration')} measured, compared with nothing", *_best(found, rows, results)]
    return f"{'; '.join(texts)}."


def _best(found: ModelRows, rows: Sequence[ModelRow], results: Mapping[str, Result]) -> list[str]:
    """Which row has the best figure, and which is the fastest."""
    texts = []
    best, timed = found.best(rows), [row for row in rows if not math.isnan(row.latency_ms)]
    if best is not None and not found.are_outputs:
        texts.append(f"{_name(best, results)} has the best {found.heading}, {_figure_of(found, best)}")
    if len(timed) > 1:
        fastest = min(timed, key=lambda row: row.latency_ms)
        texts.append(f"{_name(fastest, results)} is the fastest, {median_time(fastest.row)}")
    return texts


def _gives_the_same(row: ModelRow) -> bool:
    """Whether the verdict says so, or no answer changed."""
    return row.is_clean and _says_the_same(row)


def _says_the_same(row: ModelRow) -> bool:
    return _kind(row) in _SAME or verdict_of(row) in _UNCHANGED


def _is_another(row: ModelRow) -> bool:
    """Whether it was measured as asked, and gives other answers."""
    return row.is_clean and _kind(row) in _OTHER


def _is_bad_reference(row: ModelRow) -> bool:
    return row.row.role == "reference" and bool(row.row.not_clean or row.errors)


def _on_examples(same: Sequence[ModelRow]) -> str:
    """How many examples show that no answer changed, where no more than that is known."""
    counts = [row.row.finished_examples for row in same if _kind(row) not in _SAME]
    return f" on {min(counts)} examples" if counts else ""


def _kind(row: ModelRow) -> str:
    verdict = row.row.verdict
    return "" if verdict is None else verdict.kind


def _name(row: ModelRow, results: Mapping[str, Result]) -> str:
    """In quotes, as a configuration may have any name."""
    name = f'"{row.row.name}"'
    return f"{row.model} in {name}" if len(results) > 1 else name


def _baseline(rows: Sequence[ModelRow]) -> str:
    """What they were compared with, as a reader knows it."""
    names = set()
    for row in rows:
        reference = reference_of(row.row, row.result.rows)
        if reference is not None and reference.other_model is not None:
            names.add(Path(reference.other_model.file).name)
        elif reference is not None and any(used.requested for used in reference.delegates):
            names.add(reference.name)
        else:
            names.add("the CPU")
    others = names - {"the CPU"}
    if len(names) > 1 and len(others) == 1:
        return f"{others.pop()} on the CPU"
    return names.pop() if len(names) == 1 else "their references"


def _in_a_word(row: ModelRow) -> str:
    """A word for one of many that do not give the same answers."""
    if row.row.fallback and not is_lost(row):
        return "on the CPU instead"
    return verdict_of(row) or "not compared" if row.is_clean or is_lost(row) else "not clean"


def _what_else(row: ModelRow) -> str:
    """What a configuration does that does not give the same answers."""
    if is_lost(row):
        return "was not measured"
    if row.row.fallback:
        return "ran on the CPU instead of its delegate"
    return _verdict_in_words(row) if row.is_clean else _unclean(row)


def _unclean(row: ModelRow) -> str:
    """What went wrong in its runs, and after errors what the other runs show."""
    entry = row.row
    if entry.not_clean == NOT_REPEATABLE:
        return NOT_REPEATABLE
    if entry.not_clean:
        return entry.crashes_of_runs or "did not end cleanly"
    text = f"returned an error in {row.errors} of {entry.finished_examples + entry.failed_examples} runs"
    if not entry.finished_examples or entry.verdict is None:
        return text
    others = f"gives the same answers as {_baseline([row])}" if _says_the_same(row) else _verdict_in_words(row)
    return f"{text} and {others} in the others"


def _verdict_in_words(row: ModelRow) -> str:
    verdict = row.row.verdict
    if verdict is None or verdict.kind == "not measured":
        return "was not compared"
    if verdict.change is not None and verdict.kind in ("worse", "better"):
        by = f"{100 * abs(verdict.change):.2f} points" if is_share(row.row, verdict) else f"{abs(verdict.change):.3g}"
        return f"is {verdict.kind} by {by}"
    word = verdict_of(row)
    if word == _ODD_REFERENCE:
        return f"shows that {word}"
    return f"diverged from {_baseline([row])}" if word == "diverged" else f"is {word}"
