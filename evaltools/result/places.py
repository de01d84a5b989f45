"""Where results were measured: the machine, several places of one run, and the fastest on the CPU of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

from msgspec.structs import replace

from evaltools.result.device import HOST, DeviceRun
from evaltools.result.evaluation import ConfigurationResult, Environment, EvaluationResult
from evaltools.result.result import Row


def machine_of(environment: Environment, run: DeviceRun | None, place: str = "") -> str:
    """The machine in words: this computer's processor, or the devices of a run; ``place`` is the one that is meant."""
    if run is None or place == HOST:
        return f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"
    found = [facts for facts in run.devices if facts.serial == place] or run.devices
    names = [f"{facts.model or 'device'} {facts.serial}" + (f" ({facts.soc})" if facts.soc else "") for facts in found]
    return " and ".join(names)


Entry = TypeVar("Entry", bound=ConfigurationResult | Row)


def reference_of(configuration: Entry, configurations: Sequence[Entry]) -> Entry | None:
    """The reference that a configuration is compared with: that of its own place, else the first one."""
    references = [entry for entry in configurations if entry.role == "reference"]
    own = [entry for entry in references if entry.place == configuration.place]
    return next(iter(own + references), None)


class Pair(Protocol):
    """A comparison of two configurations by their names."""

    @property
    def baseline(self) -> str:
        """What it is compared with."""

    @property
    def other(self) -> str:
        """What is compared with it."""


Compared = TypeVar("Compared", bound=Pair)


def against_reference(
    result: EvaluationResult, comparisons: Iterable[Compared], configuration: ConfigurationResult
) -> Compared | None:
    """The comparison of a configuration with the reference, None where there is none."""
    references = {entry.name for entry in result.configurations if entry.role == "reference"}
    found = (entry for entry in comparisons if entry.other == configuration.name and entry.baseline in references)
    return next(found, None)


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
