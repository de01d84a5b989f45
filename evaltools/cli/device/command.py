"""``evaltools device``: phones and boards over adb."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Final

from evaltools.cli.shared.streams import complain, tell
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK, USAGE
from evaltools.parameter import did_you_mean

ACTIONS: Final = {
    "list": ("evaltools.cli.device.list", "Which devices can be used, what they are, what to do for the others"),
    "run": ("evaltools.cli.device.run", "Run a task, or a benchmark, on devices"),
    "ios-params": ("evaltools.cli.device.ios_params", "The flags of a benchmark as a file for TensorFlow's app on iOS"),
    "clean": ("evaltools.cli.device.clean", "Delete what runs have kept on devices"),
}


def run(arguments: list[str]) -> int:
    """Run one action; returns the exit code."""
    if not arguments:
        complain(f"evaltools: missing: the action of evaltools device\n{_help_text()}")
        return USAGE
    name, rest = arguments[0], arguments[1:]
    if name in ("-h", "--help", "--help=all", "help"):
        return OK if tell(_help_text()) else NOT_WRITTEN
    if name not in ACTIONS:
        hint = did_you_mean(name, ACTIONS)
        raise UsageError(
            f"{name!r} is no action of evaltools device; give one of {', '.join(ACTIONS)} first.{hint} "
            "See evaltools device --help"
        )
    act: Callable[[list[str]], int] = importlib.import_module(ACTIONS[name][0]).run
    return act(rest)


def _help_text() -> str:
    width = max(map(len, ACTIONS))
    actions = "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in ACTIONS.items())
    return (
        "usage: evaltools device ACTION --flag=value ...\n\n"
        "Phones and boards over adb.\n\n"
        f"actions:\n{actions}\n\n"
        "evaltools device ACTION --help lists the flags of an action."
    )
