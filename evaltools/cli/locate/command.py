"""``evaltools locate``: which operator makes the difference between a delegate and the CPU, and why."""

from __future__ import annotations

from typing import Final

from evaltools.exit_codes import LOCATE_EXIT_CODE_HELP
from evaltools.locate.kind import KIND, request_of_flags
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Which operator makes the difference between a delegate and the CPU: every operator alone on the CPU's tensors, the
whole model, and what confirms or clears a suspect. What small differences add up to names no culprit.
The model is given as the first word or as --model_file. stdout: the answer. stderr: progress, the operators."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    exit_codes = f"exit codes:\n{LOCATE_EXIT_CODE_HELP}"
    flags = parse_flags("locate MODEL.tflite", DESCRIPTION, exit_codes, KIND.groups, arguments)
    request = request_of_flags(flags, ("evaltools", "locate", *arguments))
    from evaltools.cli.locate.run import locate_and_print
    from evaltools.runtime.process.server import start_server

    if request.devices is None:
        start_server()
    return locate_and_print(request)
