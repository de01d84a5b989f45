"""Results from files, and what is in a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evaltools.api.configurations import OneConfiguration, read_tests
from evaltools.api.options import errors_in_python
from evaltools.api.result import Result
from evaltools.errors import UsageError
from evaltools.runs.folders import read_any_result


def path_of(given: object, what: str) -> Path:
    """What was given as a path; raises :class:`~evaltools.errors.UsageError` for anything else.

    >>> path_of("m.tflite", "a model")
    PosixPath('m.tflite')
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise UsageError(f"{what}: expected a path, got {given!r}")


@errors_in_python({})
def load(path: str | Path) -> Result:
    """The result that a JSON file holds, of any command.

    Raises :class:`~evaltools.errors.DataError` for a file that holds none.
    """
    return Result(read_any_result(path_of(path, "the result to load")))


@errors_in_python({})
def inspect(
    model: str | Path,
    *,
    run: bool = True,
    test: OneConfiguration | None = None,
    npu_soc: str | Sequence[str] = (),
    save_compiled: str | Path | None = None,
) -> Result:
    """What is in a model, which delegates are made for it, and what they take of it.

    ``run``: open it with XNNPACK and the GPU to see. ``test``: a configuration whose delegates are tried as well, as
    ``"external_delegate_path=my.so kernels=builtin"``. ``npu_soc``: chips, or ``all``, for which it
    is compiled; the compiled files are kept in ``save_compiled``. Raises :class:`~evaltools.errors.ModelError` for a
    file that is not a model, and :class:`~evaltools.errors.UsageError` for a chip that is not known.
    """
    from evaltools.inspection.model import inspect_model
    from evaltools.inspection.npu_chips import ChipsAsked

    chips = tuple(npu_soc.split(",") if isinstance(npu_soc, str) else npu_soc)
    folder = None if save_compiled is None else path_of(save_compiled, "save_compiled")
    asked = ChipsAsked(chips, folder) if any(chips) else None
    configuration = None if test is None else read_tests(test)[0]
    return Result(inspect_model(path_of(model, "the model to inspect"), run, chips=asked, asked=configuration))
