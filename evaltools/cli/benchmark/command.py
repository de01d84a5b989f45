"""``evaltools benchmark``: how fast a model is with each configuration, and what it needs."""

from __future__ import annotations

from typing import Final

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.kind import GROUPS, request_of_flags
from evaltools.request.flags import parse_flags

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
stdout: the lines of benchmark_model, of a single configuration. stderr: what ran, a table sorted by latency, what was
not quiet."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    benchmark_flags.refuse_native_flags(arguments)
    flags = parse_flags("benchmark MODEL.tflite", DESCRIPTION, f"exit codes:\n{EXIT_CODES}", GROUPS, arguments)
    request = request_of_flags(flags, ["evaltools", "benchmark", *arguments])
    from evaltools.cli.benchmark.run import benchmark

    return benchmark(request)
