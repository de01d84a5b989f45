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

from evaltools.engine.context import packed, unpacked
from evaltools.engine.steps import Failure, Prepared, Steps
from evaltools.errors import ImageError, InferenceError, SessionEnded, TaskError
from evaltools.runtime.process.child import ChildProcess
from evaltools.runtime.process.inside import Held
from evaltools.runtime.process.messages import WrongMessage
from evaltools.runtime.process.restarting import Restarting
from evaltools.runtime.process.shared_arrays import Placed, SharedArrays
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


class InOtherProcess(Restarting["_Maker"]):
    """Lets a process of its own make the inputs, which that puts into shared memory.

    An example whose context cannot be sent is then made here. Raises :class:`OSError` where none can be started.
    """

    def __init__(
        self,
        prepare: Callable[[int], Prepared],
        recipe: Callable[[int], Callable[[], Prepared]],
        inputs: Sequence[TensorSpec],
        timeout_s: float,
    ) -> None:
        self._recipe = recipe
        start = partial(_Maker, prepare, inputs, timeout_s)
        super().__init__(start, start())

    def make(self, examples: Sequence[int]) -> list[ReadyExample]:
        """Make inputs in the other process."""
        start_ns = time.perf_counter_ns()
        block = [_Order(slot, example, self._recipe(example)) for slot, example in enumerate(examples)]
        return [
            outcome if isinstance(outcome, ReadyExample) else _failed(example, start_ns, str(outcome))
            for example, outcome in zip(examples, self.outcomes(block, _Maker.make), strict=True)
        ]


class _Order(Struct, frozen=True):
    """What another process is to do: the slot of the shared memory is for what the recipe makes."""

    slot: int
    example: int
    recipe: Callable[[], Prepared]


class _Maker(ChildProcess):
    """A process that makes inputs, which it puts into the memory that it shares."""

    def __init__(self, prepare: Callable[[int], Prepared], inputs: Sequence[TensorSpec], timeout_s: float) -> None:
        super().__init__(_NAME, timeout_s, "--example_timeout")
        self._prepare = prepare
        self._inputs = inputs
        try:
            self._arrays = SharedArrays(self.memory, inputs, ())
        except OSError:
            self.close()
            raise

    def make(self, block: Sequence[_Order]) -> Sequence[ReadyExample | InferenceError]:
        """Make inputs by recipes; what these print goes to stderr, as it does where this process makes the inputs."""
        try:
            made = self.ask(_made, self._inputs, block, moment=_MOMENT)
        except SessionEnded as error:
            return [error] * len(block)
        _pass_on(self.printed())
        return [self._unpacked(order, each) for order, each in zip(block, made, strict=True)]

    def _unpacked(self, order: _Order, made: _Made) -> ReadyExample:
        times = (made.start_ns, made.duration_us)
        if made.failure is not None:
            return ReadyExample(order.example, Failure("input", made.failure), *times)
        try:
            context = unpacked(made.context)
        except WrongMessage:  # it cannot be sent
            return _ready(order.example, partial(self._prepare, order.example))
        return ReadyExample(order.example, Prepared(self._arrays.arrays(made.inputs), context, made.steps), *times)


class _Made(Struct, frozen=True):
    """A :class:`ReadyExample` as it is sent, its ``context`` packed; that is empty where it is of other types."""

    start_ns: int
    duration_us: int
    failure: str | None = None
    inputs: tuple[Placed, ...] = ()
    context: bytes = b""
    steps: tuple[tuple[str, int], ...] = ()


def _made(held: Held, inputs: Sequence[TensorSpec], block: Sequence[_Order]) -> list[_Made]:
    """In the other process: make what was asked for."""
    arrays = held.arrays(inputs, ())
    return [_sent(arrays, order.slot, _ready(order.example, order.recipe)) for order in block]


def _sent(arrays: SharedArrays, slot: int, ready: ReadyExample) -> _Made:
    times, prepared = (ready.start_ns, ready.duration_us), ready.prepared
    if isinstance(prepared, Failure):
        return _Made(*times, prepared.reason)
    return _Made(*times, None, arrays.put_inputs(slot, prepared.inputs), packed(prepared.context), prepared.steps)


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
        if examples >= _WORTH_A_PROCESS and steps.recipe is not None:
            with suppress(OSError):  # without memory to share or without processes: slower, but no reason to end
                for _ in range(count):
                    maker = InOtherProcess(steps.prepare, steps.recipe, inputs, timeout_s)
                    makers.append(stack.enter_context(closing(maker)))
        yield makers if len(makers) == count else [InThisProcess(steps.prepare) for _ in range(count)]
