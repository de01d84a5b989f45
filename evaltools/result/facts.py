"""Facts that results state: the machine, the model, what ran a configuration, examples that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.parameter import Value


class Load(Struct, frozen=True):
    """The machine beside the run, on average over ``samples`` looks in ``seconds``; null where it does not say.

    ``others_running`` is how many processes of others ran or waited for a core, ``others_cores`` how many cores they
    used. ``steal`` is the share of the time of all cores, 0..1, that a hypervisor gave to others. ``throttled`` counts
    how often a core was slowed down for heat.
    """

    cpu_count: int
    others_running: float | None = None
    others_cores: float | None = None
    steal: float | None = None
    throttled: int | None = None
    seconds: float = 0.0
    samples: int = 0

    @property
    def others(self) -> float | None:
        """How many other processes wanted to run, as far as it is known; None where nothing is."""
        known = (self.others_running, self.others_cores)
        return max((each for each in known if each is not None), default=None)


def load_of_parts(parts: Sequence[Load]) -> Load | None:
    """The load over several stretches of time; None without one that was looked at.

    >>> load_of_parts([Load(2, 1.0, 0.5, samples=1, seconds=1.0), Load(2, 4.0, 2.0, samples=2, seconds=1.0)])
    Load(cpu_count=2, others_running=3.0, others_cores=1.25, steal=None, throttled=None, seconds=2.0, samples=3)
    """
    seen = [part for part in parts if part.samples]
    if not seen:
        return None
    throttled = [part.throttled for part in seen if part.throttled is not None]
    return Load(
        cpu_count=seen[0].cpu_count,
        others_running=_mean([(part.others_running, part.samples) for part in seen]),
        others_cores=_mean([(part.others_cores, part.seconds) for part in seen]),
        steal=_mean([(part.steal, part.seconds) for part in seen]),
        throttled=sum(throttled) if throttled else None,
        seconds=round(sum(part.seconds for part in seen), 3),
        samples=sum(part.samples for part in seen),
    )


def _mean(weighted: Sequence[tuple[float | None, float]]) -> float | None:
    """The mean of the known values by their weights; None where there are none."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight > 0]
    total = sum(weight for _, weight in known)
    return round(sum(value * weight for value, weight in known) / total, 3) if total else None


class Tensor(Struct, frozen=True):
    """An input or output of the model; -1 in ``shape`` is a size that may change."""

    name: str
    dtype: str
    shape: list[int]
    scale: float | None
    zero_point: int | None


class Model(Struct, frozen=True):
    """The model file. ``sha256`` is that of its bytes; ``operators`` counts those of all its graphs by name."""

    file: str
    sha256: str
    size_bytes: int
    node_count: int
    inputs: list[Tensor]
    outputs: list[Tensor]
    operators: dict[str, int] = field(default_factory=dict)


class Environment(Struct, frozen=True):
    """The machine and the software that measured.

    ``packages`` maps installed packages to versions. ``folder`` is where the command was given, from which relative
    names of files are meant, and ``trace`` the file that ``--trace`` wrote; empty where there is none. ``load`` is
    what else the machine did while latencies were measured; null where that was not measured.
    """

    evaltools: str
    python: str
    platform: str
    machine: str
    processor: str
    cpu_count: int
    packages: dict[str, str]
    started_at: str
    elapsed_s: float
    command: list[str]
    folder: str = ""
    trace: str = ""
    load: Load | None = None


class RuntimeUsed(Struct, frozen=True):
    """The runtime that ran; ``kernels`` are those of the part that stayed on the CPU.

    ``messages`` is what native code printed while the model was loaded. ``emulator`` names what computed in the place
    of the hardware, empty where the hardware did; there are no latencies then. ``machine`` is the device that ran it,
    empty for the one that the environment describes.
    """

    name: str
    package: str
    version: str
    kernels: str
    messages: str = ""
    emulator: str = ""
    machine: str = ""


NOT_REPEATABLE: Final = "gave other outputs when the same input came again"
"""What ``not_clean`` says of a configuration of which that was seen."""


class DelegateUsed(Struct, frozen=True):
    """A delegate with the options in force, and the nodes that it took.

    ``requested`` is false for XNNPACK where the runtime added it by itself. ``nodes`` is null where the delegate could
    not be created, and where it ran, as ``evidence`` says then, but a native log does not say how many nodes it took.
    ``device`` is what ran it, as the runtime names it, empty where it names none; ``is_cpu`` says that
    this device is the CPU after all, as with a software GPU. ``evidence`` says what shows that it ran.
    """

    name: str
    requested: bool
    options: dict[str, Value]
    nodes: int | None
    partitions: int | None
    device: str = ""
    is_cpu: bool = False
    evidence: str = ""


class DelegationProof(Struct, frozen=True):
    """Of ``total_nodes`` nodes of the main graph, ``delegated_nodes`` ran on a delegate; the others are listed."""

    total_nodes: int
    delegated_nodes: int
    cpu_operators: dict[str, int]


class FailedExample(Struct, frozen=True):
    """An example without an answer; ``configuration`` is null where its input could not be made at all."""

    example: str
    configuration: str | None
    stage: Literal["input", "inference", "score"]
    reason: str
