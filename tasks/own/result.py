"""The part of a result about a task of your own, and how limits read it."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Latency
from evaltools.metrics.means import MeanChange
from evaltools.metrics.power import Change
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged, ScoreMean
from evaltools.result.places import against_reference
from evaltools.result.section import Drawing
from evaltools.tasks.own import topk_metrics
from evaltools.tasks.own.definition import Mean
from evaltools.tasks.own.topk_result import TopKPart


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


class OwnPart(Struct, frozen=True):
    """A task of your own: which one, with which options, and what came out.

    ``source`` is ``FILE.py:NAME``, empty where only the process had it; ``sha256`` is that of the file.
    ``examples_sha256`` is that of the ids of the examples, in order. ``scores`` are those of every example, null unless
    asked for. ``drawings`` are of the examples that change most, a few of each configuration. ``other_kernels`` is how
    far other CPU kernels change the agreement with the reference, over a few examples; in verdicts twice as much counts
    as no change. ``facts`` are what else decides the scores, such as checksums of labels. ``topk`` has the answers of a
    classifier, null where the task has no such metric.
    """

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

    def __post_init__(self) -> None:
        for example in self.scores or ():
            for configuration, values in example.scores.items():
                if len(values) != len(self.metrics):
                    raise ValueError(
                        f"{configuration} has {len(values)} scores for {example.example!r}; there are "
                        f"{len(self.metrics)} metrics"
                    )


def subject(result: EvaluationResult) -> str:
    """The name of the task's function."""
    part: OwnPart = result.part
    return part.name


def inputs(result: EvaluationResult) -> dict[str, str]:
    """The task and its file, the ids of the examples, and the task's options, of paths their last part."""
    part: OwnPart = result.part
    own = {"task": part.name, "the task's file": part.sha256[:12], "ids of examples": part.examples_sha256[:12]}
    options = {f"--{name}": value.rstrip("/").rpartition("/")[2] for name, value in part.options.items()}
    return own | part.facts | options


def nan_outputs(result: EvaluationResult, configuration: ConfigurationResult) -> int:
    """Answers with scores that are no numbers; of other metrics, such a score fails its example."""
    return topk_metrics.nan_outputs(result, configuration)


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The mean of each metric, and those of a classifier's answers."""
    means = {name: mean.mean for name, mean in _means(result, configuration).items()}
    return topk_metrics.figures(result, configuration) | means


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """Means with their deviations, and changes. A loss is negative, even where lower is better."""
    part: OwnPart = result.part
    changes: dict[str, Change] = {}
    for metric in part.metrics:
        compared = (entry for entry in part.comparisons if entry.metric == metric.name)
        found = against_reference(result, compared, configuration)
        if found is not None:
            changes[metric.name] = found.change.reversed() if metric.better == "lower" else found.change
    of_answers = topk_metrics.judged(result, configuration)
    return replace(of_answers, means=_means(result, configuration), changes={**of_answers.changes, **changes})


def _means(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, ScoreMean]:
    part: OwnPart = result.part
    recorded = [example.scores.get(configuration.name) for example in part.scores or []]
    found = {}
    for place, metric in enumerate(part.metrics):
        given = [values[place] for values in recorded if values is not None]
        scores = [score for score in given if score is not None]
        scores = scores if len(scores) == part.example_count else []
        for entry in part.means:
            if (entry.configuration, entry.metric) == (configuration.name, metric.name):
                found[metric.name] = ScoreMean(
                    mean=entry.mean,
                    deviation=entry.deviation,
                    count=entry.examples,
                    better=metric.better,
                    scores=scores,
                    margin=metric.margin,
                    unequal=entry.unequal,
                    low=entry.low,
                    high=entry.high,
                    is_bounded=entry.is_bounded,
                    bounds=metric.bounds,
                    interval=entry.interval,
                )
    return found
