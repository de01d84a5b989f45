"""Several results of one task in one table, with the machine and the versions of each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.report.page.charts.look import colours_of
from evaltools.report.page.charts.times import shares_chart
from evaltools.report.page.content.page import first_few, sentences
from evaltools.report.page.sections.tradeoff import models_tradeoff
from evaltools.report.tables.cells import (
    delegated,
    figure_in_words,
    median,
    median_time,
    megabytes,
    milliseconds,
    speed,
)
from evaltools.report.tables.execution import shares_in_words
from evaltools.report.tables.models import ModelRow, ModelRows, verdict_of
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import machine_of, reference_of
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table, number_cell
from evaltools.task_kind import kind_of

_MOST_RUNS: Final = 12
_UNLIKE: Final = "Not all of it was measured on one machine, with the same versions and on the same examples"


def together(evaluations: Mapping[str, EvaluationResult], benchmarks: Mapping[str, BenchmarkResult]) -> list[Section]:
    """A table for each task of which there are several results, and one for several benchmarks."""
    by_task: dict[str, dict[str, EvaluationResult]] = {}
    for source, result in evaluations.items():
        task = kind_of(result.task).evidence.subject(result)
        by_task.setdefault(task, {})[source] = result
    sections = [
        Section(f"All together: {task}", _evaluated(results)) for task, results in by_task.items() if len(results) > 1
    ]
    if len(benchmarks) > 1:
        sections.append(Section("All together: benchmark", [_fastest_first(benchmarks)]))
    return sections


def _evaluated(results: Mapping[str, EvaluationResult]) -> list[Block]:
    """All models and configurations in one table; accuracy against latency where all of it can be compared."""
    found = ModelRows.of(results)
    is_alike = _is_alike(results.values())
    front = (found.on_front if is_alike else None) or [False] * len(found.rows)
    names = _model_names(results)
    marked = zip(found.rows, front, strict=True)
    rows = [_model_row(found, row, names.get(row.model, row.model), is_on) for row, is_on in marked]
    columns = (
        "result", "model", "configuration", found.heading or "figure", "verdict", "p50", "speed", "delegated",
        "model MB", "on the front", "examples", "machine", "versions",
    )  # fmt: skip
    below = sentences(
        "Speed is against the reference of the same result" if any(row[6] for row in rows) else "",
        "On the front: none is as good and as fast" if any(front) else "",
        "" if is_alike else _UNLIKE,
    )
    drawn = (models_tradeoff(found) if is_alike else None, _stages(results))
    table = Table("All models and configurations", columns, rows, below)
    return [table, *(chart for chart in drawn if chart is not None)]


def _is_alike(results: Iterable[EvaluationResult]) -> bool:
    """Whether all are of one machine, one version of each package, and the same examples read in the same way."""
    machines, versions, examples = set(), set(), set()
    for result in results:
        inputs = kind_of(result.task).evidence.inputs(result)
        examples.add((result.examples_done, result.pictures_digest, tuple(inputs.items())))
        for entry in result.configurations:
            machines.add(machine_of(result.environment, result.device_run, entry.place))
            versions |= set(_versions(result.environment.evaltools, entry).items())
    packages = {package for package, _ in versions}
    return len(machines) < 2 and len(versions) == len(packages) and len(examples) < 2


def _versions(evaltools: str, opened: ConfigurationResult | BenchmarkRow) -> dict[str, str]:
    """Those of evaltools and of the runtime, where one was opened, by name."""
    runtime = {opened.runtime.package: opened.runtime.version} if opened.runtime is not None else {}
    return {"evaltools": evaltools, **runtime}


def _in_words(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


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


def _model_row(found: ModelRows, row: ModelRow, model: str, is_on: bool) -> Sequence[Cell]:
    result, entry = row.result, row.configuration
    reference = reference_of(entry, result.configurations)
    latency = entry.inference_latency
    return (
        row.model,
        model,
        entry.name,
        _figure(found, row),
        verdict_of(row),
        median_time(entry) if latency is None else Number(median(latency), latency.p50_us),
        "" if reference is None else speed(entry, reference, result.latency_comparisons) or "-",
        f"FALLBACK, {delegated(entry)}" if entry.fallback else delegated(entry),
        number_cell(row.size_bytes, megabytes),
        "yes" if is_on else "",
        number_cell(result.examples_done),
        machine_of(result.environment, result.device_run, entry.place),
        _in_words(_versions(result.environment.evaltools, entry)),
    )


def _figure(found: ModelRows, row: ModelRow) -> Cell:
    if found.figure is None:
        return ""
    value = row.configuration.figures.get(found.figure)
    return number_cell(value, partial(figure_in_words, metric=found.metric))


def _stages(results: Mapping[str, EvaluationResult]) -> Chart | None:
    """Where the time of each run went; None where fewer than two runs say so."""
    executions = {name: result.execution for name, result in results.items()}
    known = {name: used for name, used in executions.items() if used is not None and any(used.stage_seconds.values())}
    if len(known) < 2:
        return None
    shown = {
        name: {stage: spent for stage, spent in used.stage_seconds.items() if spent > 0}
        for name, used in list(known.items())[:_MOST_RUNS]
    }
    stages = list(dict.fromkeys(stage for seconds in shown.values() for stage in seconds))
    spec = shares_chart(shown, colours_of(stages), "share of the work of all workers", as_shares=True)
    told = [f"{name}: {shares_in_words(used)}" for name, used in known.items()]
    return Chart("What took the time of each run", spec, first_few(told))


def _fastest_first(benchmarks: Mapping[str, BenchmarkResult]) -> Table:
    """The rows of several benchmarks by their latency, then those that were not measured."""
    found = [(source, result, row) for source, result in benchmarks.items() for row in result.rows]
    found.sort(key=lambda each: _time(each[2]) or math.inf)
    columns = ("result", "model", "configuration", "median", "delegated", "model MB", "machine", "versions")
    rows = [_benchmark_row(source, result, row) for source, result, row in found]
    return Table("All benchmarks, the fastest first", columns, rows)


def _benchmark_row(source: str, result: BenchmarkResult, row: BenchmarkRow) -> Sequence[Cell]:
    """A row of several devices is called ``NAME@SERIAL``."""
    model, time = result.models[row.model], _time(row)
    return (
        source,
        Path(model.file).stem,
        row.name,
        number_cell(time, milliseconds, absent="not measured"),
        f"FALLBACK, {delegated(row)}" if row.fallback else delegated(row),
        number_cell(model.size_bytes, megabytes),
        machine_of(result.environment, result.device_run, row.name.rpartition("@")[2]),
        _in_words(_versions(result.environment.evaltools, row)),
    )


def _time(row: BenchmarkRow) -> float | None:
    """In microseconds; of a row that failed there is none, even where some of its runs have one."""
    return shown_figures(row).latency_us if row.status == "measured" else None
