"""The result of a suite: every model in every configuration, small enough to be compared with a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.result.evaluation import SCHEMA_VERSION, Environment, EvaluationResult
from evaltools.result.json_file import json_of_version
from evaltools.result.result import Row
from evaltools.result_file import sound

_WHAT: Final = "result of evaltools suite"


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
    rows: list[Row] = field(default_factory=list)
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
        entry if entry.evaluation is None else replace(entry, evaluation=sound(path, entry.evaluation))
        for entry in read.entries
    ]
    return replace(read, entries=entries)
