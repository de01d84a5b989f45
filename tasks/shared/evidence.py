"""What metrics say about a configuration, for limits and baselines."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.metrics.metric import Metric, present
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged


def task_name(result: EvaluationResult) -> str:
    """The name of the task."""
    return result.task


def no_setup(_result: EvaluationResult) -> dict[str, str]:
    """An empty setup, for tasks whose options are all visible in their examples and figures."""
    return {}


def figures_by(
    metrics: Sequence[Metric], result: EvaluationResult, configuration: ConfigurationResult
) -> dict[str, float | None]:
    """The figures by name that the result has."""
    return present({metric.name: metric.read(result, configuration) for metric in metrics})


def judged_by(metrics: Sequence[Metric], result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The counts behind shares, changes against the reference, and figures over draws, where there are such."""
    shares = {metric.name: metric.share(result, configuration) for metric in metrics if metric.share}
    changes = {metric.name: metric.change(result, configuration) for metric in metrics if metric.change}
    drawn = {metric.name: metric.draws(result, configuration) for metric in metrics if metric.draws}
    return Judged(
        shares={name: share for name, share in shares.items() if share is not None},
        changes={name: change for name, change in changes.items() if change is not None},
        resampled={name: values for name, values in drawn.items() if values},
    )
