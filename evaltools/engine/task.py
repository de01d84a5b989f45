"""What the engine knows of a task, and the record that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from evaltools.runtime.session import Array

Observation = TypeVar("Observation")
Observed = TypeVar("Observed", covariant=True)


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to evaluate; ``id`` is unique in a run and stable between runs (a file name)."""

    index: int
    id: str


@dataclass(frozen=True)
class Prepared:
    """An example ready to run: the model's inputs, and what the task needs later to make sense of the outputs.

    ``steps`` are the steps of its making in order, such as ``("decode", 1200)``, in whole microseconds.
    """

    inputs: tuple[Array, ...]
    context: Any = None
    steps: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why an example has no observation: its input could not be made, inference failed, or scoring its outputs did.

    ``crashed``: the process that ran it died or hung.
    """

    stage: Literal["input", "inference", "score"]
    reason: str
    crashed: bool = False


@dataclass(frozen=True)
class Record(Generic[Observation]):
    """What one configuration did with one example: an observation, or a failure.

    ``invokes_us`` has the time of each ``invoke`` alone in microseconds to the nanosecond, ``read_us`` that of reading
    the outputs after the last one; a failed example has neither.
    """

    example: Example
    configuration: str
    invokes_us: tuple[float, ...]
    observation: Observation | None
    failure: Failure | None = None
    read_us: float | None = None


class Task(Protocol[Observed]):
    """Which examples there are, how one becomes inputs, and what outputs mean."""

    @property
    def examples(self) -> Sequence[Example]:
        """The examples, in the order of evaluation; the index of each is its place."""

    @property
    def observation_type(self) -> type[Observed]:
        """What :meth:`observe` gives: a dataclass of numbers, texts, tuples and NumPy arrays, which can be written."""

    @property
    def in_order(self) -> bool:
        """Whether examples must be prepared one after the other: random numbers, saved files."""

    @property
    def keeps_state(self) -> bool:
        """Whether what an example gives depends on those before it, so that all must run on one session in order."""

    def prepare(self, example: Example) -> Prepared:
        """Make the model's inputs, once for all configurations.

        Raises :class:`~evaltools.errors.ImageError` where the example cannot be read, and
        :class:`~evaltools.errors.TaskError` where code of the user's own fails on it.
        """

    def observe(self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None) -> Observed:
        """What to remember of the outputs: small, and enough for every metric.

        ``reference`` are the reference's outputs for the same inputs, None where there is none (no reference, it
        failed, or this is the reference itself). Raises :class:`~evaltools.errors.TaskError` as :meth:`prepare` does.
        """


@runtime_checkable
class PortableTask(Protocol):
    """A task whose inputs can be made by other processes."""

    def recipe(self, example: Example) -> Callable[[], Prepared]:
        """What :meth:`Task.prepare` does for an example, as something small that can be pickled."""
