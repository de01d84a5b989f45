"""Figures of one model from release to release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.gates.baseline import Baseline, BaselineConfiguration
from evaltools.gates.history import History
from evaltools.metrics.metric import Metric
from evaltools.report.page.charts.figures import Release, releases_chart
from evaltools.report.page.content.page import Part, Saying, first_few
from evaltools.report.tables.cells import figure_in_words
from evaltools.result.section import Block, Cell, Chart, Lines, Number, Section, Table
from evaltools.task_kind import all_metrics, metric_named

_LATENCY: Final = "latency_ms"
_MOST_RELEASES: Final = 40
_MOST_CHARTS: Final = 4


def releases(history: History) -> Part:
    """The figures now and at first, all of them in a table, a line for each configuration."""
    shown = history.releases[-_MOST_RELEASES:]
    names = _figures(shown)
    blocks: list[Block] = [_table(shown, names, len(history.releases)), *(_history(shown, name) for name in names)]
    section = Section("From release to release", blocks, lead=_shared(history))
    return Part(
        source=f"releases of {shown[-1].model}",
        about=f"{history.about}: releases",
        sayings=tuple(_saying(history, name, names) for name in _configurations(shown)),
        sections=(section,),
        hints=(
            "whether the last change is more than chance: evaltools baseline diff RESULT.json "
            "--baseline_file=BASELINE.json",
        ),
        tables=(section,),
    )


def alone(histories: Sequence[History]) -> list[Section]:
    """The baselines that nothing stands beside, so that there is nothing to tell over time."""
    left = [history.releases[0] for history in histories if len(history.releases) == 1]
    lines = [f"{baseline.about}, {baseline.example_count} examples, {baseline.started_at}" for baseline in left]
    lead = "Nothing else on this page is of the same task, examples and model."
    return [Section("Not compared: baselines", [Lines(lines)], lead=lead)] if lines else []


def _shared(history: History) -> str:
    """What all releases share, and what of it changed."""
    examples = f"The same {history.releases[-1].example_count} examples in all of them."
    machines = _machines(history.releases)
    changed = []
    if len(history.contents) > 1:
        changed.append(f"the model file has had {len(history.contents)} contents, so a change may be the model's")
    if len(machines) > 1:
        changed.append(f"measured on {len(machines)} machines, which have times of their own")
    return " ".join([examples, *([f"Not the same: {'; '.join(changed)}."] if changed else [])])


def _machines(baselines: Sequence[Baseline]) -> list[str]:
    return list(dict.fromkeys(baseline.machine for baseline in baselines))


def _configurations(baselines: Sequence[Baseline]) -> list[str]:
    return list(dict.fromkeys(entry.name for baseline in baselines for entry in baseline.configurations))


def _entry(baseline: Baseline, name: str) -> BaselineConfiguration | None:
    return next((entry for entry in baseline.configurations if entry.name == name), None)


def _figures(baselines: Sequence[Baseline]) -> list[str]:
    """Those that have a column in tables, and the latency behind them; of other tasks the first few."""
    metrics = all_metrics()
    names = dict.fromkeys(name for baseline in baselines for entry in baseline.configurations for name in entry.figures)
    headed = [name for name in names if name in metrics and metrics[name].heading]
    others = [name for name in headed or names if name != _LATENCY]
    return [*others[: _MOST_CHARTS - 1], *([_LATENCY] if _LATENCY in names else [])]


def _saying(history: History, configuration: str, names: Sequence[str]) -> Saying:
    """What the first and the last release say of a configuration; a time only where one machine measured both."""
    measured = [baseline for baseline in history.releases if _entry(baseline, configuration) is not None]
    first, last = measured[0], measured[-1]
    one_machine = first.machine == last.machine
    said = [
        _from_to(name, _value(first, configuration, name), _value(last, configuration, name))
        for name in names
        if name != _LATENCY or one_machine
    ]
    if len(measured) == 1:
        return Saying(configuration, "", f"in one release alone, that of {first.started_at}")
    missing = "" if last is history.releases[-1] else ", and not in the latest one"
    facts = [("when", f"{first.started_at} to {last.started_at}, {len(measured)} releases{missing}")]
    facts += [("by what", _from_first_to_last(_software(first, configuration), _software(last, configuration)))]
    return Saying(configuration, "", "; ".join(said), tuple(facts))


def _from_to(name: str, first: float | None, last: float | None) -> str:
    metric = metric_named(name)
    heading = (metric.heading if metric is not None else "") or name
    return f"{heading} {_from_first_to_last(figure_in_words(first, metric), figure_in_words(last, metric))}"


def _from_first_to_last(first: str, last: str) -> str:
    return f"{last}, as at first" if first == last else f"{first} at first, {last} now"


def _value(baseline: Baseline, configuration: str, name: str) -> float | None:
    entry = _entry(baseline, configuration)
    return None if entry is None else entry.figures.get(name)


def _software(baseline: Baseline, configuration: str) -> str:
    entry = _entry(baseline, configuration)
    runtime = entry.runtime if entry is not None else ""
    return f"evaltools {baseline.evaltools}{f', {runtime}' if runtime else ''}"


def _table(baselines: Sequence[Baseline], names: Sequence[str], count: int) -> Table:
    """A row for each release and configuration, the latest first."""
    metrics = all_metrics()
    machines = _machines(baselines)
    rows: list[Sequence[Cell]] = [
        [
            baseline.started_at,
            entry.name,
            *(_cell(entry.figures, name, metrics.get(name)) for name in names),
            _software(baseline, entry.name),
            f"{baseline.model} ({baseline.model_sha256[:6]})",
            baseline.machine if len(machines) > 1 else "",
        ]
        for baseline in reversed(baselines)
        for entry in baseline.configurations
    ]
    headings = [(metrics[name].heading if name in metrics else "") or name for name in names]
    columns = ("measured", "configuration", *headings, "with", "model (content)", "machine")
    left = count - len(baselines)
    below = f"and {left} older releases" if left else ""
    return Table("Figures by release, the latest first", columns, rows, below)


def _cell(figures: dict[str, float | None], name: str, metric: Metric | None) -> Cell:
    return Number(figure_in_words(figures[name], metric), figures[name]) if name in figures else "-"


def _history(baselines: Sequence[Baseline], name: str) -> Chart:
    """A line for each configuration, of a latency for each machine as well."""
    metric = metric_named(name)
    is_share = metric is not None and metric.is_share
    several = name == _LATENCY and len(_machines(baselines)) > 1
    found, told = [], []
    for baseline in baselines:
        for entry in baseline.configurations:
            value = entry.figures.get(name)
            if value is not None:
                drawn = 100 * value if is_share else value
                line = f"{entry.name}, {baseline.machine or 'machine not known'}" if several else entry.name
                found.append(Release(baseline.started_at, line, drawn))
                told.append(f"{baseline.started_at}, {line}: {figure_in_words(value, metric)}")
    unit = "%" if is_share else metric.unit if metric is not None else ""
    spec = releases_chart(found, f"{name} in {unit}" if unit else name)
    return Chart(f"{name} over time", spec, first_few(told, most=2 * _MOST_RELEASES))
