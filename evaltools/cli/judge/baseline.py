"""``evaltools baseline``: keep what a release found, and hold later results against it."""

from __future__ import annotations

from itertools import takewhile
from typing import Final

from evaltools.cli.judge.flags import FILES
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, did_you_mean
from evaltools.request.flags import parse_flags
from evaltools.tasks.shared.options import MARGIN

DESCRIPTION: Final = """\
Keep what a result found in a small file, and hold later results against it.
  save RESULT.json    make the file; one that exists is not touched
  diff RESULT.json    what changed since, with the statistics of paired examples where they are the same
  update RESULT.json  show what changed, then replace the file
RESULT.json is what --output_file_path of an evaluation gives; --record_examples=true makes changes of Top-k testable.
stdout: what was found."""
PARAMETERS: Final = (
    Parameter(
        "name",
        "The baseline is baselines/NAME.json. Without it the name is that of the task and of the folder of the data, "
        "or of the model where there is no such folder.",
    ),
    Parameter(
        "baseline_file",
        "The file to keep, or to compare with, in the place of baselines/NAME.json.",
        role="output_file",
    ),
    MARGIN,
    Parameter(
        "limit",
        "A limit on what changed, as docs/gates.md has them: 'latency ratio <= 1.2', 'top1 drop <= 0.5 points', where "
        "drops and ratios are against the baseline, or 'agreement >= 99 %'. Can be given several times.",
        repeatable=True,
    ),
    *FILES,
)
ACTIONS: Final = ("save", "diff", "update")
EXIT_CODES: Final = """\
exit codes:
  0  saved, updated, or nothing became worse and every --limit is kept
  1  something became worse, or a --limit is broken
  2  a flag or a file is wrong
  3  a configuration of the baseline, or the figure of a --limit, was not measured
  5  a file could not be written
  6  too few examples to tell whether a --limit is kept
  4  every --limit is kept, but a process that ran a configuration crashed or hung"""


def run(arguments: list[str]) -> int:
    """Run one action; returns the exit code."""
    words = list(takewhile(lambda word: not word.startswith("-"), arguments))
    flags = None
    if len(words) == 2 or any(word.startswith("--help") for word in arguments):
        flags = parse_flags("baseline", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments[len(words) :])
    if flags is None or len(words) != 2:
        raise UsageError("give an action and a result first: evaltools baseline save|diff|update RESULT.json")
    action, result = words
    if action not in ACTIONS:
        hint = did_you_mean(action, ACTIONS)
        raise UsageError(f"{action!r} is no action of evaltools baseline; use one of {', '.join(ACTIONS)}.{hint}")
    from evaltools.cli.judge.baseline_run import act

    return act(action, result, flags)
