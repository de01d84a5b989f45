"""Several results together: what can be compared stands in one table, with what all of it shares.

Accuracy against latency and size; a model on several machines, or with several versions, side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.report.page.charts.shares import colours_of, shares_chart
from evaltools.report.page.charts.times import dots_chart
from evaltools.report.page.content.comparable import (
    Group,
    Measured,
    Row,
    benchmarked,
    differences,
    evaluated,
    groups_of,
)
from evaltools.report.page.content.page import first_few, sentences
from evaltools.report.page.sections.accuracy import figure_in_words
from evaltools.report.page.sections.tradeoff import models_tradeoff
from evaltools.report.tables.cells import delegated, median, milliseconds, speed, three_digits
from evaltools.report.tables.evaluation import describe_configuration
from evaltools.report.tables.execution import shares_in_words
from evaltools.report.tables.models import ModelRow, ModelRows, verdict_of
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Block, Cell, Chart, Lines, Number, Section, Table

_MOST_RUNS: Final = 12
_MOST_DOTS: Final = 16
_NO_PAIRS: Final = (
    "Speed is by medians, against the first place of each configuration. Answers of different runs are not paired; "
    "each verdict is against the reference of its own run."
)


def together(evaluations: Mapping[str, EvaluationResult], benchmarks: Mapping[str, BenchmarkResult]) -> list[Section]:
    """Tables of what can be compared, models at several places side by side, and which results stand in neither."""
    tasks: dict[str, list[Measured[ModelRow]]] = {}
    for row in evaluated(evaluations):
        tasks.setdefault(row.about.task, []).append(row)
    sections = [section for task, rows in tasks.items() for section in _of_task(task, rows, _models, _evaluated_there)]
    return [*sections, *_of_task("benchmark", benchmarked(benchmarks), _fastest, _timed_there)]


class There(Struct, frozen=True):
    """What a configuration did at one place; ``time_us`` is None where nothing was timed of what was asked for.

    ``heading`` is what the figure is called, empty where there is none.
    """

    heading: str
    figure: Cell
    verdict: str
    time_us: float | None
    ran: str


def _of_task(
    task: str,
    rows: Sequence[Measured[Row]],
    blocks_of: Callable[[Group[Row]], Sequence[Block]],
    there: Callable[[Row], There],
) -> list[Section]:
    if len(_sources(rows)) < 2:
        return []
    groups = groups_of(rows)
    own = differences(groups)
    sections = []
    told = set()
    for group, words in zip(groups, own, strict=True):
        if len(group.sources) > 1:
            title = ", ".join(filter(None, (f"All together: {task}", words)))
            sections.append(Section(title, blocks_of(group), lead=f"All of it: {group.in_words}."))
            told |= set(group.sources)
    models: dict[str, list[Measured[Row]]] = {}
    for row in rows:
        models.setdefault(f"{row.model.sha256} {row.about.digest}", []).append(row)
    for of_model in models.values():
        if len(groups_of(of_model)) > 1 and len(_sources(of_model)) > 1:
            sections.append(_side_by_side(of_model, there))
            told |= set(_sources(of_model))
    left = [
        f"{source}: {words or group.in_words}"
        for group, words in zip(groups, own, strict=True)
        for source in group.sources
        if source not in told
    ]
    lead = "Each is of other examples, or was measured on another machine or with other software than the rest."
    return [*sections, *([Section(f"Not compared: {task}", [Lines(left)], lead=lead)] if left else [])]


def _sources(rows: Sequence[Measured[Row]]) -> list[str]:
    return list(dict.fromkeys(row.source for row in rows))


def _side_by_side(rows: Sequence[Measured[Row]], there: Callable[[Row], There]) -> Section:
    """A row for each place of each configuration of one model, on the same examples."""
    groups = groups_of(rows)
    found = [
        (row, place, there(row.row))
        for group, place in zip(groups, differences(groups), strict=True)
        for row in group.rows
    ]
    names = list(dict.fromkeys(row.name for row, _, _ in found))
    times = {name: [of.time_us for row, _, of in found if row.name == name and of.time_us] for name in names}
    first = {name: known[0] if len(known) > 1 else None for name, known in times.items()}
    heading = next((of.heading for _, _, of in found if of.heading), "")
    nothing = "-" if heading else ""
    cells: list[Sequence[Cell]] = [
        [
            name,
            place,
            of.figure or nothing,
            of.verdict,
            _time(of.time_us),
            _ratio(first[name], of.time_us),
            of.ran,
            row.source,
        ]
        for name in names
        for row, place, of in found
        if row.name == name
    ]
    columns = ("configuration", "where", heading, "verdict", "median", "speed", "did it run", "result")
    blocks: list[Block] = [Table("Each configuration at each place", columns, cells, _NO_PAIRS)]
    drawn = _dots(
        {name: {place: of.time_us for row, place, of in found if row.name == name and of.time_us} for name in names}
    )
    shared = "; ".join(filter(None, (Path(rows[0].model.file).name, rows[0].about.in_words)))
    return Section(
        f"Side by side: {Path(rows[0].model.file).stem}, {rows[0].about.task}",
        [*blocks, *([drawn] if drawn else [])],
        lead=f"All of it: {shared}.",
    )


def _ratio(first_us: float | None, time_us: float | None) -> Cell:
    """How many times as fast as the first."""
    return "-" if first_us is None or time_us is None else Number(f"{first_us / time_us:.2f}x", first_us / time_us)


def _time(time_us: float | None) -> Cell:
    return "-" if time_us is None else Number(milliseconds(time_us), time_us)


def _dots(times_us: Mapping[str, Mapping[str, float]]) -> Chart | None:
    shown = {
        name: {place: time / 1000 for place, time in by_place.items()}
        for name, by_place in list(times_us.items())[:_MOST_DOTS]
        if by_place
    }
    if not any(len(by_place) > 1 for by_place in shown.values()):
        return None
    told = [
        f"{name}: {', '.join(f'{place} {three_digits(time)} ms' for place, time in by_place.items())}"
        for name, by_place in shown.items()
    ]
    return Chart("Median time by place", dots_chart(shown, "ms"), first_few(told))


def _evaluated_there(row: ModelRow) -> There:
    found = ModelRows.of_rows([row])
    time = None if math.isnan(row.p50_us) else row.p50_us
    return There(found.heading, _figure(found, row), verdict_of(row), time, _ran(row.configuration))


def _timed_there(row: BenchmarkRow) -> There:
    return There("", "", "", None if row.fallback else _row_time(row), _ran(row))


def _ran(opened: ConfigurationResult | BenchmarkRow) -> str:
    return f"not measured: {opened.reason}" if opened.reason else describe_configuration(opened)


def _models(group: Group[ModelRow]) -> list[Block]:
    """All models and configurations in one table; accuracy against latency where one figure judges all of them."""
    found = ModelRows.of_rows([measured.row for measured in group.rows])
    front = found.on_front or [False] * len(found.rows)
    rows = [
        _model_row(found, measured, model, is_on)
        for measured, model, is_on in zip(group.rows, _model_names(group.rows), front, strict=True)
    ]
    columns = (
        "result", "model", "configuration", found.heading or "figure", "verdict", "p50", "speed", "delegated",
        "model MB", "on the front",
    )  # fmt: skip
    below = sentences(
        "Speed is against the reference of the same result" if any(row[6] for row in rows) else "",
        "On the front: none is as good and as fast" if any(front) else "",
    )
    blocks: list[Block] = [Table("All models and configurations", columns, rows, below)]
    drawn = (models_tradeoff(found), _stages(found.rows))
    return [*blocks, *(chart for chart in drawn if chart is not None)]


def _model_names(rows: Sequence[Measured[Row]]) -> list[str]:
    """The files of models where results are not called so, with a checksum where others of that name differ."""
    stems = [Path(measured.model.file).stem for measured in rows]
    contents: dict[str, set[str]] = {}
    for stem, measured in zip(stems, rows, strict=True):
        contents.setdefault(stem, set()).add(measured.model.sha256)
    are_sources = all(stem == measured.source for stem, measured in zip(stems, rows, strict=True))
    return [
        f"{stem} ({measured.model.sha256[:6]})" if len(contents[stem]) > 1 else "" if are_sources else stem
        for stem, measured in zip(stems, rows, strict=True)
    ]


def _model_row(found: ModelRows, measured: Measured[ModelRow], model: str, is_on: bool) -> Sequence[Cell]:
    row, entry = measured.row, measured.row.configuration
    reference = reference_of(entry, row.result.configurations)
    latency = entry.inference_latency
    return (
        measured.source,
        model,
        measured.name,
        _figure(found, row),
        verdict_of(row),
        "-" if latency is None else Number(median(latency), latency.p50_us),
        "" if reference is None else speed(entry, reference, row.result.latency_comparisons) or "-",
        f"FALLBACK, {delegated(entry)}" if entry.fallback else delegated(entry),
        Number(f"{measured.model.size_bytes / 1e6:.2f}", measured.model.size_bytes),
        "yes" if is_on else "",
    )


def _figure(found: ModelRows, row: ModelRow) -> Cell:
    if found.figure is None:
        return ""
    value = row.configuration.figures.get(found.figure)
    return "-" if value is None else Number(figure_in_words(value, found.metric), value)


def _stages(rows: Sequence[ModelRow]) -> Chart | None:
    """Where the time of each run went; None where fewer than two runs say so."""
    executions = {row.model: row.result.execution for row in rows}
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


def _fastest(group: Group[BenchmarkRow]) -> list[Block]:
    """The rows of several benchmarks, the fastest first."""
    ranked = sorted(group.rows, key=lambda each: _row_time(each.row) or math.inf)
    cells: list[Sequence[Cell]] = [
        (
            each.source,
            Path(each.model.file).stem,
            each.name,
            "not measured" if (time := _row_time(each.row)) is None else Number(milliseconds(time), time),
            f"FALLBACK, {delegated(each.row)}" if each.row.fallback else delegated(each.row),
            Number(f"{each.model.size_bytes / 1e6:.2f}", each.model.size_bytes),
        )
        for each in ranked
    ]
    columns = ("result", "model", "configuration", "median", "delegated", "model MB")
    return [Table("All benchmarks, the fastest first", columns, cells)]


def _row_time(row: BenchmarkRow) -> float | None:
    """In microseconds; of a row that failed there is none, even where some of its runs have one."""
    return shown_figures(row).latency_us if row.status == "measured" else None
