"""A suite as a kind of request: its options, and the request that its flags make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.request.flags import GivenFlags, configurations_of_files_and_texts
from evaltools.suite.options import GROUPS, PARAMETERS


class _Suite:
    """A suite; it implements :class:`evaltools.task_kind.RequestKind`."""

    name = command = "suite"
    groups: Mapping[str, Sequence[Parameter]] = GROUPS
    parameters: Mapping[str, Parameter] = MappingProxyType(PARAMETERS)
    modules_on_devices: Sequence[str] = ()

    def moved(self, task: str, take: Callable[[Path], str]) -> str:  # noqa: ARG002
        """The name of the suite, which is the same everywhere: it is not in a file of its own."""
        return task

    def files_beside(self) -> Sequence[Path]:
        """No files: a suite is not in a file of its own."""
        return ()


KIND: Final = _Suite()


def request_of_flags(
    flags: GivenFlags, command: Sequence[str] = (), tests: Sequence[Configuration] | None = None
) -> Request:
    """What flags ask for; raises :class:`UsageError` for those that are wrong. ``tests`` None: the flags say which."""
    if not any(flags.texts("model_paths")):
        raise UsageError(
            "which models? Give a folder, models, or a file suite.toml, as in evaltools suite models/ "
            "--config='xnnpack: use_xnnpack=true'"
        )
    options = flags.options(leave_out=("config", "configs"))
    if "job" in options and "job_folder" not in options:
        options = options.stating({"job_folder": "."})
    if tests is None:
        tests = configurations_of_files_and_texts(flags)
    return Request(KIND.name, options, None, tuple(tests), command=tuple(command))
