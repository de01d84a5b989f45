"""How limits and baselines read a detection evaluation."""

from __future__ import annotations

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.tasks.coco import metrics
from evaltools.tasks.coco.result import CocoDetection
from evaltools.tasks.shared.conclusions import figures_by, judged_by, no_setup, task_name

subject = task_name
setup = no_setup


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The figures of the task's metrics."""
    return figures_by(metrics.METRICS, result, configuration)


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The figures over resamples of the pictures, and their changes against the reference."""
    return judged_by(metrics.METRICS, result, configuration)


def examples(result: EvaluationResult) -> list[str]:
    """Texts that identify the pictures and annotations that were evaluated."""
    part: CocoDetection = result.part
    truth = part.data.ground_truth
    return [truth.sha256 if truth else "", str(part.data.unlisted_pictures)]
