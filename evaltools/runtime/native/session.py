"""A session over a program that is started for each run: a block of runs is one batch, one way there and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.adb.client import DeviceError
from evaltools.errors import InferenceError, MachineLost
from evaltools.result.facts import DelegateUsed
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.native.machines import Machine
from evaltools.runtime.native.starts import Program, ProgramHung, Start, batch_files, batch_script, read_start
from evaltools.runtime.session import Array, Elsewhere, Inference, RuntimeFacts, run_alone

_FIRST_LIMIT_S: Final = 240.0
"""For the first start, in which some delegates compile for minutes."""
_LEAST_LIMIT_S: Final = 30.0
_TIMES_AS_LONG: Final = 100
_MOST_BYTES: Final = 32 << 20
"""Of the inputs and outputs of a batch."""
_MOST_STARTS: Final = 256


class NativeSession:
    """A session whose every run is a start of a program, here or on a device.

    Opening starts it once, on zeros. Raises :class:`InferenceError` where that fails.
    """

    def __init__(self, program: Program, machine: Machine, named: tuple[str, str]) -> None:
        self._program = program
        self._machine = machine
        self._limit_s = _FIRST_LIMIT_S
        self.inputs: Final = program.inputs
        self.outputs: Final = program.outputs
        self.longest_block: Final = max(1, min(_MOST_STARTS, _MOST_BYTES // max(1, program.bytes_of_run)))
        first = self._batch([[np.zeros(spec.shape, spec.dtype) for spec in program.inputs]], 1)[0]
        if isinstance(first, InferenceError):
            raise first
        self._first: Final = first
        self._limit_s = max(_LEAST_LIMIT_S, _TIMES_AS_LONG * (first.load_ms + sum(first.inference.invokes_us)) / 1e6)
        self.delegation: Final = _delegation(first)
        self.facts: Final = RuntimeFacts(
            "native",
            *named,
            program.configuration.kernel_set,
            elsewhere=Elsewhere(machine.name, machine.turn_s, machine.away_s),
        )

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Start the program once; raises :class:`InferenceError`."""
        return run_alone(self, inputs, invocations)

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Start the program for one set of inputs after the other; an error takes the place of its run.

        Raises :class:`MachineLost` where the device stays away.
        """
        try:
            started = self._batch(block, invocations)
        except DeviceError as error:
            raise MachineLost(f"{error}; evaltools resume goes on with what a --run_dir has") from error
        return [each if isinstance(each, InferenceError) else self._as_at_first(each) for each in started]

    def close(self) -> None:
        """Delete what lies on the machine for this session alone."""
        self._machine.close()

    def _batch(self, block: Sequence[Sequence[Array]], invocations: int) -> list[Start | InferenceError]:
        """What each start gave; those behind one that hung, which ends a batch, are started in another one."""
        found: list[Start | InferenceError] = []
        while len(found) < len(block):
            todo = block[len(found) :]
            script = batch_script(self._program, len(todo), invocations, self._limit_s)
            left = self._machine.exchange(batch_files(todo), script, self._limit_s)
            before = len(found)
            for number in range(len(todo)):
                try:
                    start = read_start(self._program, left, number, invocations)
                except InferenceError as error:
                    found.append(error)
                    continue
                if start is None:
                    break
                found.append(start)
            if isinstance(found[-1] if found else None, ProgramHung):
                self._limit_s = min(self._limit_s, _LEAST_LIMIT_S)
            if len(found) == before:
                found.append(InferenceError("the program was not started: space or memory ran out there"))
        return found

    def _as_at_first(self, start: Start) -> Inference | InferenceError:
        """The runs of a start, unless its delegates took something else than when the session was opened."""
        now, before = (_taken(each.delegation.delegates) for each in (start, self._first))
        if now == before:
            return start.inference
        return InferenceError(f"its log says {now}, and said {before} when the model was loaded first")


def _taken(used: Sequence[DelegateUsed]) -> str:
    return ", ".join(f"{each.name} took {each.nodes}" for each in used) or "no delegate took any node"


def _delegation(start: Start) -> Delegation:
    proof = start.delegation.proof
    covered = tuple(
        DelegateCoverage(
            each.name, each.requested, each.nodes, each.partitions, each.device, each.is_cpu, each.evidence
        )
        for each in start.delegation.delegates
    )
    return Delegation(proof.total_nodes, covered, {})
