"""``evaltools run``: a task of your own, with the options that its function declares."""

from __future__ import annotations

from evaltools.cli.evaluate import command
from evaltools.errors import UsageError

_USAGE = """\
usage: evaltools run FILE.py:NAME|FILE.yaml MODEL.tflite --option=value ...

A task of your own. NAME is a function with @evaltools.task in FILE.py; its parameters are the options. FILE.yaml states
a task without code. An installed task needs its name alone. evaltools run FILE.py:NAME --help lists all options."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    if arguments[:1] in (["--help"], ["--help=all"], ["-h"]):
        print(_USAGE)
        return 0
    if not arguments or arguments[0].startswith("-"):
        raise UsageError("which task? Write evaltools run FILE.py:NAME MODEL.tflite --option=value ..., or FILE.yaml")
    return command.run(arguments[0], arguments[1:])
