"""The figures of the task, and how far each configuration is from what it was compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from evaltools.known_tasks import task_command
from evaltools.metrics.interval import Interval
from evaltools.metrics.words import change
from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.page.sections.rows import is_share, tone_of_verdict
from evaltools.report.words.numbers import figure_with_interval, p_value
from evaltools.result.metrics import of_task
from evaltools.result.result import Result, Row
from evaltools.result.section import Axis, Block, Cell, Chart, Mark, Number, Section, Table, number_cell, path_to
from evaltools.result.verdict import Verdict

_MOST_FIGURES: Final = 24
_MOST_INTERVALS: Final = 24


def accuracy(result: Result) -> Section:
    """Figures of the task by configuration, verdicts with their intervals, a chart of the changes."""
    judged = [
        (place, number, entry, verdict)
        for place, entry in enumerate(result.rows)
        for number, verdict in enumerate(entry.verdicts)
    ]
    blocks: list[Block] = [_figures(result)]
    blocks += [_verdicts(judged)] if judged else []
    changes = [(entry, verdict) for _, _, entry, verdict in judged if verdict.change is not None]
    drawn = _changes(changes) if changes else None
    blocks += [] if drawn is None else [drawn]
    return Section("Accuracy" if task_command(result.command).accuracy else "Figures", blocks, "accuracy")


def _figures(result: Result) -> Table:
    measured = [(place, entry) for place, entry in enumerate(result.rows) if entry.status == "measured"]
    headings = {name: found.heading for _, entry in measured for name, found in of_task(entry).items()}
    shown = sorted(headings, key=lambda name: not headings[name])[:_MOST_FIGURES]
    rows: list[Sequence[Cell]] = [
        [headings[name] or name, *(_figure(place, name, entry) for place, entry in measured)] for name in shown
    ]
    counts = [
        number_cell(entry.finished_examples, path=f"rows/{place}/figures/examples/value") for place, entry in measured
    ]
    rows.append(["examples with an answer", *counts])
    below = some_of(len(shown), len(headings), "figures")
    return Table("Figures by configuration", ("figure", *(entry.name for _, entry in measured)), rows, below)


def _figure(place: int, name: str, entry: Row) -> Cell:
    if name not in entry.figures:
        return "-"
    found = entry.figures[name]
    path = path_to("rows", place, "figures", name, "value")
    return Number(figure_with_interval(found), found.value, path)


def _verdicts(judged: Iterable[tuple[int, int, Row, Verdict]]) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, number, entry, verdict in judged:
        path = f"rows/{place}/verdicts/{number}"
        size = verdict.change
        text = "" if size is None else change(size, verdict.low, verdict.high, is_share(entry, verdict))
        rows.append(
            [
                entry.name,
                verdict.against,
                "" if size is None else Number(text, size, f"{path}/change"),
                number_cell(verdict.p_value, p_value, f"{path}/p_value"),
                number_cell(verdict.examples_needed, path=f"{path}/examples_needed"),
                verdict.sentence,
            ]
        )
    columns = ("configuration", "compared with", "change [95 %]", "test, corrected", "examples that would decide",
               "verdict")  # fmt: skip
    ranks = (0, 1, 2, 3, 4, 0)
    return Table("Verdicts", columns, rows, ranks=ranks)


def _changes(judged: Sequence[tuple[Row, Verdict]]) -> Chart | None:
    """The changes of the figure that decides, of each configuration against the reference."""
    main = judged[0][1].metric
    known = judged[0][0].figures.get(main)
    heading = (known.heading if known is not None else "") or main
    factor, unit = (100, "points") if is_share(*judged[0]) else (1, "")
    every = [(entry, verdict) for entry, verdict in judged if verdict is entry.verdict and verdict.metric == main]
    shown = every[:_MOST_INTERVALS]
    marks = [
        Mark(
            factor * (verdict.change or 0.0),
            entry.name,
            tone=tone_of_verdict(verdict),
            x_interval=None
            if verdict.low is None or verdict.high is None
            else Interval(factor * verdict.low, factor * verdict.high),
        )
        for entry, verdict in shown
    ]
    if not marks:
        return None
    margin = shown[0][1].margin
    title = f"change of {heading} in {unit}" if unit else f"change of {heading}"
    changes = [
        f"{entry.name} {change(verdict.change or 0.0, verdict.low, verdict.high, is_share(entry, verdict))}"
        for entry, verdict in shown
    ]
    band = "" if margin is None else f"The band is what counts as no change: ±{factor * margin:g} {unit}".rstrip()
    text = sentences(first_few(changes), band, some_of(len(shown), len(every), "configurations"))
    axis = Axis(title, at=0.0, margin=factor * (margin or 0.0))
    return Chart(f"Change of {heading} against {shown[0][1].against}", "points", marks, text, axis)
