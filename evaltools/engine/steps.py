"""What a pass does with each example, and the record that it writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

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
    """What one configuration did with one example, by its number: an observation, or a failure.

    ``invokes_us`` has only the time of each ``invoke`` in microseconds to the nanosecond, ``read_us`` that of reading
    the outputs after the last one; a failed example has neither.
    """

    example: int
    configuration: str
    invokes_us: tuple[float, ...]
    observation: Observation | None
    failure: Failure | None = None
    read_us: float | None = None


class Steps(Struct, Generic[Observation], frozen=True):
    """What a pass does with each example, by functions of its number.

    ``names`` has the name of each example, unique in a run and stable between runs (a file name), in the order of
    evaluation. ``in_order``: examples must be prepared one after the other, as for random numbers and saved files.
    ``keeps_state``: outputs depend on the examples before, so that all must run in order on one session.

    ``prepare`` makes the model's inputs, once for all configurations. It raises :class:`~evaltools.errors.ImageError`
    where the example cannot be read, and :class:`~evaltools.errors.TaskError` where code of the user's own fails on it.
    ``recipe`` gives a small function that can be pickled and does the same in another process; None where none can.

    ``observe`` takes what was prepared, outputs, the reference's outputs for the same inputs and the configuration's
    name. It returns what is kept: small, and enough for every metric. The reference's outputs are ``outputs`` itself
    where they are its own, None if there is no reference, or if it failed. It raises ``TaskError`` as ``prepare`` does.
    ``observation_type`` is the type that it returns: a struct or dataclass of numbers, texts, tuples and NumPy arrays,
    which can be stored.
    """

    names: Sequence[str]
    prepare: Callable[[int], Prepared]
    observe: Callable[[Prepared, Sequence[Array], Sequence[Array] | None, str], Observation]
    observation_type: type[Observation]
    in_order: bool = False
    keeps_state: bool = False
    recipe: Callable[[int], Callable[[], Prepared]] | None = None
