"""``evaltools suite``: many models in many configurations."""

from __future__ import annotations

from typing import Final

from evaltools.exit_codes import OF_EVALUATIONS, in_words
from evaltools.request.flags import parse_flags
from evaltools.suite.command import COMMAND, request_of_flags

DESCRIPTION: Final = """\
Every model in every configuration: each job with each model is a run of its own, in a process and a folder of its own,
so that one that crashes, hangs or cannot be read costs no other. Jobs are diff, any other task, and benchmark.
stdout: one table. stderr: progress."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags("suite FOLDER|suite.toml", DESCRIPTION, in_words(OF_EVALUATIONS), COMMAND.groups, arguments)
    request = request_of_flags(flags, ("evaltools", "suite", *arguments))
    from evaltools.cli.suite.run import suite

    return suite(request)
