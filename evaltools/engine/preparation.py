"""Makes inputs in this process, or in other processes, which decode pictures on every core.

Processes, not threads: on two cores, two threads that decode and resize are 1.75 times as fast as one, two processes
2.0 times, because much of the work on small arrays holds the interpreter's lock.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.task import Example, Failure, PortableTask, Prepared, Task
from evaltools.errors import ImageError, TaskError
from evaltools.runtime.process.channel import Channel, WrongMessage
from evaltools.runtime.process.child import ChildProcess, log_length
from evaltools.runtime.process.printed import flush_printed
from evaltools.runtime.process.shared_arrays import Parcel, SharedArrays
from evaltools.runtime.session import TensorSpec

Recipes = Sequence[Callable[[], Prepared]]
_TRIES: Final = 3
_WORTH_A_PROCESS: Final = 64
_LONGEST_START_S: Final = 60.0


class ReadyExample(Struct, frozen=True):
    """An example with its inputs, or with the failure of making them.

    ``start_ns`` is when that began, by ``time.perf_counter_ns``, ``duration_us`` how long it took.
    """

    example: Example
    prepared: Prepared | Failure
    start_ns: int
    duration_us: int


class Preparer(Protocol):
    """Makes the inputs of one worker."""

    def make(self, examples: Sequence[Example]) -> list[ReadyExample]:
        """Make the inputs of some examples; they are valid until the next call."""

    def stop(self) -> None:
        """End what is still running in other processes."""


class InThisProcess:
    """Makes inputs in the process, and the thread, that calls it."""

    def __init__(self, task: Task[Any]) -> None:
        self._task = task

    def make(self, examples: Sequence[Example]) -> list[ReadyExample]:
        """Make them one after the other."""
        return [prepare_one(self._task, example) for example in examples]

    def stop(self) -> None:
        """Do nothing: no other process is at work."""


class InOtherProcess:
    """Lets a process of its own make the inputs, which that puts into shared memory.

    Raises :class:`OSError` where none can be started.
    """

    def __init__(self, task: PortableTask, inputs: Sequence[TensorSpec], timeout_s: float) -> None:
        self._task = task
        self._timeout_s = timeout_s
        self._changing = threading.Lock()
        self._stopped = False
        self._has_made_inputs = False
        self._memory = SharedArrays.create(inputs, ())
        self._memory.forget_path()
        try:
            self._child = self._begun()
        except OSError:
            self._memory.close()
            raise

    def make(self, examples: Sequence[Example]) -> list[ReadyExample]:
        """Make inputs in the other process.

        If that dies or hangs, each example is tried by itself to find out which one it was. One that was by itself is
        tried again where the process died that had made others before: what they did may have been the reason.
        """
        start_ns = time.perf_counter_ns()
        recipes = [self._task.recipe(example) for example in examples]
        try:
            sent = self._made(recipes)
        except _NotMade as error:
            if len(examples) > 1 or error.may_be_of_others:
                return [self._detached(self.make([example])[0]) for example in examples]
            duration_us = (time.perf_counter_ns() - start_ns) // 1000
            return [ReadyExample(examples[0], Failure("input", str(error)), start_ns, duration_us)]
        return [_unpacked(example, entry, self._memory) for example, entry in zip(examples, sent, strict=True)]

    def stop(self) -> None:
        """End the process; no other is started any more."""
        with self._changing:
            self._stopped = True
            self._child.end()
            self._memory.close()

    @property
    def process_id(self) -> int | None:
        """The process that makes the inputs, None before it has begun and once it has ended."""
        return self._child.process_id

    def _made(self, recipes: Recipes) -> list[_Sent]:
        """What the process sends; raises :class:`_NotMade`.

        One that ends before it has begun, as when it is killed while it has nothing to do, is replaced.
        """
        for _ in range(_TRIES):
            child = self._child
            if self._takes(child, recipes):
                return self._answer(child)
            self._replace(child)
        raise _NotMade("the process that decodes cannot be started", may_be_of_others=False)

    def _takes(self, child: ChildProcess, recipes: Recipes) -> bool:
        try:
            child.channel.send(recipes, _LONGEST_START_S)
            child.log_place = child.receive(child.channel, _LONGEST_START_S)
        except (OSError, EOFError, ValueError, WrongMessage):
            return False
        return True

    def _answer(self, child: ChildProcess) -> list[_Sent]:
        may_be_of_others = self._has_made_inputs
        try:
            answer = child.receive(child.channel, self._timeout_s)
        except TimeoutError:
            reason = f"was not decoded within {self._timeout_s:g} s{child.quote()}"
            may_be_of_others = False
        except WrongMessage as error:
            reason = f"the process that decoded it sent {error}{child.quote()}"
        except (OSError, EOFError, ValueError):
            reason = f"the process that decoded it died ({child.cause_of_death()}){child.quote()}"
        else:
            self._has_made_inputs = True
            _pass_on(child.printed_since())
            if isinstance(answer, Exception):
                raise answer
            made: list[_Sent] = answer
            return made
        self._replace(child)
        raise _NotMade(reason, may_be_of_others)

    def _begun(self) -> ChildProcess:
        return ChildProcess(_serve, (self._memory,))

    def _replace(self, child: ChildProcess) -> None:
        """Start another process; where that cannot be, whoever asks the one that has ended hears so."""
        with self._changing:
            child.end()
            self._has_made_inputs = False
            if not self._stopped:
                with suppress(OSError):
                    self._child = self._begun()

    def _detached(self, ready: ReadyExample) -> ReadyExample:
        """A copy with inputs of its own, since the next call uses the same shared memory."""
        if isinstance(ready.prepared, Failure):
            return ready
        copies = tuple(array.copy() for array in ready.prepared.inputs)
        return replace(ready, prepared=replace(ready.prepared, inputs=copies))


def prepare_one(task: Task[Any], example: Example) -> ReadyExample:
    """Make the inputs of an example in this process."""
    return ReadyExample(example, *_made(partial(task.prepare, example)))


def _made(recipe: Callable[[], Prepared]) -> tuple[Prepared | Failure, int, int]:
    """What a recipe gives, when it was begun (``time.perf_counter_ns``), and how many microseconds it took."""
    start_ns = time.perf_counter_ns()
    prepared: Prepared | Failure
    try:
        prepared = recipe()
    except (ImageError, TaskError) as error:
        prepared = Failure("input", str(error))
    except MemoryError:
        prepared = Failure("input", "there is not enough memory to make its input")
    return prepared, start_ns, (time.perf_counter_ns() - start_ns) // 1000


@contextmanager
def preparers(
    task: Task[Any],
    inputs: Sequence[TensorSpec],
    count: int,
    timeout_s: float,
    examples: int,
) -> Iterator[Sequence[Preparer]]:
    """A context that yields one preparer per worker.

    Each has a process of its own if the task can be sent to another process, and if there are enough ``examples`` to be
    worth it. ``inputs`` are the tensors that are made. ``timeout_s`` limits how long another process may take for one
    example.
    """
    makers: Sequence[InOtherProcess] = ()
    if SharedArrays.can_travel and examples >= _WORTH_A_PROCESS and isinstance(task, PortableTask):
        makers = _in_other_processes(task, inputs, count, timeout_s)
    try:
        yield makers or [InThisProcess(task) for _ in range(count)]
    finally:
        for maker in makers:
            maker.stop()


def _in_other_processes(
    task: PortableTask, inputs: Sequence[TensorSpec], count: int, timeout_s: float
) -> Sequence[InOtherProcess]:
    """So many preparers. There are none without memory to share or without processes: slower, but no reason to end."""
    makers: list[InOtherProcess] = []
    try:
        for _ in range(count):
            makers.append(InOtherProcess(task, inputs, timeout_s))
    except OSError:
        for maker in makers:
            maker.stop()
        return ()
    return makers


class _NotMade(Exception):
    """The process that made some inputs died, or did not finish in time.

    ``may_be_of_others``: inputs that it had made before may be the reason.
    """

    def __init__(self, reason: str, may_be_of_others: bool) -> None:
        super().__init__(reason)
        self.may_be_of_others: Final = may_be_of_others


class _Sent(Struct, frozen=True):
    """A :class:`ReadyExample` as it is sent between processes.

    Without the example, and with the inputs in shared memory.
    """

    prepared: Prepared | Failure
    parcel: Parcel | None
    start_ns: int
    duration_us: int


def _pass_on(printed: str) -> None:
    """What a task's own code prints goes to stderr, as it does where this process makes the inputs."""
    if printed and sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(printed)
            sys.stderr.flush()


def _serve(channel: Channel, _bell: Channel, memory: SharedArrays) -> None:
    """The other process: say where its log ends, make what it was asked for, until the pipe closes."""
    with suppress(EOFError, BrokenPipeError):
        while True:
            recipes: Recipes = channel.receive()
            channel.send(log_length())
            made = _made_all(recipes, memory)
            flush_printed()
            channel.send(made)


def _made_all(recipes: Recipes, memory: SharedArrays) -> list[_Sent] | Exception:
    try:
        return [_packed(slot, recipe, memory) for slot, recipe in enumerate(recipes)]
    except Exception as error:  # of a task's own code: it is raised where the inputs were asked for
        return error


def _packed(slot: int, recipe: Callable[[], Prepared], memory: SharedArrays) -> _Sent:
    prepared, start_ns, duration_us = _made(recipe)
    if isinstance(prepared, Failure):
        return _Sent(prepared, None, start_ns, duration_us)
    parcel = memory.put_inputs(slot, prepared.inputs)
    return _Sent(replace(prepared, inputs=()), parcel, start_ns, duration_us)


def _unpacked(example: Example, sent: _Sent, memory: SharedArrays) -> ReadyExample:
    prepared = sent.prepared
    if isinstance(prepared, Prepared) and sent.parcel is not None:
        prepared = replace(prepared, inputs=memory.inputs(sent.parcel))
    return ReadyExample(example, prepared, sent.start_ns, sent.duration_us)
