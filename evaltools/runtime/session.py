"""A session: the object that every runtime opens, which runs a model and proves what ran where."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import InferenceError
from evaltools.metrics.op_profile import Opening
from evaltools.model import ModelFile
from evaltools.runtime.delegation import Delegation

Array = npt.NDArray[np.generic]
EMULATOR_VARIABLE: Final = "EVALTOOLS_EMULATED_BY"
"""The variable that names what computes in the place of this process's machine, where one does."""


class Elsewhere(Struct, frozen=True):
    """A model that runs in a program of its own, perhaps on another ``machine``; empty for this computer.

    ``turn_s`` is how long a block of runs should take, since each block costs a way there and back. A device may be
    away for ``away_s`` seconds in the middle of one.
    """

    machine: str = ""
    turn_s: float = 2.0
    away_s: float = 0.0


class RuntimeFacts(Struct, frozen=True):
    """Which runtime ran: its name in evaltools, its package and version, and the kernels of the CPU part.

    ``messages`` is what native code printed while the model was loaded, in one line, where that was caught; ``load_ms``
    is what loading it and creating its delegates took. ``emulator`` names what computes in the place of the hardware,
    empty where the hardware itself does: times of an emulator are no latencies. ``elsewhere`` is where another program
    runs the model, None where the process of the session does.
    """

    name: str
    package: str
    version: str
    kernels: str
    messages: str = ""
    load_ms: float | None = None
    emulator: str = os.environ.get(EMULATOR_VARIABLE, "")
    elsewhere: Elsewhere | None = None


class TensorSpec(Struct, frozen=True):
    """An input or output as the runtime reports it after allocation."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


class Inference(Struct, frozen=True):
    """Outputs of one run (copies, in the model's order) and how long it took, in microseconds to the nanosecond.

    ``invokes_us`` has only the time of each ``invoke``, ``read_us`` that of copying the outputs after the last one:
    some delegates only enqueue their work in ``invoke`` and wait for it there. ``largest`` is the largest finite float
    that an operator gave, 0 where that is not known: it takes a session that keeps all tensors.
    """

    outputs: tuple[Array, ...]
    invokes_us: tuple[float, ...]
    read_us: float = 0.0
    largest: float = 0.0


class Session(Protocol):
    """A model loaded with one configuration."""

    @property
    def facts(self) -> RuntimeFacts:
        """Which runtime this is."""

    @property
    def delegation(self) -> Delegation:
        """What the delegates took."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs in the model's order."""

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs in the model's order."""

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Set the inputs, invoke so many times, read the outputs; raises :class:`~evaltools.errors.InferenceError`."""

    def close(self) -> None:
        """Release the model and its delegates. The session cannot run any more."""


@runtime_checkable
class BlockSession(Session, Protocol):
    """A session that runs several sets of inputs faster together than one by one."""

    @property
    def longest_block(self) -> int:
        """How many sets :meth:`run_block` takes at most."""

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> Sequence[Inference | InferenceError]:
        """Run one set after the other; an error takes the place of its run."""


def run_alone(session: BlockSession, inputs: Sequence[Array], invocations: int) -> Inference:
    """Run a block of one set of inputs; raises :class:`InferenceError`."""
    (outcome,) = session.run_block([inputs], invocations)
    if isinstance(outcome, InferenceError):
        raise outcome
    return outcome


@runtime_checkable
class TimedSession(Session, Protocol):
    """A session that knows what its opening took."""

    @property
    def opening(self) -> Opening:
        """Its times."""


class Crashes(Struct, frozen=True):
    """How often the process of a session crashed, or hung and was ended, and why it first did.

    >>> Crashes() + Crashes(2, "died (SIGSEGV)") + Crashes(1, "hung")
    Crashes(count=3, first_reason='died (SIGSEGV)')
    """

    count: int = 0
    first_reason: str = ""

    def __add__(self, later: Crashes) -> Crashes:
        return Crashes(self.count + later.count, self.first_reason or later.first_reason)


class Watched(Protocol):
    """What works in a process of its own, and knows how much memory that takes, and how it ended."""

    @property
    def crashes(self) -> Crashes:
        """Those of its processes so far, also while they were released."""

    @property
    def not_clean(self) -> str:
        """What went wrong while it was closed, empty where nothing did."""

    @property
    def peak_memory_kb(self) -> int:
        """Largest resident memory of its process so far in units of 1024 bytes, 0 where that is not known."""

    @property
    def process_id(self) -> int | None:
        """The process of its own that it runs in now, None where there is none."""

    def close(self) -> None:
        """Release what it has, and end the process."""


class ProcessSession(BlockSession, Watched, Protocol):
    """A session that works in a process of its own."""


OpenProcess = Callable[[ModelFile, Configuration], ProcessSession]
"""What opens the session of a model in a configuration in a process of its own."""


@runtime_checkable
class Runtime(Protocol):
    """Something that opens sessions."""

    @property
    def name(self) -> str:
        """The name in ``--runtime``."""

    def open(self, model: ModelFile, configuration: Configuration) -> Session:
        """Load the model.

        Raises :class:`~evaltools.errors.ConfigurationUnavailable`, naming what is missing here, and
        :class:`~evaltools.errors.UsageError` for a file that the configuration names and that does not exist.
        """
