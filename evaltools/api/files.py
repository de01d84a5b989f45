"""Results from files, and what is in a model."""

from __future__ import annotations

from pathlib import Path

from evaltools.api.result import Result
from evaltools.result.inspection import Inspection
from evaltools.result.json_file import read_result


def load(path: str | Path) -> Result:
    """The result that a JSON file holds; raises :class:`~evaltools.errors.DataError` for a file that holds none."""
    return Result(read_result(Path(path)))


def inspect(model: str | Path, *, run: bool = True) -> Inspection:
    """What is in a model, which delegates are made for it, and what they take of it.

    ``run``: open it with XNNPACK and the GPU to see. Raises :class:`~evaltools.errors.ModelError` for a file that is no
    model.
    """
    from evaltools.tasks.inspection.task import inspect_model

    return inspect_model(Path(model), run)
