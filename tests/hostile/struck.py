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
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import psutil

from evaltools.cli.main import main
from evaltools.engine.preparation import InOtherProcess
from evaltools.engine.run import Turn, Workers
from evaltools.runtime.process import server

_MOMENT: Final = 3
_SECONDS_OF_PATIENCE: Final = 10.0
_LONGEST_S: Final = 230


def processes_by_role(decoders: Collection[int | None]) -> dict[str, list[int]]:
    """The processes of this run: each child of the server is a supervisor; below is native code or a decoder."""
    (server,) = psutil.Process().children()
    roles: dict[str, list[int]] = {"command": [os.getpid()], "server": [server.pid]}
    roles |= {"supervisor": [], "child": [], "decoder": []}
    for supervisor in server.children():
        below = [each.pid for each in supervisor.children()]
        if set(below) & set(decoders):
            roles["decoder"] += below
        else:
            roles["supervisor"].append(supervisor.pid)
            roles["child"] += below
    return roles


def _counted(function: Callable[..., Any], strike: Callable[[Any], None]) -> Callable[..., Any]:
    """The function, with a strike before the third of its calls."""
    calls = 0

    def called(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == _MOMENT:
            strike(arguments[0])
        return function(*arguments)

    return called


def _run(sent: str, role: str, command: list[str]) -> int:
    def strike(runs: Any) -> None:
        makers = [worker.maker for worker in runs.workers] if isinstance(runs, Workers) else []
        decoders = [maker.process_id for maker in makers if isinstance(maker, InOtherProcess)]
        process_id = processes_by_role(decoders)[role][-1]
        print(f"{sent} was sent to the {role}", file=sys.stderr, flush=True)
        os.kill(process_id, signal.Signals[sent])

    faulthandler.register(signal.SIGALRM, chain=True)  # without a thread of its own, unlike dump_traceback_later()
    signal.alarm(_LONGEST_S)
    server.SECONDS_TO_START = _SECONDS_OF_PATIENCE  # type: ignore[misc]
    rounds: Any = importlib.import_module("evaltools.benchmark.fresh_process")
    turns = Workers.turns

    def with_a_strike(workers: Workers, interrupted: Sequence[int]) -> Iterator[Turn]:
        for number, turn in enumerate(turns(workers, interrupted), 2):
            if number == _MOMENT:
                strike(workers)
            yield turn

    Workers.turns = with_a_strike  # type: ignore[assignment]
    rounds._require_success = _counted(rounds._require_success, strike)
    return main(command)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2], sys.argv[3:]))
