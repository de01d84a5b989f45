"""How limits and baselines read an ImageNet evaluation."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.tasks.imagenet import metrics
from evaltools.tasks.imagenet.result import ImagenetPart
from evaltools.tasks.shared.evidence import figures_by, judged_by, no_setup, task_name

subject = task_name
setup = no_setup


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The figures of the task's metrics."""
    return figures_by(metrics.METRICS, result, configuration)


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The counts behind the accuracies, flips against the reference, and ranks if every example has an answer."""
    part: ImagenetPart = result.part
    recorded = [example.answers.get(configuration.name) for example in part.examples or []]
    answers = [answer for answer in recorded if answer is not None]
    ranks = [answer.rank for answer in answers] if len(answers) == len(recorded) else ()
    times_us = [answer.invoke_us for answer in answers] if ranks and _is_timed_in_pass(result) else ()
    return replace(judged_by(metrics.METRICS, result, configuration), ranks=ranks, times_us=times_us)


def _is_timed_in_pass(result: EvaluationResult) -> bool:
    """Whether the latency is computed from the times recorded with the answers, and not from a quiet phase."""
    execution = result.execution
    return execution is not None and execution.workers == 1 and execution.quiet_latency_examples is None


def examples(result: EvaluationResult) -> list[str]:
    """Texts that identify the pictures and labels that were evaluated.

    Checksums; of older results, which have none of the pictures, names where examples were recorded.
    """
    part: ImagenetPart = result.part
    are_named = part.examples is not None and not result.pictures_digest
    recorded = [f"{example.example}\0{example.truth}" for example in part.examples or []] if are_named else []
    return [part.data.ground_truth_sha256, str(part.data.denylisted), *recorded]
