"""A task as the engine sees it, and the record that it writes for each example."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct

from evaltools.runtime.session import Array

READ: Final = "read"
DECODE: Final = "decode"
RESIZE: Final = "resize"
PREPARATION: Final = "prepare"
INFERENCE: Final = "inference"
METRICS: Final = "metrics"
JOURNAL: Final = "journal"
INPUT_STAGES: Final = (READ, DECODE, RESIZE, PREPARATION)
STAGES: Final = (READ, DECODE, RESIZE, PREPARATION, INFERENCE, METRICS, JOURNAL)
"""Those of every pass."""
Observation = TypeVar("Observation")
Observed = TypeVar("Observed", covariant=True)


class Example(Struct, frozen=True):
    """One thing to evaluate; ``id`` is unique in a run and stable between runs (a file name)."""

    index: int
    id: str


class Prepared(Struct, frozen=True):
    """An example that is ready to run: the model's inputs, and a context that the task needs to interpret the outputs.

    ``steps`` are the steps of making the input, in order, such as ``("decode", 1200)``, in whole microseconds.
    """

    inputs: tuple[Array, ...]
    context: Any = None
    steps: tuple[tuple[str, int], ...] = ()


class Failure(Struct, frozen=True):
    """Why an example has no observation: making its input failed, or inference, or scoring the outputs.

    ``crashed``: the process that ran it died or hung.
    """

    stage: Literal["input", "inference", "score"]
    reason: str
    crashed: bool = False


class Record(Struct, Generic[Observation], frozen=True):
    """What one configuration did with one example: an observation, or a failure.

    ``invokes_us`` has only the time of each ``invoke`` in microseconds to the nanosecond, ``read_us`` that of reading
    the outputs after the last one; a failed example has neither.
    """

    example: Example
    configuration: str
    invokes_us: tuple[float, ...]
    observation: Observation | None
    failure: Failure | None = None
    read_us: float | None = None


class Task(Protocol[Observed]):
    """A task: which examples there are, how one becomes inputs, and what is observed of the outputs."""

    @property
    def examples(self) -> Sequence[Example]:
        """The examples, in the order of evaluation; the index of each is its place."""

    @property
    def observation_type(self) -> type[Observed]:
        """The type that :meth:`observe` returns.

        A struct or dataclass of numbers, texts, tuples and NumPy arrays, which can be stored.
        """

    @property
    def in_order(self) -> bool:
        """Whether examples must be prepared one after the other, as for random numbers and saved files."""

    @property
    def keeps_state(self) -> bool:
        """Whether outputs depend on the examples before, so that all must run in order on one session."""

    def prepare(self, example: Example) -> Prepared:
        """Make the model's inputs, once for all configurations.

        Raises :class:`~evaltools.errors.ImageError` where the example cannot be read, and
        :class:`~evaltools.errors.TaskError` where code of the user's own fails on it.
        """

    def observe(
        self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None, configuration: str
    ) -> Observed:
        """What is kept of the outputs of a configuration: it is small, and enough for every metric.

        ``reference`` are the reference's outputs for the same inputs: ``outputs`` itself where they are the reference's
        own, None if there is no reference, or if it failed. Raises :class:`~evaltools.errors.TaskError` as
        :meth:`prepare` does.
        """


@runtime_checkable
class PortableTask(Protocol):
    """A task whose inputs other processes can make, where it ``is_portable``."""

    @property
    def is_portable(self) -> bool:
        """Whether they can."""

    def recipe(self, example: Example) -> Callable[[], Prepared]:
        """A small function that can be pickled, and does what :meth:`Task.prepare` does for an example."""
