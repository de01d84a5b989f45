"""``evaltools device``: phones and boards over adb; and ``evaltools device run TASK``, with the same result as here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import complain, say_wrapped
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK, USAGE
from evaltools.parameter import did_you_mean
from evaltools.request import Request

ACTIONS: Final = {
    "list": ("evaltools.cli.device.list", "Which devices can be used, what they are, what to do for the others"),
    "run": ("", "Run a task, or a benchmark, on devices"),
    "ios-params": ("evaltools.cli.device.ios_params", "The flags of a benchmark as a file for TensorFlow's app on iOS"),
    "clean": ("evaltools.cli.device.clean", "Delete what runs have kept on devices"),
}
_HELP: Final = ("-h", "--help", "--help=all", "help")


def run(arguments: list[str]) -> int:
    """Run one action; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the action of evaltools device\n{_help_text()}")
        return USAGE
    name, rest = arguments[0], arguments[1:]
    if name in _HELP:
        return OK if say_wrapped(_help_text()) else NOT_WRITTEN
    if name not in ACTIONS:
        hint, known = did_you_mean(name, ACTIONS), ", ".join(ACTIONS)
        raise UsageError(f"{name!r} is not an action of evaltools device; give one of {known} first.{hint}")
    if name == "run":
        return run_task(rest)
    act: Callable[[list[str]], int] = importlib.import_module(ACTIONS[name][0]).run
    return act(rest)


def run_task(arguments: list[str]) -> int:
    """Run one task on devices; returns the exit code."""
    from evaltools.commands.device_run import parse

    if not arguments:
        complain(f"evaltools: missing: the task of evaltools device run\n{_help_text_of_run()}")
        return USAGE
    if arguments[0] in _HELP:
        return OK if say_wrapped(_help_text_of_run()) else NOT_WRITTEN
    return carry_out_on_devices(parse(arguments[0], arguments[1:]))


def carry_out_on_devices(request: Request) -> int:
    """Run the task of a request on its devices; returns the exit code."""
    from evaltools.benchmark.command import COMMAND
    from evaltools.device.flags import read_device_flags
    from evaltools.runs.stored import seen_from

    request = seen_from(request, Path.cwd())
    assert request.devices is not None
    flags = read_device_flags(request.devices)
    if request.task == COMMAND.name:
        from evaltools.cli.device.benchmark import benchmark_on_devices

        return benchmark_on_devices(request, flags)
    if flags.program == "native":
        from evaltools.cli.device.native import evaluate_natively_on_devices

        return evaluate_natively_on_devices(request, flags)
    from evaltools.cli.device.evaluation import evaluate_on_devices

    return evaluate_on_devices(request, flags)


def _help_text() -> str:
    return (
        "usage: evaltools device ACTION --flag=value ...\n\n"
        "Phones and boards over adb.\n\n"
        f"actions:\n{_listed({name: summary for name, (_, summary) in ACTIONS.items()}, max(map(len, ACTIONS)))}\n\n"
        "evaltools device ACTION --help lists the flags of an action."
    )


def _help_text_of_run() -> str:
    from evaltools.benchmark.command import COMMAND
    from evaltools.commands.device_run import tasks_on_devices
    from evaltools.commands.names import COMMANDS

    tasks = tasks_on_devices() | {COMMAND.words: COMMANDS[COMMAND.words].summary}
    return (
        "usage: evaltools device run TASK --flag=value ...\n\n"
        "A task on phones and boards, with the same result as here.\n\n"
        f"tasks:\n{_listed(tasks, 14)}\n\n"
        "evaltools device run TASK --help lists the flags of a task and those about devices."
    )


def _listed(summaries: Mapping[str, str], width: int) -> str:
    return "\n".join(f"  {name:<{width}}  {summary}" for name, summary in summaries.items())
