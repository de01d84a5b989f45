"""The configurations of an evaluation as rows."""

from __future__ import annotations

from pathlib import Path

from evaltools.known_tasks import subject_of, task_command
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, Load
from evaltools.result.figure import Figure
from evaltools.result.metrics import common_figures
from evaltools.result.places import against_reference
from evaltools.result.result import Row


def rows_of_evaluation(result: EvaluationResult) -> list[Row]:
    """A row per configuration."""
    given = given_of(result)
    return [_row(result, entry, given) for entry in result.configurations]


def given_of(result: EvaluationResult) -> dict[str, str]:
    """What the models were given: examples, labels, preprocessing."""
    return {"examples": str(result.examples_done), "pictures": result.pictures_digest[:12]} | result.given


def _row(result: EvaluationResult, entry: ConfigurationResult, given: dict[str, str]) -> Row:
    """On a device nothing else is started."""
    on_device = Load(result.environment.cpu_count, 0.0, 0.0) if result.device_run is not None else None
    ratio = against_reference(result, result.latency_comparisons, entry)
    figures = common_figures(result, entry) | entry.figures
    if ratio is not None:
        figures["latency_ratio"] = Figure(ratio.ratio, "", "lower", ratio.interval, ratio.withheld or "", ratio.pairs)
    return Row(
        entry.name,
        entry.role,
        entry.status,
        entry.reason or "",
        entry.not_clean,
        entry.fallback or "",
        entry.cannot_exist,
        result.task,
        place=entry.place,
        flags=entry.flags,
        num_threads=entry.num_threads,
        runtime=entry.runtime,
        delegates=entry.delegates,
        delegation=entry.delegation,
        load=on_device or (None if entry.inference_latency is None else result.environment.load),
        given=given,
        counts={
            "finished": entry.finished_examples,
            "failed": entry.failed_examples,
            "nan_outputs": entry.nan_outputs,
            "crashes": entry.crashes,
            **({} if ratio is None else {"processes": ratio.processes}),
        },
        texts=_texts(result, entry),
        figures=figures,
        series=entry.series,
        verdicts=entry.verdicts,
        parts=entry.parts,
    )


def _texts(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, str]:
    """``accuracy`` names the figure that is the accuracy of the task."""
    failed = next((each for each in result.failed if each.configuration in (entry.name, None)), None)
    accuracy, other, execution = task_command(result.task).accuracy, entry.other_model, result.execution
    known = {
        "subject": subject_of(result),
        "accuracy": "" if accuracy is None or accuracy.figure not in entry.figures else accuracy.figure,
        "first_failed": "" if failed is None else failed.example,
        "first_failure": "" if failed is None else failed.reason,
        "first_crash": entry.first_crash,
        "other_model": "" if other is None else f"{Path(other.file).name} ({other.sha256[:8]})",
        "stopped": "" if result.complete else str(result.stopped),
        "shard": "" if execution is None else execution.shard or "",
    }
    return {name: text for name, text in known.items() if text}
