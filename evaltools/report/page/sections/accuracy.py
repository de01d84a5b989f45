"""The figures of the task, and how far each configuration is from what it was held against."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from evaltools.metrics.metric import Metric
from evaltools.report.page.charts.figures import Spread, intervals_chart
from evaltools.report.page.content.page import first_few, sentences, some_of
from evaltools.report.tables.cells import figure_in_words, p_value
from evaltools.report.words.verdicts import change_with_interval, in_points, verdict_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table, Tone, number_cell, path_to
from evaltools.result.verdict import Verdict
from evaltools.task_kind import all_metrics, kind_of, metric_named

_MOST_FIGURES: Final = 24
_MOST_INTERVALS: Final = 24
_OF_KINDS: Final[Mapping[str, Tone]] = {
    "identical": "good", "equivalent": "good", "better": "good", "fp16": "good", "bf16": "good", "int8": "good",
    "worse": "bad", "diverged": "bad", "not measured": "bad",
    "not decided": "open", "not judged": "open", "the reference is the odd one out": "open",
}  # fmt: skip


def accuracy(result: EvaluationResult) -> Section:
    """Figures of the task by configuration, verdicts with their intervals, a chart of the changes."""
    judged = [
        (place, number, entry, verdict)
        for place, entry in enumerate(result.configurations)
        for number, verdict in enumerate(entry.verdicts)
        if verdict.change is not None
    ]
    blocks: list[Block] = [_figures(result)]
    if judged:
        blocks.append(_verdicts(judged))
        drawn = _changes([(entry, verdict) for _, _, entry, verdict in judged])
        blocks += [] if drawn is None else [drawn]
    return Section("Accuracy" if kind_of(result.task).accuracy else "Figures", blocks, "accuracy")


def _figures(result: EvaluationResult) -> Table:
    measured = [(place, entry) for place, entry in enumerate(result.configurations) if entry.status == "measured"]
    known = all_metrics()
    names = list(dict.fromkeys(name for _, entry in measured for name in entry.figures))
    shown = sorted(names, key=lambda name: not (name in known and known[name].heading))[:_MOST_FIGURES]
    rows: list[Sequence[Cell]] = [
        [
            name,
            *(
                _figure(entry, name, known.get(name), path_to("configurations", place, "figures", name))
                for place, entry in measured
            ),
        ]
        for name in shown
    ]
    rows.append(
        [
            "examples with an answer",
            *(
                number_cell(entry.finished_examples, path=f"configurations/{place}/finished_examples")
                for place, entry in measured
            ),
        ]
    )
    below = some_of(len(shown), len(names), "figures")
    return Table("Figures by configuration", ("figure", *(entry.name for _, entry in measured)), rows, below)


def _figure(entry: ConfigurationResult, name: str, metric: Metric | None, path: str) -> Cell:
    if name not in entry.figures:
        return "-"
    value = entry.figures[name]
    return Number(figure_in_words(value, metric), value, path)


def _verdicts(judged: Iterable[tuple[int, int, ConfigurationResult, Verdict]]) -> Table:
    rows = []
    for place, number, entry, verdict in judged:
        path = f"configurations/{place}/verdicts/{number}"
        show = _points if is_share(verdict) else "{:+.3g}".format
        rows.append(
            [
                entry.name,
                verdict.against,
                *(number_cell(getattr(verdict, name), show, f"{path}/{name}") for name in ("change", "low", "high")),
                number_cell(verdict.p_value, p_value, f"{path}/p_value"),
                number_cell(verdict.examples_needed, path=f"{path}/examples_needed"),
                verdict_in_words(verdict),
            ]
        )
    columns = (
        "configuration", "against", "change", "from", "to", "test, corrected", "examples that would decide", "verdict",
    )  # fmt: skip
    return Table("Paired changes with their 95 % intervals", columns, rows)


def is_share(verdict: Verdict) -> bool:
    """Whether a verdict is about a share, whose changes are told in points."""
    metric = metric_named(verdict.metric)
    return metric is not None and metric.is_share


def _points(change: float) -> str:
    return f"{in_points(change)} points"


def _changes(judged: Sequence[tuple[ConfigurationResult, Verdict]]) -> Chart | None:
    """The changes of the figure that decides, of each configuration against the reference."""
    main = judged[0][1].metric
    known = all_metrics().get(main)
    heading = (known.heading if known is not None else "") or main
    factor, unit = (100, "points") if is_share(judged[0][1]) else (1, "")
    every = [(entry, verdict) for entry, verdict in judged if verdict is entry.verdict and verdict.metric == main]
    shown = every[:_MOST_INTERVALS]
    spreads = [
        Spread(
            entry.name,
            factor * (verdict.change or 0.0),
            None if verdict.low is None else factor * verdict.low,
            None if verdict.high is None else factor * verdict.high,
            tone_of_verdict(verdict),
        )
        for entry, verdict in shown
    ]
    if not spreads:
        return None
    margin = shown[0][1].margin
    axis = f"change of {heading} in {unit}" if unit else f"change of {heading}"
    spec = intervals_chart(spreads, axis, 0.0, factor * (margin or 0.0))
    told = first_few([f"{entry.name} {change_with_interval(verdict, is_share(verdict))}" for entry, verdict in shown])
    band = "" if margin is None else f"The band is what counts as no change: ±{factor * margin:g} {unit}".rstrip()
    said = sentences(told, band, some_of(len(shown), len(every), "configurations"))
    return Chart(f"Change of {heading} against {shown[0][1].against}", spec, said)


def tone_of_verdict(verdict: Verdict | None) -> Tone:
    """The colour of a verdict, that of an open question where there is none."""
    return "open" if verdict is None else _OF_KINDS[verdict.kind]


def tone_of(configuration: ConfigurationResult) -> Tone:
    """The colour of a configuration's own verdict; one that was not measured is never good."""
    if configuration.status == "not measured" or configuration.fallback or configuration.not_clean:
        return "bad"
    return tone_of_verdict(configuration.verdict)
