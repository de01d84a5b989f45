"""A few examples that are run before the pass, to see whether data and model belong together."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from evaltools.engine.execution import available_cores
from evaltools.engine.steps import Prepared
from evaltools.errors import EvaltoolsError, ImageError, InferenceError, TaskError, UsageError
from evaltools.runtime import Inference, Session
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Checked, Task, Trial, Tried
from evaltools.tasks.framework.faults import FAULTS, described, place_of, sentence
from evaltools.tasks.framework.steps import Prepare, prepared_for
from evaltools.tasks.framework.tensors import ModelTensors, TaskTensor

_MADE_AT_ONCE: Final = 16


class SessionTrial:
    """A :class:`~evaltools.tasks.framework.definition.Trial` on the sessions of one model, with its tensors alone."""

    def __init__(
        self,
        sessions: Sequence[Session],
        task: Task,
        tensors: ModelTensors,
        of_reference: SessionTrial | None = None,
        warmed_up: Inference | None = None,
    ) -> None:
        self._sessions = sessions
        self._task = task
        self._tensors = tensors
        self.of_reference: Final = of_reference
        self.first: Tried | None = None
        if warmed_up is not None:
            self.first = Tried(0, task.examples[0].target, tensors.of_outputs(warmed_up.outputs))
        self.trouble: Exception | None = None

    @property
    def inputs(self) -> Sequence[TaskTensor]:
        """The inputs of the model."""
        return self._tensors.inputs

    @property
    def targets(self) -> list[Any]:
        """The target of every example of the task."""
        return [example.target for example in self._task.examples]

    def run(
        self,
        places: Sequence[int],
        prepare: Prepare | None = None,
        channel_order: str = "",
        with_copies: bool = False,
        most: int | None = None,
    ) -> list[Tried]:
        """Run the examples at these places."""
        task = self._task if prepare is None else dataclasses.replace(self._task, prepare=prepare)
        tensors = self._tensors.with_channels(channel_order) if channel_order else self._tensors
        best: list[Tried] = []
        for session in self._sessions:
            found, failed = self._run_on(session, task, tensors, places, with_copies, most)
            if not failed:
                return found
            best = max(best, found, key=len)
        return best

    def run_on_each(self, places: Sequence[int]) -> list[list[Tried]]:
        """Run the examples at these places on every configuration."""
        found = [self._run_on(session, self._task, self._tensors, places, True, None)[0] for session in self._sessions]
        return [each for each in found if each]

    def _run_on(
        self,
        session: Session,
        task: Task,
        tensors: ModelTensors,
        places: Sequence[int],
        with_copies: bool,
        most: int | None,
    ) -> tuple[list[Tried], int]:
        """What one session gives, and in how many examples it failed."""
        found = []
        failed = 0
        seen: set[bytes] = set()
        for place, made in itertools.islice(self._prepared(task, tensors, places), most):
            content = hashlib.sha256(b"".join(each.tobytes() for each in made.inputs)).digest()
            if content in seen and not with_copies:
                continue
            seen.add(content)
            try:
                outputs = session.run(made.inputs).outputs
            except InferenceError as error:
                self.trouble = error
                failed += 1
                continue
            _, (context,) = made.context
            found.append(Tried(place, task.examples[place].target, tensors.of_outputs(outputs, context)))
        return found, failed

    def _prepared(self, task: Task, tensors: ModelTensors, places: Sequence[int]) -> Iterator[tuple[int, Prepared]]:
        """The inputs of those examples that can be read, in order; a few are made at once, on all cores."""

        def prepared(place: int) -> Prepared | None:
            try:
                return prepared_for(task, [tensors], place)
            except (ImageError, TaskError) as error:
                self.trouble = type(error)(f"{task.examples[place].id}: {error}")
                return None

        with ThreadPoolExecutor(1 if task.in_order else available_cores()) as threads:
            for start in range(0, len(places), _MADE_AT_ONCE):
                some = places[start : start + _MADE_AT_ONCE]
                for place, made in zip(some, threads.map(prepared, some), strict=True):
                    if made is not None:
                        yield place, made


def warm_up(session: Session, inputs: Sequence[Array], runs: int, invocations: int) -> Inference | None:
    """Run a few times; returns what the very first run gave, None without one.

    Failures are left to the runs that count.
    """
    first = None
    try:
        for _ in range(runs):
            inference = session.run(inputs, invocations)
            first = inference if first is None else first
    except InferenceError:
        return first
    return first


def call_check(check: Callable[[Trial], Sequence[str] | Checked], trial: Trial) -> Checked:
    """What a task's ``check`` found; raises :class:`UsageError` and its kinds, and what it says of the runtime."""
    place = place_of(check)
    try:
        found = check(trial)
        return found if isinstance(found, Checked) else Checked([str(each) for each in found])
    except InferenceError:
        raise
    except EvaltoolsError as error:
        kind = type(error) if isinstance(error, UsageError) else UsageError
        raise kind(described(error, place)) from error
    except FAULTS as error:
        raise UsageError(sentence(error, "check failed", place)) from error
