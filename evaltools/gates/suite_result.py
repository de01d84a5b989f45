"""The result of a suite: every model in every configuration, small enough to be compared with a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.result.evaluation import SCHEMA_VERSION, Environment, EvaluationResult, Load
from evaltools.result.json_file import json_of_version
from evaltools.result.verdict import Verdict
from evaltools.result_file import with_typed_part

_WHAT: Final = "result of evaltools suite"


class SuiteRow(Struct, frozen=True):
    """One configuration of an entry.

    ``reason`` says why it was not measured, or why some of its runs failed, of which there are ``failed_examples``.
    ``verdict`` is that against the reference, null where nothing was judged; it stands whole in ``not_decided``
    where it is none. ``accuracy`` is the figure of a task with a ground truth, 0..1. ``p50_us`` is the median time
    with its interval where there is one, in microseconds; null where nothing was timed. ``speed`` is how many times
    as fast it is as the reference, of a benchmark as the first configuration. ``runtime`` is the package and its
    version. ``not_clean`` says why measured figures are no clean pass, as in the result; ``load`` is what else the
    machine did while it was timed, null where it was not or nobody looked.
    """

    configuration: str
    role: Literal["reference", "test"]
    flags: list[str]
    status: Literal["measured", "not measured"]
    reason: str | None = None
    verdict: str | None = None
    not_decided: Verdict | None = None
    accuracy: float | None = None
    p50_us: float | None = None
    p50_interval: Interval | None = None
    speed: float | None = None
    speed_interval: Interval | None = None
    delegates: list[str] = field(default_factory=list)
    delegated_nodes: int | None = None
    total_nodes: int | None = None
    fallback: str | None = None
    failed_examples: int = 0
    runtime: str = ""
    not_clean: str = ""
    load: Load | None = None


class SuiteEntry(Struct, frozen=True):
    """One job with one model, which is a run of its own.

    ``state`` is ``done`` where there is a result, which lies at ``result`` in the run folder; ``failed`` where the run
    gave none, with ``reason``; ``skipped`` where it was not run to its end.
    ``command`` does it again. ``evaluation`` is the whole result of an evaluation, null for a benchmark.
    """

    model: str
    model_file: str
    model_sha256: str
    job: str
    command: list[str]
    state: Literal["done", "failed", "skipped"]
    reason: str = ""
    exit_code: int | None = None
    elapsed_s: float = 0.0
    result: str = ""
    rows: list[SuiteRow] = field(default_factory=list)
    evaluation: EvaluationResult | None = None


class SuiteResult(Struct, frozen=True):
    """Every entry in order; ``stopped`` says why some were skipped. ``schema_version`` is that of evaluations."""

    schema_version: str
    environment: Environment
    stopped: str
    entries: list[SuiteEntry]


def suite_in(content: bytes, path: Path) -> SuiteResult:
    """The result of a suite; raises :class:`~evaltools.errors.DataError` for the content of a file that is none."""
    read = json_of_version(content, path, SuiteResult, _WHAT, SCHEMA_VERSION)
    entries = [
        entry if entry.evaluation is None else replace(entry, evaluation=with_typed_part(path, entry.evaluation))
        for entry in read.entries
    ]
    return replace(read, entries=entries)
