"""A baseline: the figures of a released result, small enough to be kept in a repository."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from evaltools.errors import DataError
from evaltools.gates.check import evidence_of
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import ScoreMean
from evaltools.result.json_file import read_json
from evaltools.result.places import machine_of
from evaltools.task_kind import kind_of

BASELINE_VERSION: Final = "1"
_RANKS: Final = "0123456789"
_NO_RANK: Final = "-"
_RESAMPLED_DIGITS: Final = 5
_MOST_TIMES: Final = 500
_MOST_EXAMPLES: Final = 10**12


class BaselineConfiguration(Struct, frozen=True):
    """One configuration of a baseline.

    ``figures`` are those that limits use, ``outputs`` those of each output. ``ranks`` has one character per example,
    the place of the right label from 0, ``-`` where it is not among the best; empty where no examples were recorded.
    ``resampled`` has figures of COCO over resamples of the pictures, in units of 0.00001, null as in the result.
    ``means`` has what is known of figures that are means of scores. ``times_us`` are single times, at most 500 of them,
    spread evenly; empty where the result does not hold those behind its latency. ``answered`` counts the examples that
    the figures are of. A figure is null where there is no number for it, such as that of an output with NaN.
    """

    name: str
    flags: list[str]
    runtime: str
    figures: dict[str, float | None]
    outputs: dict[str, dict[str, float | None]] = field(default_factory=dict)
    ranks: Annotated[str, Meta(pattern="^[0-9-]*$")] = ""
    resampled: dict[str, list[Annotated[int, Meta(ge=0, le=100_000)] | None]] = field(default_factory=dict)
    answered: Annotated[int, Meta(ge=0, le=_MOST_EXAMPLES)] = 0
    means: dict[str, ScoreMean] = field(default_factory=dict)
    times_us: list[Annotated[float, Meta(ge=0)]] = field(default_factory=list)


class Baseline(Struct, frozen=True):
    """The figures of a result.

    ``examples_sha256`` is the sha256 of the names and labels of its examples, in order. ``setup`` describes everything
    else that decides the figures, ``subject`` is the task's name. ``machine`` is where times were measured, empty in
    older files.
    """

    baseline_version: Literal["1"]
    task: str
    model: str
    model_sha256: str
    evaltools: str
    started_at: str
    example_count: Annotated[int, Meta(ge=1, le=_MOST_EXAMPLES)]
    examples_sha256: str
    configurations: Annotated[list[BaselineConfiguration], Meta(min_length=1)]
    setup: dict[str, str] = field(default_factory=dict)
    subject: str = ""
    machine: str = ""

    @property
    def about(self) -> str:
        """The task, by the name that users know, and the model's file."""
        return f"{self.subject or self.task} of {self.model}"


def is_whole(result: EvaluationResult) -> bool:
    """Whether a result can be a baseline: something was measured, of all examples."""
    return result.complete and bool(_measured(result))


def _measured(result: EvaluationResult) -> list[ConfigurationResult]:
    return [entry for entry in result.configurations if entry.status == "measured" and entry.fallback is None]


def make_baseline(result: EvaluationResult) -> Baseline:
    """A baseline of every configuration that was measured.

    Raises :class:`DataError` for a result in which none was measured, and for a run that ended early.
    """
    measured = _measured(result)
    if not is_whole(result):
        why = "no configuration was measured" if result.complete else f"the run ended early ({result.stopped})"
        raise DataError(f"the result is no baseline: {why}")
    return Baseline(
        baseline_version=BASELINE_VERSION,
        task=result.task,
        model=Path(result.model.file).name,
        model_sha256=result.model.sha256,
        evaltools=result.environment.evaltools,
        started_at=result.environment.started_at,
        example_count=result.examples_done,
        examples_sha256=digest_of_examples(result),
        configurations=[_configuration(result, entry) for entry in measured],
        setup=kind_of(result.task).evidence.setup(result),
        subject=kind_of(result.task).evidence.subject(result),
        machine=machine_of(result.environment, result.device_run),
    )


def _configuration(result: EvaluationResult, entry: ConfigurationResult) -> BaselineConfiguration:
    evidence, judged = evidence_of(result, entry), kind_of(result.task).evidence.judged(result, entry)
    of_outputs = {name for _, values in evidence.outputs for name in values}
    runtime = (
        f"{entry.runtime.package} {entry.runtime.version}, {entry.runtime.kernels} kernels" if entry.runtime else ""
    )
    return BaselineConfiguration(
        name=entry.name,
        flags=entry.flags,
        runtime=runtime,
        figures={name: value for name, value in _numbers(evidence.figures).items() if name not in of_outputs},
        outputs={names[0]: _numbers(values) for names, values in evidence.outputs},
        ranks="".join(_NO_RANK if rank is None else _RANKS[rank] for rank in judged.ranks),
        resampled={figure: _whole_numbers(values) for figure, values in judged.resampled.items()},
        answered=entry.finished_examples,
        means=dict(judged.means),
        times_us=_spread(judged.times_us),
    )


def _spread(times_us: Sequence[float]) -> list[float]:
    """At most 500 of the values, spread evenly, so that the file stays small.

    >>> len(_spread(range(40))), len(_spread(range(1200))), _spread(range(1500))[:3]
    (40, 500, [0, 3, 6])
    """
    count = min(_MOST_TIMES, len(times_us))
    return [times_us[place * len(times_us) // count] for place in range(count)]


def _numbers(figures: Mapping[str, float | None]) -> dict[str, float | None]:
    """The values with None for what is no finite number."""
    return {name: value if value is not None and math.isfinite(value) else None for name, value in figures.items()}


def _whole_numbers(values: Sequence[float | None]) -> list[int | None]:
    return [None if value is None else round(value * 10**_RESAMPLED_DIGITS) for value in values]


def resampled_values(values: list[int | None]) -> list[float | None]:
    """The shares, 0..1, that the whole numbers in a baseline stand for."""
    return [None if value is None else value / 10**_RESAMPLED_DIGITS for value in values]


def digest_of_examples(result: EvaluationResult) -> str:
    """A checksum of what selects examples, and of what the task knows about them: equal where they are the same."""
    shard = result.execution.shard if result.execution is not None else None
    parts = [result.task, str(result.examples_done), shard or "", result.pictures_digest]
    parts += kind_of(result.task).evidence.examples(result)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read_baseline(path: Path) -> Baseline:
    """Read and check a baseline; raises :class:`DataError` naming the field that does not fit."""
    return read_json(path, Baseline, "evaltools baseline", "; evaltools baseline save makes it")
