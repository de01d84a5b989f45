"""Makes inputs in this process, or in other processes, which decode pictures on every core.

Processes, not threads: on two cores, two threads that decode and resize are 1.75 times as fast as one, two processes
2.0 times, because much of the work on small arrays holds the interpreter's lock.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.steps import Failure, Prepared, Steps
from evaltools.errors import ImageError, InferenceError, SessionEnded, TaskError
from evaltools.runtime.process.child import ChildProcess
from evaltools.runtime.process.restarting import Restarting
from evaltools.runtime.process.shared_arrays import SharedArrays
from evaltools.runtime.session import TensorSpec

_WORTH_A_PROCESS: Final = 64
_NAME: Final = "the process that decodes"
_MOMENT: Final = "while it made this input"


class ReadyExample(Struct, frozen=True):
    """An example with its inputs, or with the failure of making them.

    ``start_ns`` is when that began, by ``time.perf_counter_ns``, ``duration_us`` how long it took.
    """

    example: int
    prepared: Prepared | Failure
    start_ns: int
    duration_us: int


class Preparer(Protocol):
    """Makes the inputs of one worker."""

    def make(self, examples: Sequence[int]) -> list[ReadyExample]:
        """Make the inputs of some examples; they are valid until the next call."""

    def close(self) -> None:
        """End what is still running in other processes."""


class InThisProcess:
    """Makes inputs in the process, and the thread, that calls it."""

    def __init__(self, prepare: Callable[[int], Prepared]) -> None:
        self._prepare = prepare

    def make(self, examples: Sequence[int]) -> list[ReadyExample]:
        """Make them one after the other."""
        return [_ready(example, partial(self._prepare, example)) for example in examples]

    def close(self) -> None:
        """Do nothing: no other process is at work."""


class InOtherProcess(Restarting[ChildProcess]):
    """Lets a process of its own make the inputs, which that puts into shared memory.

    Raises :class:`OSError` where none can be started.
    """

    def __init__(
        self, recipe: Callable[[int], Callable[[], Prepared]], inputs: Sequence[TensorSpec], timeout_s: float
    ) -> None:
        self._recipe = recipe
        self._memory = SharedArrays.create(inputs, ())
        self._memory.forget_path()
        start = partial(ChildProcess, self._memory, _NAME, timeout_s, "--example_timeout")
        try:
            super().__init__(start, start())
        except OSError:
            self._memory.close()
            raise

    def make(self, examples: Sequence[int]) -> list[ReadyExample]:
        """Make inputs in the other process."""
        start_ns = time.perf_counter_ns()
        block = [_Order(slot, example, self._recipe(example)) for slot, example in enumerate(examples)]
        return [
            self._unpacked(outcome) if isinstance(outcome, ReadyExample) else _failed(example, start_ns, str(outcome))
            for example, outcome in zip(examples, self.outcomes(block, _sent), strict=True)
        ]

    def close(self) -> None:
        """End the process; no other is started any more."""
        super().close()
        self._memory.close()

    def _unpacked(self, ready: ReadyExample) -> ReadyExample:
        if isinstance(ready.prepared, Failure):
            return ready
        inputs = self._memory.inputs(ready.prepared.inputs)
        return replace(ready, prepared=replace(ready.prepared, inputs=inputs))


class _Order(Struct, frozen=True):
    """What another process is to do: the slot of the shared memory is for what the recipe makes."""

    slot: int
    example: int
    recipe: Callable[[], Prepared]


def _sent(child: ChildProcess, block: Sequence[_Order]) -> Sequence[ReadyExample | InferenceError]:
    """What a process makes, in whose place shared memory has the inputs."""
    try:
        made = child.ask(_made, block, moment=_MOMENT)
    except SessionEnded as error:
        return [error] * len(block)
    _pass_on(child.printed_in_call())
    if isinstance(made, Exception):
        raise made
    return made


def _made(memory: SharedArrays, block: Sequence[_Order]) -> list[ReadyExample] | Exception:
    """In the other process: make what was asked for."""
    try:
        return [_packed(memory, order.slot, _ready(order.example, order.recipe)) for order in block]
    except Exception as error:  # of a task's own code: it is raised where the inputs were asked for
        return error


def _packed(memory: SharedArrays, slot: int, ready: ReadyExample) -> ReadyExample:
    if isinstance(ready.prepared, Failure):
        return ready
    parcel = memory.put_inputs(slot, ready.prepared.inputs)
    return replace(ready, prepared=replace(ready.prepared, inputs=parcel))


def _ready(example: int, recipe: Callable[[], Prepared]) -> ReadyExample:
    """An example with what a recipe gives."""
    start_ns = time.perf_counter_ns()
    try:
        prepared = recipe()
    except (ImageError, TaskError) as error:
        return _failed(example, start_ns, str(error))
    except MemoryError:
        return _failed(example, start_ns, "there is not enough memory to make its input")
    return ReadyExample(example, prepared, start_ns, (time.perf_counter_ns() - start_ns) // 1000)


def _failed(example: int, start_ns: int, reason: str) -> ReadyExample:
    return ReadyExample(example, Failure("input", reason), start_ns, (time.perf_counter_ns() - start_ns) // 1000)


def _pass_on(printed: str) -> None:
    """What a task's own code prints goes to stderr, as it does where this process makes the inputs."""
    if printed and sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(printed)
            sys.stderr.flush()


@contextmanager
def preparers(
    steps: Steps[Any],
    inputs: Sequence[TensorSpec],
    count: int,
    timeout_s: float,
    examples: int,
) -> Iterator[Sequence[Preparer]]:
    """A context that yields one preparer per worker.

    Each has a process of its own if another process can make the inputs, and if there are enough ``examples`` to be
    worth it. ``inputs`` are the tensors that are made. ``timeout_s`` limits how long another process may take for some
    examples.
    """
    makers: list[Preparer] = []
    with ExitStack() as stack:
        is_worth_it = SharedArrays.can_travel and examples >= _WORTH_A_PROCESS
        if is_worth_it and steps.recipe is not None:
            with suppress(OSError):  # without memory to share or without processes: slower, but no reason to end
                for _ in range(count):
                    makers.append(stack.enter_context(closing(InOtherProcess(steps.recipe, inputs, timeout_s))))
        yield makers if len(makers) == count else [InThisProcess(steps.prepare) for _ in range(count)]
