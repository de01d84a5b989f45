"""What a suite keeps of the evaluation of a model."""

from __future__ import annotations

from evaltools.known_tasks import task_command
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.figure import Figure
from evaltools.result.places import against_reference
from evaltools.result.result import Row


def rows_of_evaluation(result: EvaluationResult) -> list[Row]:
    """A row per configuration."""
    return [_of_configuration(result, entry) for entry in result.configurations]


def _of_configuration(result: EvaluationResult, entry: ConfigurationResult) -> Row:
    failed = next((each.reason for each in result.failed if each.configuration in (entry.name, None)), "")
    return Row(
        entry.name,
        entry.role,
        entry.status,
        entry.reason or "",
        entry.not_clean,
        entry.fallback or "",
        entry.cannot_exist,
        result.task,
        flags=entry.flags,
        num_threads=entry.num_threads,
        runtime=entry.runtime,
        delegates=entry.delegates,
        delegation=entry.delegation,
        load=None if entry.inference_latency is None else result.environment.load,
        counts={"finished": entry.finished_examples, "failed": entry.failed_examples},
        texts={"first_failure": failed} if failed else {},
        figures=_figures(result, entry),
        verdicts=entry.verdicts,
    )


def _figures(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, Figure]:
    found = {name: Figure(figure.value) for name, figure in entry.figures.items()}
    accuracy, latency = task_command(result.task).accuracy, entry.inference_latency
    if accuracy is not None and (value := entry.value(accuracy.figure)) is not None:
        found[accuracy.figure] = Figure(value, better="higher", is_share=True, heading=accuracy.label)
    if latency is not None and latency.p50_us is not None:
        found["latency_ms"] = Figure(latency.p50_us / 1000, "ms", "lower", count=latency.count)
    ratio = against_reference(result, result.latency_comparisons, entry)
    if ratio is not None:
        withheld = ratio.withheld or ""
        found["latency_ratio"] = Figure(ratio.ratio, "", "lower", ratio.interval, withheld, ratio.pairs)
    return found
