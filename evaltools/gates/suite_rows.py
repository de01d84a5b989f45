"""What a suite keeps of the result of an entry."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.gates.suite_result import SuiteRow
from evaltools.known_tasks import task_command
from evaltools.metrics.interval import Interval
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import ConfigurationResult, DelegateUsed, EvaluationResult, Load, RuntimeUsed
from evaltools.result.places import against_reference


def rows_of_evaluation(result: EvaluationResult) -> list[SuiteRow]:
    """A row per configuration."""
    return [_of_configuration(result, entry) for entry in result.configurations]


def rows_of_benchmark(result: BenchmarkResult, model: int = 0) -> list[SuiteRow]:
    """A row per configuration of one model, by its number; on a device nothing else is started."""
    on_device = Load(result.environment.cpu_count, 0.0, 0.0)
    load = result.environment.load if result.device_run is None else on_device
    return [_of_benchmark(row, load) for row in result.rows if row.model == model]


def _of_configuration(result: EvaluationResult, entry: ConfigurationResult) -> SuiteRow:
    accuracy = task_command(result.task).accuracy
    latency = entry.inference_latency
    speed, interval = _speed(result, entry)
    verdict = entry.verdict
    return SuiteRow(
        configuration=entry.name,
        role=entry.role,
        flags=entry.flags,
        status=entry.status,
        reason=entry.reason or _why_failed(result, entry),
        verdict=verdict.kind if verdict else None,
        not_decided=verdict if verdict and verdict.kind == "not decided" else None,
        accuracy=None if accuracy is None else entry.figures.get(accuracy.figure),
        p50_us=None if latency is None else latency.p50_us,
        speed=speed,
        speed_interval=interval,
        delegates=_names(entry.delegates),
        delegated_nodes=entry.delegation.delegated_nodes if entry.delegation else None,
        total_nodes=entry.delegation.total_nodes if entry.delegation else None,
        fallback=entry.fallback,
        failed_examples=entry.failed_examples,
        runtime=_runtime(entry.runtime),
        not_clean=entry.not_clean,
        load=None if latency is None else result.environment.load,
    )


def _why_failed(result: EvaluationResult, entry: ConfigurationResult) -> str | None:
    """Why the first of its examples failed, None where none did."""
    return next((each.reason for each in result.failed if each.configuration in (entry.name, None)), None)


def _speed(result: EvaluationResult, entry: ConfigurationResult) -> tuple[float | None, Interval | None]:
    """How many times as fast as its reference, on the same examples."""
    found = against_reference(result, result.latency_comparisons, entry)
    return (None, None) if found is None else (1 / found.ratio, _inverse(found.interval))


def _of_benchmark(row: BenchmarkRow, load: Load | None) -> SuiteRow:
    figures, versus = row.figures, row.versus_first
    return SuiteRow(
        configuration=row.name,
        role="test",
        flags=row.flags,
        status="measured" if row.status == "measured" else "not measured",
        reason=row.reason,
        p50_us=figures.inference.p50_us if figures else None,
        p50_interval=figures.median_interval if figures else None,
        speed=1 / versus.ratio if versus else None,
        speed_interval=_inverse(versus.interval) if versus else None,
        delegates=_names(row.delegates),
        delegated_nodes=row.delegation.delegated_nodes if row.delegation else None,
        total_nodes=row.delegation.total_nodes if row.delegation else None,
        fallback=row.fallback,
        runtime=_runtime(row.runtime),
        load=load,
    )


def _inverse(interval: Interval | None) -> Interval | None:
    """The interval of a speed from that of a time."""
    if interval is None or interval.low <= 0:
        return None
    return Interval(1 / interval.high, 1 / interval.low, interval.confidence)


def _names(delegates: Sequence[DelegateUsed]) -> list[str]:
    """The delegates that took part of the model."""
    return [each.name for each in delegates if each.nodes]


def _runtime(runtime: RuntimeUsed | None) -> str:
    return f"{runtime.package} {runtime.version}" if runtime else ""
