"""The sections of a task of your own on a page: changes of its metrics, and the examples whose scores changed most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.report.page.content.page import some_of
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Number, Picture, Section, Table
from evaltools.tasks.own.result import DrawnExample, OwnPart

_MOST_EXAMPLES: Final = 20


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
