"""What all records of a task say: its means and their changes, with what its metric of whole answers concludes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.extensions import named
from evaltools.gates.bounds import change_of_means
from evaltools.metrics.means import MeanChange
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.figure import Change, Figure
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import Collected, Columns, Concluded, RecordsOfRun, columns, reference_among
from evaltools.tasks.framework.definition import Mean, Pooled, Task
from evaltools.tasks.framework.figures import FigureTable, ScoresSeen, WorstDrawings, verdicts_on
from evaltools.tasks.framework.other_kernels import allowed_changes
from evaltools.tasks.framework.report import Scores, joined, sections
from evaltools.tasks.framework.request import TaskOptions, given_of
from evaltools.tasks.framework.steps import scored_at
from evaltools.tasks.framework.sums import Accumulator, Pair, PairAccumulator, RunSums


def collected(task: Task, options: TaskOptions, run: RecordsOfRun) -> Collected:
    """What takes the records of a task."""
    whole = named(task.whole.collector)(task.whole, run) if task.whole else None
    return CollectedScores(task, options, run, whole)


class CollectedScores:
    """Means, their changes, and every score if that was asked for; it is a :class:`Collected`.

    ``whole`` collects for the metric of whole answers.
    """

    def __init__(self, task: Task, options: TaskOptions, run: RecordsOfRun, whole: Collected | None) -> None:
        self._task, self._options, self._run, self._whole = task, options, run, whole
        self._seen: Final = {name: ScoresSeen() for name in run.measured}
        self._drawn: Final = {name: WorstDrawings(run.outcome.names) for name in run.measured}

    @property
    def own(self) -> Mapping[str, Sequence[Accumulator[Any]]]:
        """The scores and drawings of each configuration, and what the other metric takes."""
        others = {} if self._whole is None else self._whole.own
        return {
            name: [*(each[name] for each in (self._seen, self._drawn) if name in each), *others.get(name, ())]
            for name in {**self._seen, **others}
        }

    @property
    def paired(self) -> Mapping[Pair, Sequence[PairAccumulator[Any]]]:
        """What the other metric takes of pairs."""
        return {} if self._whole is None else self._whole.paired

    def conclude(self, configurations: Sequence[ConfigurationResult], sums: RunSums) -> Concluded:
        """The figures, verdicts on each metric, what to show beside them, warnings."""
        run, task = self._run, self._task
        whole = Concluded() if self._whole is None else self._whole.conclude(configurations, sums)
        other_kernels: Mapping[str, MeanChange] = {} if task.beside is not None else run.beside or {}
        table = FigureTable(task.means, {name: each.rows for name, each in self._seen.items()})
        changes = {pair: found for pair in sums.pairs if (found := table.changes(*pair))}
        scores = {
            name: table.of_examples(name, len(task.examples)) if run.keeps_examples else {} for name in self._seen
        }
        reference = reference_among(configurations)
        has_scores = run.keeps_examples and bool(task.means)
        figures = {
            name: {
                metric: replace(
                    figure,
                    change=_change_of(metric, changes.get((reference or "", name), {}), reference or ""),
                    scores=scores[name].get(metric, []),
                )
                for metric, figure in table.means(name, each.certain).items()
            }
            for name, each in self._seen.items()
        }
        own_verdicts: dict[str, list[Verdict]] = {}
        for (baseline, other), found in changes.items():
            judged = verdicts_on(found, task.means, baseline, run.margin, allowed_changes(other_kernels))
            own_verdicts.setdefault(other, []).extend(judged)
        drawn = {name: each.found for name, each in self._drawn.items()}
        own_blocks = sections(task, changes, scores, drawn, other_kernels)
        return replace(
            whole,
            figures=merged(whole.figures, figures),
            verdicts={name: [*whole.verdicts.get(name, ()), *own_verdicts.get(name, ())]
                      for name in {**whole.verdicts, **own_verdicts}},
            warnings=[*whole.warnings, *self._warnings(), *_without_figure(task.means, figures, self._seen.values())],
            blocks=joined(whole.blocks, own_blocks),
            given=whole.given or given_of(self._options, (example.id for example in task.examples), task.facts),
            examples=whole.examples or ({"example": [example.id for example in task.examples]} if has_scores else {}),
            changed=whole.changed or (self._changed(scores, reference) if has_scores else {}),
        )  # fmt: skip

    def _changed(self, scores: Scores, reference: str | None) -> Columns:
        """Each score of an example that is another than the reference's."""
        base = scores.get(reference or "", {})
        rows = [
            (example.id, name, metric, before, after)
            for name, own in scores.items()
            for metric, values in own.items()
            for example, before, after in zip(self._task.examples, base.get(metric, ()), values, strict=False)
            if before is not None and after is not None and before != after
        ]
        return columns(("example", "configuration", "metric", "before", "after"), rows)

    def _warnings(self) -> list[str]:
        unknown = next((each.unknown for each in self._seen.values() if each.unknown), ())
        if not unknown:
            return []
        name = unknown[0]
        return [f'{scored_at(self._task)} also gives {name!r}; add evaltools.mean("{name}") to the metrics to see it']


def _change_of(metric: str, changes: Mapping[str, MeanChange], reference: str) -> Change | None:
    return change_of_means(changes[metric], reference) if metric in changes else None


def _without_figure(
    metrics: Sequence[Mean], figures: Mapping[str, Mapping[str, Figure]], seen: Iterable[ScoresSeen]
) -> list[str]:
    """Warnings about metrics of all examples that have no figure, though examples have scores."""
    found = {metric for own in figures.values() for metric in own}
    return [
        f"there is no {metric.name}: nothing in these examples counts for it"
        for metric in metrics
        if isinstance(metric, Pooled) and metric.name not in found and any(each.rows for each in seen)
    ]


def merged(
    first: Mapping[str, dict[str, Figure]], then: Mapping[str, dict[str, Figure]]
) -> dict[str, dict[str, Figure]]:
    """The figures of both by configuration."""
    return {name: {**first.get(name, {}), **then.get(name, {})} for name in {**first, **then}}
