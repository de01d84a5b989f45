"""The words behind ``evaltools TASK``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltools.exit_codes import EXIT_CODE_HELP
from evaltools.request import Request
from evaltools.request.flags import GivenFlags, parse_flags
from evaltools.tasks.shared.declared import DeclaredTask, declared_task


def parse(task: str, arguments: Sequence[str], folder: Path | None = None) -> Request:
    """The request that the command line of a task makes.

    Relative paths start at ``folder``, by default at the working directory.

    Raises :class:`UsageError` for flags that are wrong.
    """
    kind = declared_task(task)
    return kind.request_of_flags(flags_of_words(kind, arguments), command_of(kind, arguments), folder)


def flags_of_words(kind: DeclaredTask, arguments: Sequence[str]) -> GivenFlags:
    """The flags of a task's command; raises :class:`UsageError` for those that are wrong."""
    usage, exit_codes = f"{kind.command} MODEL.tflite", f"exit codes:\n{EXIT_CODE_HELP}"
    return parse_flags(usage, kind.description, exit_codes, kind.groups, arguments)


def command_of(kind: DeclaredTask, arguments: Sequence[str]) -> tuple[str, ...]:
    """The whole command line, as results record it."""
    return ("evaltools", *kind.command.split(" ", 1), *arguments)
