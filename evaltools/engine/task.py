"""What the engine knows of a task, and the record that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from evaltools.runtime.session import Array

Observation = TypeVar("Observation")
Observed = TypeVar("Observed", covariant=True)


@dataclass(frozen=True)
class Example:
    """One thing to evaluate; ``id`` is unique in a run and stable between runs (a file name)."""

    index: int
    id: str


@dataclass(frozen=True)
class Prepared:
    """An example ready to run: the model's inputs, and what the task needs later to make sense of the outputs."""

    inputs: tuple[Array, ...]
    context: Any = None


@dataclass(frozen=True)
class Failure:
    """Why an example has no observation: its input could not be made, or the inference failed."""

    stage: Literal["input", "inference"]
    reason: str


@dataclass(frozen=True)
class Record(Generic[Observation]):
    """What one configuration did with one example: an observation, or a failure.

    ``invokes_us`` has the time of each ``invoke`` alone in whole microseconds, ``read_us`` that of reading the outputs
    after the last one; a failed example has neither.
    """

    example: Example
    configuration: str
    invokes_us: tuple[int, ...]
    observation: Observation | None
    failure: Failure | None = None
    read_us: int | None = None


class Task(Protocol[Observed]):
    """Which examples there are, how one becomes inputs, and what outputs mean."""

    @property
    def examples(self) -> Sequence[Example]:
        """The examples, in the order of evaluation."""

    def prepare(self, example: Example) -> Prepared:
        """Make the model's inputs, once for all configurations.

        Raises :class:`~evaltools.errors.ImageError` where the example cannot be read.
        """

    def observe(self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None) -> Observed:
        """What to remember of the outputs: small, and enough for every metric.

        ``reference`` are the reference's outputs for the same inputs, None where there is none (no reference, it
        failed, or this is the reference itself).
        """
