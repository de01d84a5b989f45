"""The table of the first screen: a row for each configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.known_tasks import subject_of
from evaltools.report.content import sentences
from evaltools.report.page.sections.rows import ModelRow, ModelRows, interval_of, tone_of, verdict_of
from evaltools.report.words.facts import delegated, median_time, speed_of
from evaltools.report.words.numbers import change, figure, half_width, in_times, megabytes
from evaltools.report.words.verdicts import is_share
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, other_models
from evaltools.result.places import machine_of, reference_of
from evaltools.result.section import Cell, Number, Table, Word, number_cell, path_to

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

FACTS: Final = {"file MB": "a file of {} MB", "examples": "{} examples", "machine": "{}", "versions": "{}"}
"""Columns that are a line below the table where they say the same in each row."""
_UNLIKE: Final = "Not all of it was measured on one machine, with the same versions and on the same examples"


def summary_of(results: Mapping[str, EvaluationResult]) -> Table | None:
    """A row for each configuration; the columns of several results that distinguish them stand at the end.

    None for results of several tasks, and where there is no configuration.
    """
    found, several = ModelRows.of(results), len(results) > 1
    if not found.rows or len(list(by_task(results))) > 1:
        return None
    are_alike = not several or is_alike(results.values())
    front = (found.on_front if several and are_alike else None) or [False] * len(found.rows)
    names = _model_names(results)
    rows = [
        [*_cells(found, row, names, several), *(_of_several(row, is_on, are_alike) if several else ())]
        for row, is_on in zip(found.rows, front, strict=True)
    ]
    compared = _compared_with(results) if several else {}
    columns = ["result", "model", "configuration", found.heading, "change", "verdict", "latency", "vs reference"]
    columns += ["delegated", "file MB", *(("on the front", "examples", "machine", "versions") if several else ())]
    ranks = [0, 0, 0, 1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10]
    below = sentences(
        "On the front: no other one is as good and as fast" if any(front) else "",
        _how_to_read(found),
        _UNLIKE if several and not are_alike else "",
        *(f"{', '.join(models)}: compared with {other} on the same examples" for other, models in compared.items()),
    )
    table = Table("All configurations", columns, rows, below, 3, ranks[: len(columns)])
    models = {row[1] for row in rows}
    is_named = all(row[0] == row[1] for row in rows)
    left_out = {0} if is_named or not several else set()
    left_out |= {1} if len(models) == 1 and not (several and is_named) else set()
    table = table.of_columns([place for place in range(len(columns)) if place not in left_out]).compact
    return table.with_facts(FACTS)


def _how_to_read(found: ModelRows) -> str:
    """Which direction is better of a figure that is no accuracy."""
    if found.are_outputs:
        return "relative RMS: size of the difference by that of the reference, of the worst output; lower is better"
    return f"{found.heading}: {found.better} is better" if found.metric is None and found.better is not None else ""


def _cells(found: ModelRows, row: ModelRow, names: Mapping[str, str], several: bool) -> list[Cell]:
    entry = row.configuration
    path = "" if several else f"configurations/{row.result.configurations.index(entry)}"
    if entry.fallback:
        return _blank(row, names)
    verdict = _word(row)
    latency = entry.inference_latency
    p50 = None if latency is None else latency.p50_us
    time = median_time(entry)
    return [
        row.model,
        names.get(row.model, row.model),
        entry.name,
        _accuracy(found, row, path),
        _change(row, path),
        Word(verdict, tone_of(row)) if verdict else "",
        time if p50 is None else Number(time, p50, path and f"{path}/inference_latency/p50_us"),
        _speed(row, several),
        delegated(entry),
        Number(megabytes(row.size_bytes), row.size_bytes),
    ]


def _blank(row: ModelRow, names: Mapping[str, str]) -> list[Cell]:
    """The cells of what ran on the CPU instead of its delegate: figures would look like those of the delegate."""
    entry = row.configuration
    found: list[Cell] = [row.model, names.get(row.model, row.model), entry.name, "", "", Word("fell back", "bad")]
    return [*found, "-", "", "-", Number(megabytes(row.size_bytes), row.size_bytes)]


def _word(row: ModelRow) -> str:
    if is_lost(row):
        return "not measured"
    return verdict_of(row).replace("expected precision of ", "") if row.is_clean else "not clean"


def _accuracy(found: ModelRows, row: ModelRow, path: str) -> Cell:
    """With half the width of its 95 % interval, where it has one."""
    if found.figure is None or math.isnan(row.figure(found.figure)):
        return ""
    value, metric = row.figure(found.figure), found.metric
    width = half_width(interval_of(found.figure, row.result, row.configuration), metric is not None and metric.is_share)
    return Number(f"{figure(value, metric)}{width}", value, path and f"{path}/{path_to('figures', found.figure)}")


def _change(row: ModelRow, path: str) -> Cell:
    verdict = row.configuration.verdict
    if verdict is None or verdict.change is None or is_lost(row):
        return ""
    text = change(verdict.change, verdict.low, verdict.high, is_share(verdict))
    return Number(text, verdict.change, path and f"{path}/verdicts/0/change")


def _speed(row: ModelRow, several: bool) -> Cell:
    """How many times faster or slower than its reference; empty where no time of both is known."""
    entry, comparisons = row.configuration, row.result.latency_comparisons
    ratio = speed_of(entry, reference_of(entry, row.result.configurations), comparisons)
    if ratio is None or entry.status != "measured":
        return ""
    places = [] if several else [place for place, each in enumerate(comparisons) if each is ratio]
    return Number(in_times(ratio.ratio), ratio.ratio, f"latency_comparisons/{places[0]}/ratio" if places else "")


def _of_several(row: ModelRow, is_on: bool, is_alike: bool) -> Sequence[Cell]:
    """Whether it is on the front; what differs of how it was measured."""
    if is_alike:
        return ("yes" if is_on else "", "", "", "")
    result, entry = row.result, row.configuration
    return (
        "",
        number_cell(result.examples_done),
        machine_of(result.environment, result.device_run, entry.place),
        versions_in_words(result.environment.evaltools, entry),
    )


def is_alike(results: Iterable[EvaluationResult]) -> bool:
    """Whether all are of one machine, one version of each package, and the same examples read in the same way."""
    machines, versions, examples = set(), set(), set()
    for result in results:
        examples.add((result.examples_done, result.pictures_digest, tuple(result.part.given.items())))
        for entry in result.configurations:
            machines.add(machine_of(result.environment, result.device_run, entry.place))
            versions |= set(_versions(result.environment.evaltools, entry).items())
    packages = {package for package, _ in versions}
    return len(machines) < 2 and len(versions) == len(packages) and len(examples) < 2


def _versions(evaltools: str, opened: ConfigurationResult | BenchmarkRow) -> dict[str, str]:
    """Those of evaltools and of the runtime, where one was opened, by name."""
    runtime = {opened.runtime.package: opened.runtime.version} if opened.runtime is not None else {}
    return {"evaltools": evaltools, **runtime}


def versions_in_words(evaltools: str, opened: ConfigurationResult | BenchmarkRow) -> str:
    """The versions of evaltools and of the runtime that ran a configuration."""
    return ", ".join(f"{name} {version}" for name, version in _versions(evaltools, opened).items())


def _model_names(results: Mapping[str, EvaluationResult]) -> dict[str, str]:
    """The file's name without its ending for each result, with a checksum where others of that name differ."""
    stems = {source: Path(result.model.file).stem for source, result in results.items()}
    contents: dict[str, set[str]] = {}
    for source, stem in stems.items():
        contents.setdefault(stem, set()).add(results[source].model.sha256)
    return {
        source: f"{stem} ({results[source].model.sha256[:6]})" if len(contents[stem]) > 1 else stem
        for source, stem in stems.items()
    }


def _compared_with(results: Mapping[str, EvaluationResult]) -> dict[str, list[str]]:
    """The models that were compared with another one, by the name of that one's file."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        for model in other_models(result):
            found.setdefault(Path(model.file).name, []).append(name)
    return found


def by_task(results: Mapping[str, EvaluationResult]) -> Iterator[Mapping[str, EvaluationResult]]:
    """The results of each task."""
    found: dict[str, dict[str, EvaluationResult]] = {}
    for name, result in results.items():
        found.setdefault(subject_of(result), {})[name] = result
    yield from found.values()


def is_lost(row: ModelRow) -> bool:
    """Whether there is no figure of a configuration."""
    return row.configuration.status == "not measured"
