"""The result files of an evaluation: which there are, and their content."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.errors import UsageError
from evaltools.native.lines.evaluation import measured_tests
from evaltools.report.files.formats import format_of
from evaltools.result.evaluation import EvaluationResult

_WHOLE_RESULT: Final = "the result"
PLOT: Final = "the plot"


def plan_files(output: Path, configurations: Sequence[str], stated: str = "") -> dict[str, Path]:
    """Path of each file by what it holds, before anything is measured.

    Where the format has a file per configuration, the first has that name, and each other one is beside it with its
    own name put in. ``stated`` is a format that the name need not say. Raises :class:`UsageError` where two would be
    equal.

    >>> plan_files(Path("out.pb"), ["test", "gpu fp16"])
    {'test': PosixPath('out.pb'), 'gpu fp16': PosixPath('out.gpu_fp16.pb')}
    """
    if format_of(output, stated).is_per_configuration:
        return file_per_configuration(output, configurations)
    return {_WHOLE_RESULT: output}


def file_per_configuration(output: Path, configurations: Sequence[str]) -> dict[str, Path]:
    """The first configuration under the name given, each other one beside it with its own name put in.

    Raises :class:`UsageError` where two would be equal.
    """
    files: dict[str, Path] = {}
    for number, name in enumerate(configurations):
        safe_name = re.sub(r"[^\w.-]+", "_", name)
        path = output.with_name(f"{output.stem}.{safe_name}{output.suffix}") if number else output
        if os.path.realpath(path) in [os.path.realpath(other) for other in files.values()]:
            raise UsageError(f"two configurations would be written to {path}; give them names that differ in letters")
        files[name] = path
    return files


def rendered(result: EvaluationResult, files: Mapping[str, Path], stated: str = "") -> dict[str, bytes]:
    """The content of each planned file; there is none for configurations that were not measured."""
    if PLOT in files:
        from evaltools.report.files.plot import plot_models

        others = {name: path for name, path in files.items() if name != PLOT}
        name = Path(result.model.file).name
        return rendered(result, others, stated) | {PLOT: plot_models({name: result}, files[PLOT])}
    if _WHOLE_RESULT in files:
        return {_WHOLE_RESULT: format_of(files[_WHOLE_RESULT], stated).render(result, None)}
    return {
        entry.name: format_of(files[entry.name], stated).render(result, entry)
        for entry in measured_tests(result)
        if entry.name in files
    }
