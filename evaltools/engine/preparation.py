"""Makes inputs in this process, or in other processes, which decode pictures on every core.

Processes, not threads: on two cores, two threads that decode and resize are 1.75 times as fast as one, two processes
2.0 times, because much of the work on small arrays holds the interpreter's lock.

Pebble brings asyncio along and is imported where processes are begun, so that short runs do without.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, wait
from concurrent.futures import TimeoutError as NotInTime  # another class than the builtin one before Python 3.11
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from evaltools.engine.task import Example, Failure, PortableTask, Prepared, Task
from evaltools.errors import ImageError, TaskError
from evaltools.runtime.process.child import interrupts_kept_back, leave_interrupts_to_parent, server_context
from evaltools.runtime.process.shared_arrays import Parcel, SharedArrays
from evaltools.runtime.session import TensorSpec

if TYPE_CHECKING:
    from pebble import ProcessPool

Recipes = Sequence[Callable[[], Prepared]]
Within = Callable[[], AbstractContextManager[None]]
_TRIES: Final = 3
_WORTH_A_PROCESS: Final = 64
_SECONDS_BETWEEN_LOOKS: Final = 1.0
_SECONDS_TO_START: Final = 60.0


@dataclass(frozen=True)
class ReadyExample:
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

    def __init__(self, task: Task[Any], within: Within = nullcontext) -> None:
        self._task = task
        self._within = within

    def make(self, examples: Sequence[Example]) -> list[ReadyExample]:
        """Make them one after the other."""
        with self._within():
            return [prepare_one(self._task, example) for example in examples]

    def stop(self) -> None:
        """Do nothing: no other process is at work."""


class InOtherProcess:
    """Lets a process of a pool make the inputs, which it puts into shared memory."""

    def __init__(self, task: PortableTask, pool: DecodingPool, number: int, timeout_s: float) -> None:
        self._task = task
        self._pool = pool
        self._number = number
        self._timeout_s = timeout_s

    def make(self, examples: Sequence[Example]) -> list[ReadyExample]:
        """Make inputs in another process.

        If that dies or hangs, each example is tried by itself to find out which one it was.
        """
        start_ns = time.perf_counter_ns()
        recipes = [self._task.recipe(example) for example in examples]
        try:
            sent = self._pool.make(self._number, recipes, self._timeout_s)
        except _NotMade as error:
            if len(examples) > 1:
                return [self._detached(self.make([example])[0]) for example in examples]
            duration_us = (time.perf_counter_ns() - start_ns) // 1000
            return [ReadyExample(examples[0], Failure("input", str(error)), start_ns, duration_us)]
        memory = self._pool.memories[self._number]
        return [_unpacked(example, entry, memory) for example, entry in zip(examples, sent, strict=True)]

    def stop(self) -> None:
        """End the processes of all workers."""
        self._pool.stop()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes that have made inputs, of whatever worker, in the order in which they first did."""
        return self._pool.process_ids

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
    return prepared, start_ns, (time.perf_counter_ns() - start_ns) // 1000


@contextmanager
def preparers(
    task: Task[Any],
    inputs: Sequence[TensorSpec],
    count: int,
    timeout_s: float,
    examples: int,
    within: Within = nullcontext,
) -> Iterator[Sequence[Preparer]]:
    """A context that yields one preparer per worker.

    Each has a process of its own if the task can be sent to another process, and if there are enough ``examples`` to be
    worth it. ``inputs`` are the tensors that are made. ``timeout_s`` limits how long another process may take for one
    example. ``within`` makes the context in which inputs are made.
    """
    elsewhere = SharedArrays.can_travel and examples >= _WORTH_A_PROCESS
    memories = _shared_memories(inputs, count) if elsewhere else []
    if not isinstance(task, PortableTask) or not memories:
        yield [InThisProcess(task, within) for _ in range(count)]
        return
    try:
        pool = DecodingPool(memories, count, within)
    except OSError:  # no semaphores, no descriptors, no processes: slower, but no reason to end
        _close(memories)
        yield [InThisProcess(task, within) for _ in range(count)]
        return
    try:
        yield [InOtherProcess(task, pool, number, timeout_s) for number in range(count)]
    finally:
        pool.stop()
        _close(memories)


def _shared_memories(inputs: Sequence[TensorSpec], count: int) -> list[SharedArrays]:
    """Shared memory for the inputs of ``count`` workers, empty where there is none to be had."""
    memories = []
    try:
        for _ in range(count):
            memories.append(SharedArrays.create(inputs, ()))
            memories[-1].forget_path()
    except OSError:
        _close(memories)
        return []
    return memories


def _close(memories: Sequence[SharedArrays]) -> None:
    for memory in memories:
        memory.close()


class _NotMade(Exception):
    """The process that made some inputs died, or did not finish in time."""


class DecodingPool:
    """Processes that make inputs. A pool that breaks, as when an idle process is killed, is replaced."""

    def __init__(self, memories: Sequence[SharedArrays], processes: int, within: Within = nullcontext) -> None:
        self.memories: Final = memories
        self._within = within
        self._processes: Final = processes
        self._changing = threading.Lock()
        self._stopped = False
        self._seen: dict[int, None] = {}
        self._pool = self._begun()

    def make(self, place: int, recipes: Recipes, timeout_s: float) -> list[_Sent]:
        """Have inputs made into the memory at ``place``; raises :class:`_NotMade`."""
        from pebble import ProcessExpired

        for _ in range(_TRIES):
            pool = self._pool
            try:
                made = _result(pool, _scheduled(pool, place, recipes, timeout_s))
                self._seen.update(dict.fromkeys(sent.process_id for sent in made))
                return made
            except ProcessExpired as error:
                raise _NotMade(f"the process that decoded it died (exit code {error.exitcode})") from None
            except NotInTime:
                raise _NotMade(f"was not decoded within {timeout_s:g} s") from None
            except BrokenExecutor:
                with suppress(OSError):
                    self._replace(pool)
        raise _NotMade("the processes that decode cannot be started")

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The processes that have made inputs, in the order in which they first did; some may have ended."""
        return tuple(self._seen)

    def stop(self) -> None:
        """End all processes; none is started any more."""
        with self._changing:
            self._stopped = True
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()

    def _begun(self) -> ProcessPool:
        from pebble import ProcessExpired, ProcessPool

        given = (self.memories, self._within)
        pool = ProcessPool(self._processes, context=server_context(), initializer=_begin, initargs=given)
        with interrupts_kept_back(), suppress(BrokenExecutor, RuntimeError, ProcessExpired, NotInTime):
            _result(pool, _scheduled(pool, 0, (), _SECONDS_TO_START))
        return pool

    def _replace(self, broken: ProcessPool) -> None:
        with self._changing:
            if self._pool is broken and not self._stopped:
                broken.stop()  # type: ignore[no-untyped-call]
                broken.join()
                self._pool = self._begun()


def _scheduled(pool: ProcessPool, place: int, recipes: Recipes, timeout_s: float) -> Future[list[_Sent]] | None:
    """The future of a call in the pool, None where the pool is broken."""
    try:
        future: Future[list[_Sent]] = pool.schedule(_make_all, args=(place, recipes), timeout=timeout_s)
    except RuntimeError:
        return None
    return future


def _result(pool: ProcessPool, future: Future[list[_Sent]] | None) -> list[_Sent]:
    """Wait for a future; raises :class:`BrokenExecutor` where the pool breaks without giving an answer."""
    if future is None:
        raise BrokenExecutor
    unanswered = 0
    while not wait([future], timeout=_SECONDS_BETWEEN_LOOKS).done:
        unanswered = 0 if pool.active else unanswered + 1
        if unanswered > 1:
            raise BrokenExecutor
    return future.result()


@dataclass(frozen=True)
class _Sent:
    """A :class:`ReadyExample` as it is sent between processes.

    Without the example, and with the inputs in shared memory.
    """

    prepared: Prepared | Failure
    parcel: Parcel | None
    start_ns: int
    duration_us: int
    process_id: int


_memories: Final[list[SharedArrays]] = []
"""In a process of the pool: where inputs go, one place for each worker."""


_contexts: Final[list[Within]] = []
"""In a process of the pool: what makes the context in which it makes inputs."""


def _begin(memories: Sequence[SharedArrays], within: Within) -> None:
    leave_interrupts_to_parent()
    _memories.extend(memories)
    _contexts.append(within)


def _make_all(place: int, recipes: Recipes) -> list[_Sent]:
    with _contexts[0]():
        return [_packed(slot, recipe, _memories[place]) for slot, recipe in enumerate(recipes)]


def _packed(slot: int, recipe: Callable[[], Prepared], memory: SharedArrays) -> _Sent:
    prepared, start_ns, duration_us = _made(recipe)
    if isinstance(prepared, Failure):
        return _Sent(prepared, None, start_ns, duration_us, os.getpid())
    parcel = memory.put_inputs(slot, prepared.inputs)
    return _Sent(replace(prepared, inputs=()), parcel, start_ns, duration_us, os.getpid())


def _unpacked(example: Example, sent: _Sent, memory: SharedArrays) -> ReadyExample:
    prepared = sent.prepared
    if isinstance(prepared, Prepared) and sent.parcel is not None:
        prepared = replace(prepared, inputs=memory.inputs(sent.parcel))
    return ReadyExample(example, prepared, sent.start_ns, sent.duration_us)
