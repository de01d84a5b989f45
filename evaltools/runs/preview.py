"""What carrying out a stored request would run, load, read and write, found without doing any of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.parameter import Parameter, Role, split_flag
from evaltools.request.plain import StoredOptions, StoredRequest
from evaltools.task_kind import OWN, comes_with_evaltools, request_kind

_DOES: Final[Mapping[Role, str]] = {
    "library": "loads",
    "machine_path": "loads or writes",
    "program": "runs",
    "output_file": "writes",
    "output_folder": "writes to",
}
_AS_THEY_ARE: Final[tuple[Role, ...]] = ("program", "named_files", "layer_files")
_RUN_DIR: Final = "run_dir"
_RAY: Final = "ray_address"
_JOB: Final = "job"
_MODELS: Final = "model_paths"


def consequences(stored: StoredRequest, device_parameters: Mapping[str, Parameter]) -> list[str]:
    """In words, one for each file, program and address. Raises :class:`UsageError` for flags that are none."""
    is_known = comes_with_evaltools(stored.task)
    found = [] if is_known else [f"runs the Python code of {stored.task}"]
    own_parameters = request_kind(stored.task if is_known else OWN).parameters
    found += _of_options(stored.options, own_parameters, stored.folder)
    for configuration in (*([stored.reference] if stored.reference else []), *stored.tests):
        flags = dict(split_flag(word, CONFIGURATION_PARAMETERS) for word in configuration.flags)
        found += _of_options(flags, CONFIGURATION_PARAMETERS, stored.folder)
    found += _of_jobs(stored.options)
    if _RAY in stored.options:
        found.append(f"sends code and work to the Ray cluster at {stored.options[_RAY]}")
    if stored.devices is not None:
        found.append("runs programs on devices")
        found += _of_options(stored.devices, device_parameters, stored.folder)
    return list(dict.fromkeys(found))


def _of_jobs(options: StoredOptions) -> Iterator[str]:
    """What a suite does with each model, also by what a file says."""
    for job in _texts(options.get(_JOB)):
        yield f"runs evaltools {job.partition(':')[2].strip()} (--{_JOB})"
    for path in _texts(options.get(_MODELS)):
        if path.endswith(".toml"):
            yield f"runs the jobs in {path}, with the tasks and libraries that it names"


def _of_options(
    options: StoredOptions | Mapping[str, str], parameters: Mapping[str, Parameter], folder: str
) -> Iterator[str]:
    for name, value in options.items():
        parameter = parameters.get(name)
        for text in _texts(value):
            if parameter is None:
                yield f"unknown option --{name}={text}"
            elif parameter.role != "plain" and name != _RUN_DIR:
                yield _of_option(parameter, text, folder)


def _texts(value: int | float | str | list[str] | None) -> list[str]:
    """A value that was stated once or several times."""
    if value is None:
        return []
    return list(map(str, value if isinstance(value, list) else [value]))


def _of_option(parameter: Parameter, text: str, folder: str) -> str:
    does = _DOES.get(parameter.role, "reads")
    path = text if parameter.role in _AS_THEY_ARE else os.path.join(folder, text)
    is_there = does == "writes" and os.path.lexists(path)
    return f"{'overwrites' if is_there else does} {path} (--{parameter.name})"
