"""How the figures of a task of your own are shown: native tools' lines, a table for a person, sections of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from evaltools.native.lines.evaluation import latency_line
from evaltools.report.page.content.page import some_of
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, speed_columns
from evaltools.report.words.verdicts import score_change_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Number, Picture, Section, Table
from evaltools.task_kind import Detail
from evaltools.tasks.own.result import DrawnExample, MetricMean, OwnPart
from evaltools.tasks.shared.showing import next_steps

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]

_MOST_EXAMPLES: Final = 20


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Number of examples, latencies, each metric; numbers as C++ streams print them."""
    part: OwnPart = result.part
    preprocessing = part.preprocessing_latency
    found = [
        f"Num evaluation runs: {configuration.finished_examples}",
        latency_line("Preprocessing", preprocessing),
        latency_line("Inference", configuration.inference_latency),
    ]
    means = [entry for entry in part.means if entry.configuration == configuration.name]
    return found + [f"{entry.metric}: {entry.mean:g}" for entry in means]


def fill(_message: Any, _result: EvaluationResult, _configuration: ConfigurationResult) -> None:
    """There is no native message for such a task."""


def print_figures(result: EvaluationResult, console: Console, _detail: Detail) -> None:
    """Means and speed, one row per configuration, and the verdicts that are not the answer."""
    part: OwnPart = result.part
    if not part.means:
        return
    _print_table(result, part, console)
    for found in part.other_kernels:
        if found.change.differing:
            moved = f"{found.change.change:+.3g} on {found.change.count} examples"
            console.print(
                f"{found.metric}: {found.other} change it by {moved}; up to twice as much counts as no change"
            )
    differing = {(entry.baseline, entry.other, entry.metric): entry.change for entry in part.comparisons}
    for configuration in result.configurations:
        for verdict in configuration.verdicts:
            change = differing[verdict.against, configuration.name, verdict.metric]
            against = "" if verdict.against == part.comparisons[0].baseline else f" against {verdict.against}"
            sentences = [] if verdict is configuration.verdict else [score_change_in_words(verdict)]
            sentences += [f"{change.differing} of {change.count} examples differ"] if change.differing else []
            if sentences:
                console.print(f"{configuration.name}{against}: {verdict.metric} {'; '.join(sentences)}")


def _print_table(result: EvaluationResult, own: OwnPart, console: Console) -> None:
    """The task's first metric, speed, the other metrics."""
    baseline = own.comparisons[0].baseline if own.comparisons else None
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    found = {(mean.configuration, mean.metric): _mean(mean) for mean in own.means}

    def column(metric: str) -> Column[ConfigurationResult]:
        return Column(metric, lambda configuration: found.get((configuration.name, metric), "-"))

    first, *others = (column(metric.name) for metric in own.metrics)
    columns = [first, *speed_columns(result, reference), *others]
    print_columns([NAMES], ranked(columns), result.configurations, console)


def _mean(mean: MetricMean) -> str:
    """With half the width of its 95 % interval."""
    interval = mean.interval
    return f"{mean.mean:.4g}" if interval is None else f"{mean.mean:.4g} ±{(interval.high - interval.low) / 2:.2g}"


def sections(result: EvaluationResult) -> list[Section]:
    """Paired changes; of each comparison with the first baseline the worst examples, where scores were recorded."""
    part: OwnPart = result.part
    changes = [_changes(part)] if part.comparisons else []
    changed: list[Block] = [*_galleries(part), *_examples(part)]
    return [
        Section("Paired scores", changes, "accuracy"),
        Section("What changed", changed, "changes"),
    ]


def _galleries(part: OwnPart) -> Iterator[Gallery]:
    """What each configuration changed most, as the task draws it."""
    by_other: dict[str, list[Picture]] = {}
    for drawn in part.drawings:
        by_other.setdefault(drawn.other, []).append(_picture(drawn))
    for other, pictures in by_other.items():
        yield Gallery(f"Pictures that {other} changes most", pictures)


def _picture(drawn: DrawnExample) -> Picture:
    """The file of the example; its name in the task stands beside it where that is another one."""
    file = Path(drawn.drawing.picture)
    lines = [] if drawn.example == file.name else [drawn.example]
    return Picture(str(file.parent), file.name, drawn.drawing.said, "", lines, panels=drawn.drawing.panels)


def _changes(part: OwnPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, found in enumerate(part.comparisons):
        path, change = f"part/comparisons/{place}/change", found.change
        span = "-" if found.interval is None else f"[{found.interval.low:+.3g}, {found.interval.high:+.3g}]"
        rows.append(
            [
                f"{found.other} against {found.baseline}",
                found.metric,
                Number(f"{change.change:+.3g}", change.change, f"{path}/change"),
                span,
                Number(str(change.differing), change.differing, f"{path}/differing"),
                Number(str(change.count), change.count, f"{path}/count"),
            ]
        )
    columns = ("configuration", "metric", "change", "95 % interval", "examples that differ", "examples")
    return Table("Change of each mean on the same examples", columns, rows)


def _examples(part: OwnPart) -> Iterator[Table]:
    """A table for each comparison with the first baseline and each metric, the largest losses first."""
    places = {metric.name: place for place, metric in enumerate(part.metrics)}
    for found in part.comparisons if part.scores else ():
        if found.baseline != part.comparisons[0].baseline or not found.change.differing:
            continue
        place = places[found.metric]
        sign = 1 if part.metrics[place].better == "higher" else -1
        scored = [
            (example.example, example.scores[found.baseline][place], example.scores[found.other][place])
            for example in part.scores or ()
            if {found.baseline, found.other} <= example.scores.keys()
        ]
        both = [(name, one, two) for name, one, two in scored if one is not None and two is not None and one != two]
        differing = sorted(both, key=lambda entry: sign * (entry[2] - entry[1]))
        rows: list[Sequence[Cell]] = [
            [name, Number(f"{before:.4g}", before), Number(f"{after:.4g}", after)]
            for name, before, after in differing[:_MOST_EXAMPLES]
        ]
        below = some_of(len(rows), len(differing), "examples that differ")
        title = f"{found.metric}: the examples that {found.other} loses most on"
        yield Table(title, ("example", found.baseline, found.other), rows, below)
