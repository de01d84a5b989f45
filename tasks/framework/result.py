"""The part of a result about a task of your own."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Latency
from evaltools.metrics.means import MeanChange, MeanOfScores
from evaltools.metrics.metric import ABSENT, Figure, Metric, metric_of_own_task
from evaltools.metrics.power import Change
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, ExecutionUsed
from evaltools.result.places import against_reference
from evaltools.result.section import Drawing
from evaltools.result.task_part import TaskPart
from evaltools.tasks.framework.definition import Mean
from evaltools.tasks.framework.topk_result import TopKPart


class MetricMean(Struct, frozen=True):
    """The mean of a metric over the ``examples`` that a configuration finished, with its 95 % interval.

    A metric of all examples together stands here as well: it is the mean of what the examples contribute (the
    jackknife's pseudo-values; of more than 2000 examples those of 200 groups).

    The interval is Student's t with what examples that were not seen may add, Wilson's where every score is 0 or 1. It
    is null for fewer than 2 examples, for fewer than 20 unequal scores of a metric without bounds, and for the
    agreement of the reference with itself. ``deviation`` is the standard deviation of the scores, of which ``unequal``
    are not the most frequent one; ``low`` and ``high`` are the metric's bounds where it states some, or where every
    score is 0 or 1 (``is_bounded``), else the smallest and the largest score, 0 included.
    """

    configuration: str
    metric: str
    examples: int
    mean: float
    deviation: float
    interval: Interval | None
    unequal: int = 0
    low: float = 0.0
    high: float = 0.0
    is_bounded: bool = False


class MetricComparison(Struct, frozen=True):
    """A metric of ``other`` compared with that of ``baseline`` on the examples that both finished.

    ``change`` is that of the mean with what its bounds follow from, ``interval`` its 95 % interval. For a metric of
    all examples together and more than 2000 of them, how many differ is estimated from 200 of them.
    """

    baseline: str
    other: str
    metric: str
    change: MeanChange
    interval: Interval | None


class ExampleScores(Struct, frozen=True):
    """The scores of one example in the order of the metrics, of each configuration that finished it.

    Null where it has none. For a metric of all examples together it is what the example contributes to it.
    """

    example: str
    scores: dict[str, list[float | None]]


class DrawnExample(Struct, frozen=True):
    """An example of which ``other`` gives something else than the reference, as its task draws it."""

    other: str
    example: str
    drawing: Drawing


class ScoredPart(TaskPart, frozen=True):
    """A task of your own: which one, with which options, and what came out.

    ``source`` is ``FILE.py:NAME``, empty where only the process had it; ``sha256`` is that of the file.
    ``examples_sha256`` is that of the ids of the examples, in order. ``scores`` are those of every example, null unless
    asked for. ``drawings`` are of the examples that change most, a few of each configuration. ``other_kernels`` is how
    far other CPU kernels change the agreement with the reference, over a few examples; in verdicts twice as much counts
    as no change. ``facts`` are what else decides the scores, such as checksums of labels. ``topk`` has the answers of a
    classifier, null where the task has no such metric. ``lines`` are those of stdout by configuration, where the task
    gives some.
    """

    sections_at: ClassVar[str] = "evaltools.tasks.framework.report:sections"
    next_steps_at: ClassVar[str] = "evaltools.tasks.framework.next_steps:next_steps"

    name: str
    source: str
    sha256: str
    options: dict[str, str]
    example_count: int
    examples_sha256: str
    preprocessing_latency: Latency
    metrics: list[Mean]
    means: list[MetricMean]
    comparisons: list[MetricComparison]
    scores: list[ExampleScores] | None = None
    drawings: list[DrawnExample] = field(default_factory=list)
    other_kernels: list[MetricComparison] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    topk: TopKPart | None = None
    lines: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for example in self.scores or ():
            for configuration, values in example.scores.items():
                if len(values) != len(self.metrics):
                    raise ValueError(
                        f"{configuration} has {len(values)} scores for {example.example!r}; there are "
                        f"{len(self.metrics)} metrics"
                    )

    @property
    def given(self) -> dict[str, str]:
        """The task and its file, the ids of the examples, and the task's options, of paths their last part."""
        own = {"task": self.name, "the task's file": self.sha256[:12], "ids of examples": self.examples_sha256[:12]}
        options = {f"--{name}": value.rstrip("/").rpartition("/")[2] for name, value in self.options.items()}
        return own | self.facts | options

    @property
    def own_metrics(self) -> list[Metric]:
        """The means, which only the task's function knows."""
        return [
            replace(
                metric_of_own_task(metric.name),
                read=partial(_value, metric.name),
                better=metric.better,
                interval=partial(_interval, metric.name),
                mean=partial(_mean, metric.name),
                change=partial(_change, metric.name),
                each=partial(_scores, metric.name),
                margin=metric.margin,
                bounds=metric.bounds,
            )
            for metric in self.metrics
        ]

    def nan_outputs(self, configuration: str) -> int:
        """Answers with scores that are no numbers; of other metrics, such a score fails its example."""
        answered = self.topk.classified.get(configuration) if self.topk else None
        return (answered.metrics.outputs_with_nonfinite or 0) if answered else 0

    def times_us(self, configuration: str, execution: ExecutionUsed | None) -> list[float]:
        """The times recorded with the answers, where the latency is computed from them, and not in a quiet phase."""
        if execution is None or execution.workers != 1 or execution.quiet_latency_examples is not None:
            return []
        return [answer.invoke_us for answer in self.topk.answers_of(configuration)] if self.topk else []


def _entry(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> MetricMean | None:
    part: ScoredPart = result.part
    wanted = configuration.name, name
    return next((entry for entry in part.means if (entry.configuration, entry.metric) == wanted), None)


def _value(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    found = _entry(name, result, configuration)
    return ABSENT if found is None else found.mean


def _interval(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Interval | None:
    found = _entry(name, result, configuration)
    return None if found is None else found.interval


def _mean(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> MeanOfScores | None:
    found = _entry(name, result, configuration)
    if found is None:
        return None
    return MeanOfScores(
        found.mean, found.deviation, found.examples, found.unequal, found.low, found.high, found.is_bounded
    )


def _change(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Change | None:
    """The change against the reference. A loss is negative, even where lower is better."""
    part: ScoredPart = result.part
    compared = (entry for entry in part.comparisons if entry.metric == name)
    found = against_reference(result, compared, configuration)
    if found is None:
        return None
    metric = next(each for each in part.metrics if each.name == name)
    return found.change.reversed() if metric.better == "lower" else found.change


def _scores(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> list[float]:
    """The scores of the examples; none unless every one has one."""
    part: ScoredPart = result.part
    places = [place for place, metric in enumerate(part.metrics) if metric.name == name]
    recorded = [example.scores.get(configuration.name) for example in part.scores or []]
    scores = [values[place] for values in recorded if values is not None for place in places]
    found = [score for score in scores if score is not None]
    return found if len(found) == part.example_count else []
