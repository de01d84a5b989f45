"""Speed compared with the fastest configuration on the CPU, which is what apps use without an accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

_ON_CPU: Final = frozenset({"XNNPACK", "YNNPACK"})
"""The delegates that are kernels of the CPU."""


def runs_on_cpu(configuration: ConfigurationResult) -> bool:
    """Whether it was measured on the CPU, as asked: without delegates, or with those that are its kernels.

    A GPU in software is not such a configuration: no app uses it.
    """
    is_sound = configuration.status == "measured" and not configuration.fallback and configuration.runtime is not None
    return is_sound and all(delegate.name in _ON_CPU for delegate in configuration.delegates)


def fastest_on_cpu(configurations: Sequence[ConfigurationResult], place: str) -> ConfigurationResult | None:
    """The one with the smallest median time at a place; None where none has a time."""
    timed = [
        (entry.inference_latency.p50_us, entry)
        for entry in configurations
        if entry.place == place and runs_on_cpu(entry) and entry.inference_latency and entry.inference_latency.p50_us
    ]
    return min(timed, key=lambda found: found[0] or 0.0)[1] if timed else None


def with_cpu_ratios(result: EvaluationResult) -> EvaluationResult:
    """The result, in which each configuration has its time by that of the fastest one on the CPU."""
    return replace(result, configurations=[_with_ratio(result, entry) for entry in result.configurations])


def _with_ratio(result: EvaluationResult, entry: ConfigurationResult) -> ConfigurationResult:
    cpu = fastest_on_cpu(result.configurations, entry.place)
    own = entry.inference_latency
    if cpu is None or cpu is entry or entry.status != "measured" or own is None or not own.p50_us:
        return entry
    base = cpu.inference_latency
    assert base is not None
    assert base.p50_us is not None
    paired = {(each.baseline, each.other): each.ratio for each in result.latency_comparisons}
    ratio = paired.get((cpu.name, entry.name), own.p50_us / base.p50_us)
    return replace(entry, latency_cpu_ratio=ratio)
