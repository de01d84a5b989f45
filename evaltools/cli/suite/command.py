"""``evaltools suite``: many models in many configurations."""

from __future__ import annotations

from typing import Final

from evaltools.exit_codes import SUITE_EXIT_CODE_HELP
from evaltools.request.flags import parse_flags
from evaltools.suite.command import COMMAND, request_of_flags

DESCRIPTION: Final = """\
Every model in every configuration: each job with each model is a run of its own, in a process and a folder of its own,
so that one that crashes, hangs or cannot be read costs no other. Jobs are diff, any other task, and benchmark.
stdout: one table. stderr: progress."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    exit_codes = f"exit codes, of several the one that stands first:\n{SUITE_EXIT_CODE_HELP}"
    flags = parse_flags("suite FOLDER|suite.toml", DESCRIPTION, exit_codes, COMMAND.groups, arguments)
    request = request_of_flags(flags, ("evaltools", "suite", *arguments))
    from evaltools.cli.suite.run import suite

    return suite(request)
