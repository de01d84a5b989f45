"""Which result files there are, and what stands in them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.errors import UsageError
from evaltools.report.native import measured_tests, native_proto
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import to_json

_WHOLE_RESULT: Final = "the result"


def plan_files(output: Path, configurations: Sequence[str]) -> dict[str, Path]:
    """Path of each file by what it holds, before anything is measured.

    ``*.json`` is one file with the whole result. Any other name is a native protobuf: the first configuration under
    that name, each other one beside it with its own name put in. Raises :class:`UsageError` where two would be equal.

    >>> plan_files(Path("out.pb"), ["test", "gpu fp16"])
    {'test': PosixPath('out.pb'), 'gpu fp16': PosixPath('out.gpu_fp16.pb')}
    """
    if output.suffix.lower() == ".json":
        return {_WHOLE_RESULT: output}
    return file_per_configuration(output, configurations)


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


def rendered(result: EvaluationResult, files: Mapping[str, Path]) -> dict[str, bytes]:
    """Content of each planned file; configurations that were not measured are missing."""
    if _WHOLE_RESULT in files:
        return {_WHOLE_RESULT: to_json(result)}
    return {entry.name: native_proto(result, entry) for entry in measured_tests(result)}
