"""What limits are held against: the means of a task of your own, and their changes."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.gates.evidence import Change, Mean
from evaltools.tasks.own.result import MetricComparison, OwnTaskResult


def own_means(own: OwnTaskResult, configuration: str) -> dict[str, Mean]:
    """The means of a configuration by the names of metrics."""
    better = {metric.name: metric.better for metric in own.metrics}
    return {
        entry.metric: Mean(entry.mean, entry.deviation, entry.examples, better[entry.metric])
        for entry in own.means
        if entry.configuration == configuration
    }


def own_changes(own: OwnTaskResult, comparisons: Sequence[MetricComparison]) -> dict[str, Change]:
    """The changes against the reference; what is better when lower is turned round, so that a loss is negative."""
    lower = {metric.name for metric in own.metrics if metric.better == "lower"}
    return {entry.metric: entry.change.reversed() if entry.metric in lower else entry.change for entry in comparisons}
