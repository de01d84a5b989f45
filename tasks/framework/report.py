"""The sections of a page about a task of your own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.metrics.words import change
from evaltools.report.content import some_of
from evaltools.report.words.facts import counted
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Gallery, Lines, Number, Picture, Section, Table
from evaltools.tasks.framework import topk_report
from evaltools.tasks.framework.common_options import PICTURES
from evaltools.tasks.framework.result import DrawnExample, ScoredPart

_MOST_EXAMPLES: Final = 20


def sections(result: EvaluationResult) -> list[Section]:
    """Changed answers, paired changes; of each comparison with the first baseline the worst examples."""
    part: ScoredPart = result.part
    first: list[Block] = []
    paired: list[Block] = [_changes(part)] if part.comparisons else []
    changed: list[Block] = [*_galleries(part), *_examples(part)]
    moved = [
        f"{found.metric}: {found.other} change it by {found.change.change:+.3g} on "
        f"{counted(found.change.count, 'example')}; up to twice as much counts as no change"
        for found in part.other_kernels
        if found.change.differing
    ]
    paired += [Lines(moved)] if moved else []
    if part.topk is not None:
        notes = topk_report.changed_answers(part.topk)
        first = [Lines(notes)] if notes else []
        paired = [*topk_report.lost_and_gained(part.topk), *paired]
        changed = [*topk_report.galleries(part.topk, folder_of_pictures(part)), *changed]
    return [
        Section("Changed answers", first, "first"),
        Section("Lost and gained" if part.topk else "Paired scores", paired, "accuracy"),
        Section("What changed", changed, "changes"),
    ]


def folder_of_pictures(part: ScoredPart) -> str:
    """The folder that an option of the task names; empty where it takes no pictures."""
    return next((part.options[name] for name in PICTURES if name in part.options), "")


def _galleries(part: ScoredPart) -> Iterator[Gallery]:
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
    return Picture(str(file.parent), file.name, drawn.drawing.text, "", lines, panels=drawn.drawing.panels)


def _changes(part: ScoredPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, found in enumerate(part.comparisons):
        path, mean = f"part/comparisons/{place}/change", found.change
        low, high = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
        rows.append(
            [
                f"{found.other} against {found.baseline}",
                found.metric,
                Number(change(mean.change, low, high, is_share=False), mean.change, f"{path}/change"),
                Number(str(mean.differing), mean.differing, f"{path}/differing"),
                Number(str(mean.count), mean.count, f"{path}/count"),
            ]
        )
    columns = ("configuration", "metric", "change [95 %]", "examples that differ", "examples")
    return Table("Change of each mean on the same examples", columns, rows)


def _examples(part: ScoredPart) -> Iterator[Table]:
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
