"""What a pass does with each example, how much time each stage takes, and the record that it writes.

A record is MessagePack, without pickle: a file of another machine can contain no code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from evaltools.errors import DataError
from evaltools.result.execution import InferenceSeconds
from evaltools.runtime.process.messages import from_plain, to_plain
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


Count = Annotated[int, Meta(ge=0, lt=2**62)]
Microseconds = Annotated[float, Meta(ge=0, le=2**53)]


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


class Record(Struct, Generic[Observation], frozen=True, array_like=True, tag="record"):
    """What one configuration did with one example, by its number: an observation, or a failure.

    ``invokes_us`` has only the time of each ``invoke`` in microseconds to the nanosecond, ``read_us`` that of reading
    the outputs after the last one; a failed example has neither. ``prepared_us`` is the time of making the example's
    input, None where that could not be made.
    """

    example: Count
    configuration: str
    invokes_us: tuple[Microseconds, ...]
    observation: Observation | None
    failure: Failure | None = None
    read_us: Microseconds | None = None
    prepared_us: Count | None = None


class RecordDecoder(Generic[Observation]):
    """Reads records with one type of observation; arrays keep type, shape and bytes.

    >>> record = Record(3, "cpu", (7.5,), 0.25)
    >>> RecordDecoder(float).decode(encode_record(record)) == record
    True
    """

    def __init__(self, observation_type: type[Observation]) -> None:
        self.observation_type: Final = observation_type
        record: Any = Record[observation_type]  # type: ignore[valid-type]
        self._decoder = msgspec.msgpack.Decoder(record, dec_hook=from_plain)

    def decode(self, content: bytes) -> Record[Observation]:
        """The record in some bytes; raises :class:`DataError` for bytes that hold none."""
        try:
            decoded: Record[Observation] = self._decoder.decode(content)
        except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"a record of the journal cannot be read: {error}; start the run anew") from error
        return decoded


def encode_record(record: Record[Any]) -> bytes:
    """A record as MessagePack, whatever was observed."""
    return _encoder.encode(record)


_encoder: Final = msgspec.msgpack.Encoder(enc_hook=to_plain)


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


Bound = Literal["input", "inference", "metrics", "journal"]


class Span(NamedTuple):
    """One piece of work.

    ``stage`` is its kind, ``start_ns`` when it began and ``duration_ns`` how long it took, both by
    ``time.perf_counter_ns``; ``worker`` is the number of the worker that did it.
    """

    stage: str
    start_ns: int
    duration_ns: int
    worker: int
    label: str


class StageTimes(Struct):
    """Seconds of work per stage: over all workers, by worker, and those of inference by configuration."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    by_worker: dict[int, dict[str, float]] = field(default_factory=dict)
    inference: dict[str, InferenceSeconds] = field(default_factory=dict)

    def add(self, spans: Iterable[Span], inference: Mapping[str, InferenceSeconds]) -> None:
        """Add pieces of work; those of the journal belong to no worker. ``inference`` is by configuration."""
        for span in spans:
            spent = {span.stage: span.duration_ns / 1e9}
            _add(self.seconds, spent)
            if span.worker >= 0:
                _add(self.by_worker.setdefault(span.worker, {}), spent)
        for name, more in inference.items():
            before = self.inference.get(name, InferenceSeconds(0.0, 0.0, 0.0))
            self.inference[name] = InferenceSeconds(
                before.copy + more.copy, before.run + more.run, before.read_back + more.read_back
            )

    @property
    def bound(self) -> Bound | None:
        """The kind of work that takes most of the time; None where none was done."""
        work: dict[Bound, float] = {
            "input": sum(self.seconds.get(stage, 0.0) for stage in INPUT_STAGES),
            "inference": self.seconds[INFERENCE],
            "metrics": self.seconds[METRICS],
            "journal": self.seconds[JOURNAL],
        }
        return max(work.items(), key=lambda kind: kind[1])[0] if any(work.values()) else None


def _add(seconds: dict[str, float], more: Mapping[str, float]) -> None:
    for stage, spent in more.items():
        seconds[stage] = seconds.get(stage, 0.0) + spent
