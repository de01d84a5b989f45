"""``evaltools benchmark``: how fast a model is with each configuration, and what it needs."""

from __future__ import annotations

from typing import Final

from evaltools.cli import benchmark_flags
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.shared.options import configurations

BEYOND_PARAMETERS: Final = (
    Parameter(
        "output_file_path",
        "string",
        "",
        "JSON file with every time, the conditions and the figures.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "rounds",
        "int32",
        0,
        "Measurements of each configuration, each from a cold start in a fresh process; configurations take turns. "
        "0: 1, or 3 where there are several configurations.",
    ),
    Parameter(
        "sweep",
        "string",
        "",
        'Values to combine, as in "num_threads=1,2,4 use_xnnpack=true,false". May be repeated.',
        repeatable=True,
        about="candidates",
    ),
    Parameter(
        "cpu_affinity",
        "string",
        "",
        'CPUs that the measured process may use: "0,2-3", or a mask as for taskset, 0xf0.',
        not_native=NotNative("--taskset binds native binaries"),
    ),
    Parameter(
        "op_profiling_runs",
        "int32",
        50,
        "Runs whose operators are timed, after the others.",
        only_with=("enable_op_profiling=true",),
        not_native=benchmark_flags.NO_OPERATORS,
    ),
    Parameter(
        "trace",
        "string",
        "",
        "File for a trace of everything, for ui.perfetto.dev or chrome://tracing.",
        role="output_file",
        about="result",
        not_native=NotNative("no single times are known"),
    ),
    Parameter(
        "accuracy",
        "string",
        "",
        "Result file of evaltools imagenet or coco: its accuracy stands beside the latency. May be repeated.",
        repeatable=True,
        role="input_file",
        about="result",
        only_with=("dry_run=false",),
    ),
    Parameter(
        "plot",
        "string",
        "",
        "PNG or SVG file: accuracy against latency and size, else latencies.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "run_timeout",
        "float",
        300.0,
        "Seconds after which opening the model, or a run that goes on beyond --max_secs, counts as hanging.",
        not_native=NotNative("--part_timeout limits it"),
    ),
)

GROUPS: Final = {
    "benchmark_model": benchmark_flags.PARAMETERS,
    "beyond benchmark_model": BEYOND_PARAMETERS,
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


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    refuse_native_flags(arguments)
    flags = parse_flags("benchmark", DESCRIPTION, f"exit codes:\n{EXIT_CODES}", GROUPS, arguments)
    require(flags)
    from evaltools.cli.benchmark_run import benchmark

    return benchmark(flags, ["evaltools", "benchmark", *arguments])


def require(flags: GivenFlags) -> None:
    """Raise :class:`UsageError` where there is no model."""
    if not any(flags.texts("graph")):
        raise UsageError("Please specify the name of your TF Lite input file with --graph")


def refuse_native_flags(arguments: list[str]) -> None:
    """Raise :class:`UsageError` for flags of the native tool that have no meaning here."""
    for word in arguments:
        name = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.startswith("--") and name in benchmark_flags.REFUSED:
            raise UsageError(f"--{name} is not supported: {benchmark_flags.REFUSED[name]}")
