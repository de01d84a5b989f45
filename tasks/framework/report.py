"""The sections of a page about the scores of a task: how they changed, on which examples, and what a task draws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.metrics.means import MeanChange
from evaltools.report.content import some_of
from evaltools.report.words.facts import counted
from evaltools.result.figure import contribution_to
from evaltools.result.section import Block, Cell, Gallery, Lines, Number, Picture, Section, Table
from evaltools.tasks.framework.collecting import Pair
from evaltools.tasks.framework.definition import Task
from evaltools.tasks.framework.figures import DrawnExample

_MOST_EXAMPLES: Final = 20
Changes = Mapping[Pair, Mapping[str, MeanChange]]
Scores = Mapping[str, Mapping[str, Sequence[float | None]]]


def sections(
    task: Task,
    changes: Changes,
    scores: Scores,
    drawn: Mapping[str, Sequence[DrawnExample]],
    other_kernels: Mapping[str, MeanChange],
    contributed: Collection[str] = (),
) -> list[Section]:
    """Paired changes, and of each comparison with the first baseline the worst examples.

    ``scores`` are those of each example, by configuration and metric, where they were asked for; ``drawn`` the examples
    that each configuration changes most. Of the metrics that are ``contributed`` to, single examples have no scores.
    """
    moved = [
        f"{metric}: plain C++ kernels change it by {found.change:+.3g} on "
        f"{counted(found.count, 'example')}; up to twice as much counts as no change"
        for metric, found in other_kernels.items()
        if found.differing
    ]
    changed: list[Block] = [
        Gallery(f"Pictures that {other} changes most", list(map(_picture, found)))
        for other, found in drawn.items()
        if found
    ]
    changed += _examples(task, changes, scores, contributed)
    kernels: list[Block] = [Lines(moved)] if moved else []
    return [Section("Other kernels", kernels, "accuracy"), Section("What changed", changed, "changes")]


def joined(first: Sequence[Section], then: Iterable[Section]) -> list[Section]:
    """The sections that have blocks; the blocks of one of ``then`` stand behind those of the first at its place."""
    found = [section for section in first if section.blocks]
    for section in then:
        place = next((place for place, each in enumerate(found) if each.place == section.place), None)
        if place is not None:
            found[place] = replace(found[place], blocks=[*found[place].blocks, *section.blocks])
        elif section.blocks:
            found.append(section)
    return found


def _picture(drawn: DrawnExample) -> Picture:
    """The file of the example; its name in the task stands beside it where that is another one."""
    file = Path(drawn.drawing.picture)
    lines = [] if drawn.example == file.name else [drawn.example]
    given = drawn.drawing
    return Picture(str(file.parent), file.name, given.text, "", lines, panels=given.panels, score=given.changed)


def _examples(task: Task, changes: Changes, scores: Scores, contributed: Collection[str]) -> Iterator[Table]:
    """A table for each comparison with the first baseline and each metric, the largest losses first."""
    names = [example.id for example in task.examples]
    better = {metric.name: metric.better for metric in task.means}
    first = next(iter(changes), ("", ""))[0]
    for (baseline, other), found in changes.items():
        for metric, mean in found.items():
            before, after = (scores[name].get(metric, ()) for name in (baseline, other))
            if baseline != first or not mean.differing or not before:
                continue
            both = [
                (name, one, two)
                for name, one, two in zip(names, before, after, strict=True)
                if one is not None and two is not None and one != two
            ]
            sign = 1 if better[metric] == "higher" else -1
            differing = sorted(both, key=lambda entry: sign * (entry[2] - entry[1]))
            rows: list[Sequence[Cell]] = [
                [name, Number(f"{one:.4g}", one), Number(f"{two:.4g}", two)]
                for name, one, two in differing[:_MOST_EXAMPLES]
            ]
            below = some_of(len(rows), len(differing), "examples that differ")
            shown = f"{contribution_to(metric)}, what each adds to {metric} and no score of it"
            title = f"{shown if metric in contributed else metric}: the examples that {other} loses most on"
            yield Table(title, ("example", baseline, other), rows, below)
