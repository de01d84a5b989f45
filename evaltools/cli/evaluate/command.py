"""``evaltools TASK``: flags become a request, which is carried out; whatever the task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaltools.cli.shared.configurations import read_tests
from evaltools.cli.shared.flags import GivenFlags, parse_flags
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.exit_codes import EXIT_CODE_HELP
from evaltools.request import Request
from evaltools.tasks.shared.kind import EvaluationKind, evaluation_kind

_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "reference"})
"""Flags that become configurations and are no options of the task."""


def run(task: str, arguments: Sequence[str]) -> int:
    """Run the command of a task; returns the exit code."""
    request = parse(task, arguments)
    from evaltools.cli.evaluate.carry_out import carry_out

    return carry_out(request)


def parse(task: str, arguments: Sequence[str], folder: Path | None = None) -> Request:
    """What the command line of a task asks for; relative paths are meant from ``folder``, None: from here.

    Raises :class:`UsageError` for flags that are wrong.
    """
    kind = evaluation_kind(task)
    words = with_model_flag(arguments)
    flags = parse_flags(
        f"{kind.command} MODEL.tflite", kind.description, f"exit codes:\n{EXIT_CODE_HELP}", kind.groups, words
    )
    return read_request(kind, flags, ("evaltools", *kind.command.split(" ", 1), *arguments), folder)


def with_model_flag(words: Sequence[str]) -> list[str]:
    """Words in which the model may stand first.

    >>> with_model_flag(["m.tflite", "--values=v.txt"])
    ['--model_file=m.tflite', '--values=v.txt']
    """
    is_model_first = bool(words) and not words[0].startswith("-")
    return [f"--model_file={words[0]}", *words[1:]] if is_model_first else list(words)


def read_request(
    kind: EvaluationKind,
    flags: GivenFlags,
    command: Sequence[str],
    folder: Path | None = None,
    native_tool: bool = False,
) -> Request:
    """What a command line asks for; ``native_tool``: of that. Raises :class:`UsageError` for flags that are wrong."""
    folder = folder or Path.cwd()
    flags.require(kind.command)
    options = kind.with_stated_paths(flags.options(leave_out=_OF_CONFIGURATIONS))
    text = flags.text("reference") if "reference" in flags else None
    tests = read_tests(flags, options.text("compat") == "native", folder)
    reference = kind.reference(options, text, native_tool)
    return Request(kind.name, options, reference, tuple(tests), folder, command=tuple(command))
