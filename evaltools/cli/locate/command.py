"""``evaltools locate``: which operator makes the difference between a delegate and the CPU, and why."""

from __future__ import annotations

from typing import Final

from evaltools.errors import UsageError
from evaltools.locate.options import GROUPS
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Which operator makes the difference between a delegate and the CPU: every operator alone on the CPU's tensors, the
whole model, and what confirms or clears a suspect. What small differences add up to names no culprit.
The model is given as the first word or as --model_file. stdout: the answer. stderr: progress, the operators."""
EXIT_CODES: Final = """\
exit codes:
  0    the search came to its end, whatever it found
  2    a flag or a file is wrong; nothing was run
  3    the delegate did not run, or the reference cannot run the model
  5    a file, or stdout, could not be written
  130  interrupted; with --run_dir the same command goes on"""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags("locate MODEL.tflite", DESCRIPTION, EXIT_CODES, GROUPS, arguments)
    if not flags.text("model_file"):
        raise UsageError("missing: the model. Give evaltools locate MODEL.tflite; see evaltools locate --help")
    from evaltools.cli.locate.run import locate_and_print

    return locate_and_print(flags, ["evaltools", "locate", *arguments])
