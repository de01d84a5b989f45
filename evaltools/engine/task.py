"""What the engine knows of a task, and the record that it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Observation = TypeVar("Observation")
Observed = TypeVar("Observed", covariant=True)


@dataclass(frozen=True)
class Example:
    """One thing to evaluate; ``id`` is unique in a run and stable between runs (a file name)."""

    index: int
    id: str


@dataclass(frozen=True)
class Failure:
    """Why an example has no observation: its input could not be made, or the inference failed."""

    stage: Literal["input", "inference"]
    reason: str


@dataclass(frozen=True)
class Record(Generic[Observation]):
    """What one configuration did with one example: an observation, or a failure."""

    example: Example
    configuration: str
    invoke_us: int | None
    observation: Observation | None
    failure: Failure | None = None


class Task(Protocol[Observed]):
    """Which examples there are, how one becomes inputs, and what outputs mean."""

    @property
    def examples(self) -> Sequence[Example]:
        """The examples, in the order of evaluation."""

    def inputs(self, example: Example) -> tuple[Array, ...]:
        """The model's inputs; raises :class:`~evaltools.errors.ImageError`."""

    def observe(self, example: Example, outputs: Sequence[Array]) -> Observed:
        """What to remember of the outputs: small, and enough for every metric."""
