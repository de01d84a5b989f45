"""``evaltools run``: a task of your own, with the options that its function declares."""

from __future__ import annotations

from evaltools.cli.evaluate import command
from evaltools.errors import UsageError

_USAGE = """\
usage: evaltools run FILE.py:NAME MODEL.tflite --option=value ...

A task of your own. NAME is a function with @evaltools.task in FILE.py; its parameters are the options. An installed
task needs its name alone. evaltools run FILE.py:NAME --help lists all options."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    if arguments[:1] in (["--help"], ["-h"]):
        print(_USAGE)
        return 0
    named = [word for word in arguments[:2] if not word.startswith("-")]
    if not arguments or not named or arguments[0] != named[0]:
        raise UsageError("which task? Write evaltools run FILE.py:NAME MODEL.tflite --option=value ...")
    model = [f"--model_file={word}" for word in named[1:]]
    return command.run(named[0], [*model, *arguments[len(named) :]])
