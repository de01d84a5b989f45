"""The command ``evaltools``.

Every task is a command; any other command is one module here plus one line in ``COMMANDS``. Modules are imported when
their command runs, so that ``evaltools --help`` needs neither NumPy nor a runtime.
"""

from __future__ import annotations

import importlib
import io
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from evaltools.cli.shared.streams import complain, tell
from evaltools.errors import DEBUG, EvaltoolsError
from evaltools.exit_codes import EXIT_CODE_HELP, INTERRUPTED, NOT_WRITTEN, OK, USAGE
from evaltools.parameter import did_you_mean
from evaltools.task_kind import kind_names, kind_of, tree_kinds

_DEBUG: Final = "--debug"


class Command(NamedTuple):
    """The module of a command in this folder, and its summary."""

    module: str
    summary: str


COMMANDS: Final = {
    "benchmark": Command(
        "benchmark.command", "How fast: load, first run, steady state, memory, operators; many options in one run"
    ),
    "locate": Command("locate.command", "Which operator makes the difference, and why: cause, proof, smallest model"),
    "run": Command("evaluate.own_task", "A task of your own: run FILE.py:NAME MODEL.tflite --option=value ..."),
    "resume": Command("runs.resume", "Go on with an interrupted run, from the journal of its --run_dir"),
    "merge": Command("runs.merge", "One result from the shards of a run"),
    "gate": Command("judge.gate", "Are the limits in gates.toml kept? For CI: JUnit, Markdown, exit code"),
    "inspect": Command("look.inspect", "What kind of model is this, which delegates fit, what do they take of it"),
    "convert": Command("convert.command", "Ground truth for coco and imagenet from COCO, YOLO, VOC or ILSVRC files"),
    "baseline": Command("judge.baseline", "Keep what a release found, and hold later results against it"),
    "power": Command("judge.power", "How many pictures do I need to see a drop of accuracy"),
    "doctor": Command("look.doctor", "Which runtimes, delegates and tools work here, and what to do for the others"),
    "device": Command("device.command", "Phones and boards over adb: what they are; any task there"),
    "delegates": Command("look.delegates", "The delegates, their flags, and where each one runs"),
    "demo": Command("look.demo", "The sample pictures and models that come with evaltools"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if _DEBUG in arguments:
        arguments.remove(_DEBUG)
        os.environ[DEBUG] = "1"
    return exit_code_of(lambda: _dispatch(arguments), _interrupted(arguments))


def exit_code_of(act: Callable[[], int], when_interrupted: str) -> int:
    """Call ``act`` and return its exit code.

    Our errors are printed on stderr, and so is ``when_interrupted`` after Ctrl-C.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return act()
    except EvaltoolsError as error:
        if DEBUG in os.environ:
            traceback.print_exc()
        complain(f"evaltools: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        complain(f"evaltools: {when_interrupted}")
        return INTERRUPTED


def _interrupted(arguments: Sequence[str]) -> str:
    if arguments[:1] == ["convert"]:
        return "interrupted, so files may be missing; the same command again completes them"
    if arguments[:2] == ["device", "run"]:
        stated = [word.partition("=")[2] for word in arguments if word.startswith("--run_dir=")]
        ended = "interrupted, and ended on the devices, unless a line above says otherwise"
        if stated:
            return f"{ended}; evaltools resume {shlex.quote(stated[-1])} goes on"
        return f"{ended}; with --run_dir evaltools resume goes on"
    if arguments[:1] == ["device"]:
        return "interrupted before the devices had answered"
    if arguments[:1] == ["benchmark"]:
        return "interrupted before anything was measured"
    if arguments[:1] == ["inspect"]:
        return "interrupted before everything was found; --run=false leaves out what takes long"
    return "interrupted before there was a result; with --run_dir, evaltools resume goes on"


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        return _printed(_help_text()) or USAGE
    if arguments[0] in ("-h", "--help", "help"):
        return _printed(_help_text())
    if arguments[0] == "--version":
        return _printed(_version())
    name, rest = arguments[0], arguments[1:]
    task = task_of(name)
    if task is not None:
        from evaltools.cli.evaluate import command

        return command.run(task, rest)
    if name not in COMMANDS:
        complain(f"evaltools: {name!r} is no command.{did_you_mean(name, command_names())}\n{_help_text()}")
        return USAGE
    run: Callable[[list[str]], int] = importlib.import_module(f"evaltools.cli.{COMMANDS[name].module}").run
    return run(rest)


def task_of(command: str) -> str | None:
    """The task that a command evaluates, None for another command.

    >>> task_of("diff"), task_of("doctor")
    ('inference_diff', None)
    """
    if command in COMMANDS:
        return None
    named = (task for task in kind_names() if task.replace("_", "-") == command)
    return next(named, None) or task_aliases().get(command)


def task_aliases() -> dict[str, str]:
    """The tasks that have a shorter command, by that command; only tasks of evaltools itself may have one."""
    return {kind.alias: name for name, kind in tree_kinds().items() if kind.alias}


def command_names() -> list[str]:
    """All commands, tasks first."""
    return [*(name.replace("_", "-") for name in kind_names()), *task_aliases(), *COMMANDS]


def _printed(text: str) -> int:
    return OK if tell(text) else NOT_WRITTEN


def _help_text() -> str:
    summaries = dict(map(_summary, kind_names()))
    summaries |= {alias: f"Short for {kind_of(task).command}" for alias, task in task_aliases().items()}
    summaries |= {name: command.summary for name, command in COMMANDS.items()}
    width = max(map(len, summaries))
    commands = "\n".join(f"  {name:<{width}}  {summary}" for name, summary in summaries.items())
    return (
        "usage: evaltools COMMAND --flag=value ...\n\n"
        "Does a delegate do the same job as the CPU, how fast, and can you prove it?\n\n"
        f"commands:\n{commands}\n\n"
        "evaltools COMMAND --help lists the flags of a command; evaltools --version prints the version.\n"
        "--debug shows where an error comes from.\n\n"
        f"exit codes:\n{EXIT_CODE_HELP}"
    )


def _summary(task: str) -> tuple[str, str]:
    """The command of a task and its summary; an installed task may be broken, or have a name that is taken."""
    if task in COMMANDS or task in task_aliases():
        return f"run {task}", f"cannot be used: {task} is a command of evaltools; its package must give another name"
    try:
        kind = kind_of(task)
    except EvaltoolsError as error:
        return task, f"cannot be used: {error}"
    return kind.command, kind.summary


def _version() -> str:
    from importlib.metadata import version

    return f"evaltools {version('evaltools')}"


if __name__ == "__main__":
    sys.exit(main())
