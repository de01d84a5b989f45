"""Results from files, and what is in a model."""

from __future__ import annotations

from pathlib import Path

import msgspec

from evaltools.api.benchmarks import Benchmark
from evaltools.api.result import Result
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.inspection import Inspection
from evaltools.result.json_file import read_json, read_result


class _Head(msgspec.Struct):
    """What tells results apart: a benchmark is of no task."""

    schema_version: str
    task: str | None = None


def load(path: str | Path) -> Result | Benchmark:
    """The result of an evaluation or of a benchmark that a JSON file holds.

    Raises :class:`~evaltools.errors.DataError` for a file that holds none.
    """
    if read_json(Path(path), _Head, "evaltools result").task is None:
        return Benchmark(read_json(Path(path), BenchmarkResult, "evaltools benchmark result"))
    return Result(read_result(Path(path)))


def inspect(model: str | Path, *, run: bool = True) -> Inspection:
    """What is in a model, which delegates are made for it, and what they take of it.

    ``run``: open it with XNNPACK and the GPU to see. Raises :class:`~evaltools.errors.ModelError` for a file that is no
    model.
    """
    from evaltools.tasks.inspection.task import inspect_model

    return inspect_model(Path(model), run)
