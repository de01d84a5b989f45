"""What all records of a task say: its means and comparisons, with what its metric with a part of its own concludes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evaltools.engine.run_folder import digest
from evaltools.extensions import named
from evaltools.known_tasks import task_command
from evaltools.metrics.latency import summarise_latency
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import Collected, Concluded, RecordsOfRun
from evaltools.tasks.framework.definition import Mean, Pooled, Task, name_of
from evaltools.tasks.framework.figures import FigureTable, ScoresSeen, WorstDrawings, verdicts
from evaltools.tasks.framework.other_kernels import allowed_changes
from evaltools.tasks.framework.request import TaskOptions
from evaltools.tasks.framework.result import ExampleScores, MetricComparison, ScoredPart
from evaltools.tasks.framework.steps import scored_at
from evaltools.tasks.framework.sums import Accumulator, Pair, PairAccumulator, RunSums


def collected(task: Task, options: TaskOptions, run: RecordsOfRun) -> Collected:
    """What takes the records of a task."""
    own: Collected | None = named(task.whole.collector)(task.whole, run) if task.whole else None
    return own if own is not None and task.whole and not task.whole.part else CollectedScores(task, options, run, own)


class CollectedScores:
    """Means, comparisons, and every score if that was asked for; it is a :class:`Collected`.

    ``whole`` collects for the metric that has a part of its own.
    """

    def __init__(self, task: Task, options: TaskOptions, run: RecordsOfRun, whole: Collected | None) -> None:
        self._task, self._options, self._run, self._whole = task, options, run, whole
        self._seen: Final = {name: ScoresSeen() for name in run.measured}
        self._drawn: Final = {name: WorstDrawings(name, run.outcome.names) for name in run.measured}

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
        """The part of the result, verdicts on each metric, warnings."""
        run, task, options = self._run, self._task, self._options
        whole = Concluded(None, {}) if self._whole is None else self._whole.conclude(configurations, sums)
        loaded, metrics = options.loaded, task.means
        origin = None if loaded.is_built_in else loaded.origin
        other_kernels: list[MetricComparison] = run.beside or []
        table = FigureTable(metrics, {name: each.rows for name, each in self._seen.items()})
        compared = [comparison for pair in sums.pairs for comparison in table.comparisons(*pair)]
        part_type: type[ScoredPart] = task_command(loaded.task).part_type
        part = part_type(
            name=name_of(loaded.function),
            source=str(origin) if origin else "",
            sha256=origin.sha256 if origin else "",
            options={name: str(value) for name, value in options.recorded.items() if value is not None},
            example_count=len(task.examples),
            examples_sha256=digest(example.id for example in task.examples),
            preprocessing_latency=summarise_latency(run.outcome.preprocessing_us),
            metrics=[Mean(metric.name, metric.better, metric.margin, metric.bounds) for metric in metrics],
            means=[mean for name, each in self._seen.items() for mean in table.means(name, each.certain)],
            comparisons=compared,
            scores=self._scores(table) if run.keeps_examples and metrics else None,
            drawings=[entry for each in self._drawn.values() for entry in each.found],
            other_kernels=other_kernels,
            facts=dict(task.facts),
            **({task.whole.part: whole.part} if task.whole else {}),
        )
        own_verdicts = verdicts(compared, metrics, run.margin, allowed_changes(other_kernels))
        warnings = [*whole.warnings, *self._warnings(), *_without_figure(metrics, part, self._seen.values())]
        return Concluded(part, merged(whole.verdicts, own_verdicts), warnings, whole.also)

    def _scores(self, table: FigureTable) -> list[ExampleScores]:
        scores = {name: table.of_examples(name) for name in table.rows}
        found = []
        for index, example in enumerate(self._task.examples):
            given = {name: each[index] for name, each in scores.items() if index in each}
            if given:
                found.append(ExampleScores(example.id, given))
        return found

    def _warnings(self) -> list[str]:
        unknown = next((each.unknown for each in self._seen.values() if each.unknown), ())
        if not unknown:
            return []
        name = unknown[0]
        return [f'{scored_at(self._task)} also gives {name!r}; add evaltools.mean("{name}") to the metrics to see it']


def _without_figure(metrics: Sequence[Mean], part: ScoredPart, seen: Iterable[ScoresSeen]) -> list[str]:
    """Warnings about metrics of all examples that have no figure, though examples have scores."""
    found = {entry.metric for entry in part.means}
    return [
        f"there is no {metric.name}: nothing in these examples counts for it"
        for metric in metrics
        if isinstance(metric, Pooled) and metric.name not in found and any(each.rows for each in seen)
    ]


def merged(first: Mapping[str, list[Verdict]], then: Mapping[str, list[Verdict]]) -> dict[str, list[Verdict]]:
    """The verdicts of both by configuration."""
    return {name: [*first.get(name, ()), *then.get(name, ())] for name in {**first, **then}}
