"""Runs a command and sends a signal to one of its processes: its arguments are SIGNAL ROLE and the command's words.

The signal is sent once, in the middle: before the third turn of a pass, or after the second warm-up of a benchmark.
A run without an end shows where it waits.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

import psutil

from evaltools.cli.main import main
from evaltools.engine.run import _Pass
from evaltools.runtime.process import child

_MOMENT: Final = 3
_SECONDS_OF_PATIENCE: Final = 10.0
_LONGEST_S: Final = 230


def processes_by_role() -> dict[str, list[int]]:
    """The processes of this run: a warden leads a session of its own, the child below it has native code."""
    command = psutil.Process()
    roles: dict[str, list[int]] = {"command": [command.pid], "server": [], "warden": [], "child": [], "decoder": []}
    for server in (each for each in command.children() if "forkserver" in " ".join(each.cmdline())):
        roles["server"].append(server.pid)
        for each in server.children():
            is_warden = os.getsid(each.pid) == each.pid
            roles["warden" if is_warden else "decoder"].append(each.pid)
            roles["child"] += [below.pid for below in each.children()] if is_warden else []
    return roles


def _counted(function: Callable[..., Any], strike: Callable[[], None]) -> Callable[..., Any]:
    """The function, with a strike before the third of its calls."""
    calls = 0

    def called(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == _MOMENT:
            strike()
        return function(*arguments)

    return called


def _run(sent: str, role: str, command: list[str]) -> int:
    def strike() -> None:
        process_id = processes_by_role()[role][-1]
        print(f"{sent} was sent to the {role}", file=sys.stderr, flush=True)
        os.kill(process_id, signal.Signals[sent])

    faulthandler.dump_traceback_later(_LONGEST_S, exit=True)
    child._SECONDS_TO_START = child._SECONDS_TO_TELL = _SECONDS_OF_PATIENCE  # type: ignore[misc]
    rounds: Any = importlib.import_module("evaltools.benchmark.fresh_process")
    _Pass._next_result = _counted(_Pass._next_result, strike)  # type: ignore[method-assign]
    rounds._require_success = _counted(rounds._require_success, strike)
    return main(command)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2], sys.argv[3:]))
