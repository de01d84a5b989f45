"""Where results were measured: the machine, and configurations that were measured at several places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from evaltools.result.device_run import HOST, DeviceRun
from evaltools.result.evaluation import ConfigurationResult, Environment, EvaluationResult


def machine_of(environment: Environment, run: DeviceRun | None, place: str = "") -> str:
    """The machine in words: this computer's processor, or the devices of a run; ``place`` is the one that is meant."""
    if run is None or place == HOST:
        return f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"
    found = [facts for facts in run.devices if facts.serial == place] or run.devices
    names = [f"{facts.model or 'device'} {facts.serial}" + (f" ({facts.soc})" if facts.soc else "") for facts in found]
    return " and ".join(names)


def reference_of(
    configuration: ConfigurationResult, configurations: Sequence[ConfigurationResult]
) -> ConfigurationResult | None:
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
