"""A few examples that are run before the pass, to see whether data and model belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from evaltools.engine.execution import available_cores
from evaltools.engine.task import Prepared
from evaltools.errors import EvaltoolsError, ImageError, InferenceError, TaskError, UsageError
from evaltools.runtime import Session
from evaltools.tasks.own.definition import Trial, Tried
from evaltools.tasks.own.faults import FAULTS, calling_task, described, place_of, sentence
from evaltools.tasks.own.inputs import Prepare
from evaltools.tasks.own.task import OwnTask
from evaltools.tasks.own.tensors import TaskTensor

_MADE_AT_ONCE: Final = 16


class SessionTrial:
    """A :class:`~evaltools.tasks.own.definition.Trial` on a session."""

    def __init__(self, session: Session, task: OwnTask) -> None:
        self._session = session
        self._task = task

    @property
    def inputs(self) -> Sequence[TaskTensor]:
        """The inputs of the model."""
        return self._task.inputs

    @property
    def targets(self) -> list[Any]:
        """The target of every example of the task."""
        return [example.target for example in self._task.task.examples]

    def run(self, places: Sequence[int], prepare: Prepare | None = None, channel_order: str = "") -> list[Tried]:
        """Run the examples at these places."""
        task = self._task if prepare is None else self._task.prepared_by(prepare)
        task = task.with_channels(channel_order) if channel_order else task
        found = []
        tried: set[bytes] = set()
        for place, prepared in _prepared(task, places):
            content = hashlib.sha256(b"".join(each.tobytes() for each in prepared.inputs)).digest()
            if content in tried:
                continue
            tried.add(content)
            try:
                observed = task.observe(prepared, self._session.run(prepared.inputs).outputs)
            except (InferenceError, TaskError):
                continue
            names = [metric.name for metric in task.task.metrics]
            scores = {name: row for name, row in zip(names, observed.values, strict=True) if row is not None}
            found.append(Tried(task.task.examples[place].target, scores))
        return found


def call_check(check: Callable[[Trial], Sequence[str]], trial: Trial) -> Sequence[str]:
    """What a task's ``check`` says; raises :class:`UsageError` and its kinds for what it raises."""
    place = place_of(check)
    try:
        with calling_task():
            found = check(trial)
            return [str(each) for each in found]
    except EvaltoolsError as error:
        kind = type(error) if isinstance(error, UsageError) else UsageError
        raise kind(described(error, place)) from error
    except FAULTS as error:
        raise UsageError(sentence(error, "check failed", place)) from error


def _prepared(task: OwnTask, places: Sequence[int]) -> Iterator[tuple[int, Prepared]]:
    """The inputs of those examples that can be read, in order; a few are made at the same time, on all cores."""

    def prepared(place: int) -> Prepared | None:
        try:
            return task.prepare(task.examples[place])
        except (ImageError, TaskError):
            return None

    with ThreadPoolExecutor(available_cores()) as threads:
        for start in range(0, len(places), _MADE_AT_ONCE):
            some = places[start : start + _MADE_AT_ONCE]
            for place, made in zip(some, threads.map(prepared, some), strict=True):
                if made is not None:
                    yield place, made
