"""The processes that evaltools started from this one."""

from __future__ import annotations

import time

import psutil

_SECONDS: float = 30.0


def servers() -> list[psutil.Process]:
    """Those that fork children."""
    return [each for each in psutil.Process().children() if "evaltools.runtime.process" in line_of(each)]


def supervisors() -> set[int]:
    """The processes above children: one for each child that has not ended."""
    return {below.pid for server in servers() for below in server.children() if line_of(below)}


def children_of(supervisor: int) -> list[int]:
    """The child of a supervisor, once it is there."""
    deadline = time.monotonic() + _SECONDS
    while not (found := [each.pid for each in psutil.Process(supervisor).children()]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def left_beside(others: set[int]) -> set[int]:
    """The supervisors that are still there after a while, beside others."""
    deadline = time.monotonic() + _SECONDS
    while (found := supervisors() - others) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def line_of(process: psutil.Process) -> str:
    """The command of a process, empty where it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
