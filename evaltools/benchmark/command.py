"""The command of the benchmark: its options, and the request that its flags make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.matrix import (
    ALL_HERE,
    ALL_OF_NATIVE,
    option_configurations,
)
from evaltools.command import Command
from evaltools.configuration import CONFIGURATION_PARAMETERS, OWN_PARAMETERS, Configuration
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.request import Options, Request
from evaltools.request.flags import TEST_NAME, GivenFlags, configurations_of_files_and_texts
from evaltools.request.sweep import sweep_configurations
from evaltools.tasks.framework.common_options import ALLOW_FALLBACK, CANDIDATES

GROUPS: Final = {
    "benchmark_model": benchmark_flags.PARAMETERS,
    "beyond benchmark_model": benchmark_flags.BEYOND,
    "configurations": (*CANDIDATES, ALLOW_FALLBACK, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
COMMAND: Final = Command("benchmark", "benchmark", lambda: GROUPS, ("evaltools.benchmark.run", "scipy.special"))


def request_of_flags(
    flags: GivenFlags, command: Sequence[str], folder: Path | None = None, native_tool: bool = False
) -> Request:
    """The request that a command line makes; raises :class:`UsageError` for flags that are wrong.

    Flags of configurations also stay among the options: messages need those that ``--perf_options_list`` overrules.
    With ``native_tool``, ``all`` in such a list stands for all options of the native tool, else for those that
    evaltools has.
    """
    if not any(flags.texts("graph")):
        raise UsageError("Please specify the name of your TF Lite input file with --graph")
    folder = folder or Path.cwd()
    own = flags.among(CONFIGURATION_PARAMETERS)
    named = configurations_of_files_and_texts(flags, folder=folder)
    options = flags.options(leave_out=("config",))
    return request_of_options(options, named, folder, own, command, native_tool)


def request_of_options(
    options: Options,
    named: Sequence[Configuration],
    folder: Path,
    own: Sequence[tuple[str, str]] = (),
    command: Sequence[str] = (),
    native_tool: bool = False,
) -> Request:
    """The request with these options and configurations; ``own`` are flags of all others that the options ask for."""
    text = options.text("perf_options_list")
    found = option_configurations(text, own, ALL_OF_NATIVE if native_tool else ALL_HERE)
    found += sweep_configurations(options.texts("sweep"), own)
    if not found and (own or not named):
        found = [Configuration.from_flags(TEST_NAME, own)]
    return Request(COMMAND.name, options, None, (*found, *named), folder, command=tuple(command))
