"""Results from files, and what is in a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from evaltools.api.benchmarks import Benchmark
from evaltools.api.configurations import OneConfiguration, read_tests
from evaltools.api.options import errors_in_python
from evaltools.api.result import Result
from evaltools.api.suites import Suite
from evaltools.errors import UsageError
from evaltools.gates.suite_result import read_suite
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.inspection import Inspection
from evaltools.result.json_file import read_json
from evaltools.result_file import read_result


class _Head(msgspec.Struct):
    """What distinguishes results: a benchmark is of no task, and a suite has a version of its own."""

    schema_version: str = ""
    task: str | None = None
    suite_version: str | None = None


def path_of(given: object, what: str) -> Path:
    """What was given as a path; raises :class:`~evaltools.errors.UsageError` for anything else.

    >>> path_of("m.tflite", "a model")
    PosixPath('m.tflite')
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise UsageError(f"{what}: expected a path, got {given!r}")


@errors_in_python({})
def load(path: str | Path) -> Result | Benchmark | Suite:
    """The result of an evaluation, of a benchmark or of a suite that a JSON file holds.

    Raises :class:`~evaltools.errors.DataError` for a file that holds none.
    """
    file = path_of(path, "the result to load")
    head = read_json(file, _Head, "evaltools result")
    if head.suite_version is not None:
        return Suite(read_suite(file))
    if head.task is None:
        return Benchmark(read_json(file, BenchmarkResult, "evaltools benchmark result"))
    return Result(read_result(file))


@errors_in_python({})
def inspect(
    model: str | Path,
    *,
    run: bool = True,
    test: OneConfiguration | None = None,
    npu_soc: str | Sequence[str] = (),
    npu_vendor: str = "qualcomm",
    save_compiled: str | Path | None = None,
) -> Inspection:
    """What is in a model, which delegates are made for it, and what they take of it.

    ``run``: open it with XNNPACK and the GPU to see. ``test``: a configuration whose delegates are tried as well, as
    ``"external_delegate_path=my.so kernels=builtin"``. ``npu_soc``: chips of ``npu_vendor``, or ``all``, for which it
    is compiled; the compiled files are kept in ``save_compiled``. Raises :class:`~evaltools.errors.ModelError` for a
    file that is not a model, and :class:`~evaltools.errors.UsageError` for a chip that is not known.
    """
    from evaltools.delegates.npu_flags import FLAGS_OF
    from evaltools.inspection.model import inspect_model
    from evaltools.inspection.npu_chips import ChipsAsked

    if npu_vendor not in FLAGS_OF:
        raise UsageError(f"npu_vendor={npu_vendor!r}: use one of {', '.join(FLAGS_OF)}")
    chips = tuple(npu_soc.split(",") if isinstance(npu_soc, str) else npu_soc)
    folder = None if save_compiled is None else path_of(save_compiled, "save_compiled")
    asked = ChipsAsked(chips, npu_vendor, folder) if any(chips) else None
    configuration = None if test is None else read_tests(test)[0]
    return inspect_model(path_of(model, "the model to inspect"), run, chips=asked, asked=configuration)
