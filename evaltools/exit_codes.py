"""Exit codes of every command."""

from collections.abc import Collection
from typing import Final

OK: Final = 0
LIMIT_BROKEN: Final = 1
USAGE: Final = 2
NOT_MEASURED: Final = 3
EXAMPLES_FAILED: Final = 4
NOT_WRITTEN: Final = 5
INCONCLUSIVE: Final = 6
FAULT: Final = 70
INTERRUPTED: Final = 130
MEASURED: Final = (OK, LIMIT_BROKEN, NOT_MEASURED, EXAMPLES_FAILED)
"""Those of an evaluation that measured what it could."""
_WORST_FIRST: Final = (
    FAULT, INTERRUPTED, USAGE, NOT_WRITTEN, NOT_MEASURED, EXAMPLES_FAILED, LIMIT_BROKEN, INCONCLUSIVE, OK
)  # fmt: skip

EXIT_CODE_HELP: Final = """\
  0    everything asked for was measured
  1    a limit that was set is broken
  2    a flag, a file or a list is wrong; nothing was measured
  3    a configuration could not be measured here, its delegate took nothing, or its process died in run after run
  4    some examples failed, have no record, or gave NaN or infinite numbers; the figures are those of the others.
       Or the process of a configuration crashed or hung, also where a new one then gave every answer
  5    a result file or the journal of --run_dir could not be written
  6    too few examples to decide whether a limit is kept (evaltools gate)
  70   a fault of evaltools itself; --debug shows where, for a report
  130  interrupted; the figures are those of the examples finished until then"""
DEVICE_EXIT_CODE_HELP: Final = """\
  0    everything asked for was measured
  1    a limit that was set is broken
  2    a flag, a file or a list is wrong, or there are several devices and none is named; nothing was measured
  3    no device can be used, a device was lost for good, or a configuration could not be measured there
  4    some examples failed, or gave NaN or infinite numbers; the figures are those of the others
  5    a result file or the journal of --run_dir could not be written
  130  interrupted: what ran on devices is ended, and there are no figures; with --run_dir, evaltools resume goes on"""
DEVICE_BENCHMARK_EXIT_CODE_HELP: Final = """\
  0    everything asked for was measured
  2    a flag or a file is wrong, or there are several devices and none is named; nothing was measured
  3    no device can be used, a device was lost for good, or a configuration failed there
  4    runs of a configuration failed
  5    a file, or stdout, could not be written
  130  interrupted: what ran on devices is ended, and there are no figures"""
LOCATE_EXIT_CODE_HELP: Final = """\
  0    the search came to its end, whatever it found
  2    a flag or a file is wrong; nothing was run
  3    the delegate did not run, or the reference cannot run the model
  5    a file, or stdout, could not be written
  130  interrupted; with --run_dir, evaltools resume goes on"""
SUITE_EXIT_CODE_HELP: Final = """\
  130  interrupted; with --run_dir, evaltools resume goes on
  2    a flag, a file or a job is wrong; nothing was run
  5    a file, stdout or the folder of the runs could not be written
  3    something was not measured: a model that cannot be run, a configuration that is not there or took nothing
  4    some examples failed, or gave NaN or infinite numbers
  1    a limit in the command of a job is broken
  0    everything was measured"""


def worst_of(codes: Collection[int | None]) -> int:
    """The exit code of several runs: that of the run which says least of what was asked; None counts as 0.

    A code that is none of these is that of a process which ended otherwise, and nothing is known of its run.

    >>> worst_of([OK, LIMIT_BROKEN, EXAMPLES_FAILED]), worst_of([OK, INCONCLUSIVE]), worst_of([OK, -9]), worst_of([])
    (4, 6, 70, 0)
    """
    known = [OK if code is None else code if code in _WORST_FIRST else FAULT for code in codes]
    return min(known, key=_WORST_FIRST.index, default=OK)
