"""``evaltools benchmark``: how fast a model is with each configuration, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from evaltools.benchmark.matrix import (
    ALL_HERE,
    ALL_OF_NATIVE,
    option_configurations,
    unread_flags,
)
from evaltools.cli.benchmark import flags as benchmark_flags
from evaltools.cli.shared.configurations import TEST_NAME, configurations_of_files_and_texts
from evaltools.cli.shared.flags import GivenFlags, parse_flags
from evaltools.cli.shared.sweep import sweep_configurations
from evaltools.configuration import CONFIGURATION_PARAMETERS, OWN_PARAMETERS, Configuration
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.tasks.shared.options import configurations

GROUPS: Final = {
    "benchmark_model": benchmark_flags.PARAMETERS,
    "beyond benchmark_model": benchmark_flags.BEYOND,
    "configurations": (*configurations.CANDIDATES, configurations.ALLOW_FALLBACK, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
EXIT_CODES: Final = """\
  0    everything asked for was measured
  2    a flag or a file is wrong; nothing was measured
  3    a configuration failed, or no operators could be profiled
  4    runs of a configuration failed
  5    a file, or stdout, could not be written
  130  interrupted; finished rounds are in the files"""
DESCRIPTION: Final = """\
How fast a model is: load, first run, warm-up, steady state, memory, operators; any number of configurations in turns,
each in processes of its own.
stdout: the lines of benchmark_model. stderr: what ran, a table sorted by latency, what was not quiet."""


class _Benchmark:
    """Follows :class:`evaltools.task_kind.RequestKind`."""

    name = command = "benchmark"
    groups: Mapping[str, Sequence[Parameter]] = GROUPS
    parameters: Mapping[str, Parameter] = MappingProxyType(
        {parameter.name: parameter for group in GROUPS.values() for parameter in group}
    )
    modules_on_devices: Sequence[str] = ("evaltools.benchmark.run", "scipy.special")

    def moved(self, task: str, take: Callable[[Path], str]) -> str:  # noqa: ARG002
        """It is in no file of its own."""
        return task

    def files_beside(self) -> Sequence[Path]:
        """Nothing."""
        return ()


KIND: Final = _Benchmark()


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    refuse_native_flags(arguments)
    flags = parse_flags("benchmark", DESCRIPTION, f"exit codes:\n{EXIT_CODES}", GROUPS, arguments)
    require(flags)
    request = read_request(flags, ["evaltools", "benchmark", *arguments])
    from evaltools.cli.benchmark.run import benchmark

    return benchmark(request)


def require(flags: GivenFlags) -> None:
    """Raise :class:`UsageError` where there is no model."""
    if not any(flags.texts("graph")):
        raise UsageError("Please specify the name of your TF Lite input file with --graph")


def read_request(
    flags: GivenFlags, command: Sequence[str], folder: Path | None = None, native_tool: bool = False
) -> Request:
    """What a command line asks for; raises :class:`UsageError` for flags that are wrong.

    Flags of configurations stay among the options, for those that a list states anew are told of; what becomes of them
    are the configurations. ``native_tool``: all options of a list are its.
    """
    options = flags.options(leave_out=("config",))
    own = flags.among(CONFIGURATION_PARAMETERS)
    text = options.text("perf_options_list")
    found = option_configurations(text, own, ALL_OF_NATIVE if native_tool else ALL_HERE)
    found += sweep_configurations(flags.texts("sweep"), own)
    folder = folder or Path.cwd()
    named = configurations_of_files_and_texts(flags, folder=folder)
    if not found and (own or not named):
        found = [Configuration.from_flags(TEST_NAME, own)]
    found += named
    unread = unread_flags(text, own)
    if unread:
        raise UsageError(f"--{unread[0]} has no effect on any option of --perf_options_list={text}; leave it out")
    return Request(KIND.name, options, None, tuple(found), folder, command=tuple(command))


def refuse_native_flags(arguments: Sequence[str]) -> None:
    """Raise :class:`UsageError` for flags of the native tool that have no meaning here."""
    for word in arguments:
        name = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.startswith("--") and name in benchmark_flags.REFUSED:
            raise UsageError(f"--{name} is not supported: {benchmark_flags.REFUSED[name]}")
