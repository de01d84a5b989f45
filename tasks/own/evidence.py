"""How limits and baselines read a task of one's own."""

from __future__ import annotations

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged, ScoreMean
from evaltools.result.places import against_reference
from evaltools.stats.changes import Change
from evaltools.tasks.own.result import OwnPart


def subject(result: EvaluationResult) -> str:
    """The name of the task's function."""
    part: OwnPart = result.part
    return part.name


def setup(result: EvaluationResult) -> dict[str, str]:
    """The checksum of the task's file, and the task's options."""
    part: OwnPart = result.part
    return {"the task's file": part.sha256[:12], **{f"--{name}": value for name, value in part.options.items()}}


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The mean of each metric."""
    return {name: mean.mean for name, mean in _means(result, configuration).items()}


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """Means with their deviations, and changes. A loss is negative, even where lower is better."""
    part: OwnPart = result.part
    changes: dict[str, Change] = {}
    for metric in part.metrics:
        compared = (entry for entry in part.comparisons if entry.metric == metric.name)
        found = against_reference(result, compared, configuration)
        if found is not None:
            changes[metric.name] = found.change.reversed() if metric.better == "lower" else found.change
    return Judged(means=_means(result, configuration), changes=changes)


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
                    entry.mean, entry.deviation, entry.examples, metric.better, scores, metric.margin
                )
    return found


def examples(result: EvaluationResult) -> list[str]:
    """Texts that identify the examples: the task's name, and the checksum of the examples' ids."""
    part: OwnPart = result.part
    return [part.name, part.examples_sha256]
