"""The work of a device: what it is given, what it gave, and waiting until the device is cool."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, field

from evaltools.device.errors import CommandFailed
from evaltools.result.device import DeviceConditions, DeviceWork, hottest
from evaltools.text import printable

RUN: Final = "run"
_BETWEEN_LOOKS_S: Final = 5.0
_LONGEST_S: Final = 600.0


class SentFolder(Struct, frozen=True):
    """A folder of which ``files`` are sent; ``names`` is the list of all (:func:`names_in`), empty if not needed."""

    folder: Path
    files: Sequence[Path]
    names: bytes = b""


class Work(Struct, frozen=True):
    """What a device is to do.

    ``request`` is the request as JSON, for programs that take one. ``files`` are single files with their paths on the
    device, ``folders`` are by their names in the request. ``results`` are the files to fetch from the program's working
    directory. ``kept`` is a folder on the device that the
    program finds as :data:`RUN` in its working directory; it stays there, so that what is in it
    is not lost with an attempt.
    """

    files: Mapping[Path, str]
    request: bytes = b""
    folders: Mapping[str, SentFolder] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    kept: str = ""


class SentFiles(Struct, frozen=True):
    """Where files are on the device: by the name of a folder its list of names, if any, and its archives.

    ``request`` is the file with that, empty where there is none; ``kept`` is that of the work.
    """

    folders: Mapping[str, Sequence[str]]
    request: str = ""
    kept: str = ""


class Program(Protocol):
    """A program that does the work on a device."""

    def command(self, sent: SentFiles, taskset: str) -> str:
        """The shell command, which runs in a folder of its own; ``taskset`` is a mask of CPUs, or empty."""


class WorkDone(Struct, frozen=True):
    """Finished work: its facts, exit code, output, and the folder with its results."""

    work: DeviceWork
    code: int
    out: str
    err: str
    folder: Path


class StderrLines:
    """Gives ``on_line`` each line of a command's stderr, which comes in pieces, once the line is whole."""

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        self._on_line = on_line
        self._rest = b""

    def __call__(self, _out: bytes, err: bytes) -> None:
        """Take the next piece of output."""
        *lines, self._rest = (self._rest + err).split(b"\n")
        for line in lines:
            self._on_line(line)


def cool_down(
    look: Callable[[], DeviceConditions],
    serial: str,
    limit_celsius: float,
    stop: threading.Event,
    timeout_s: float = _LONGEST_S,
    between_looks_s: float = _BETWEEN_LOOKS_S,
    report: Callable[[str], None] = lambda _line: None,
) -> tuple[DeviceConditions, float]:
    """Wait until no temperature that ``look`` finds is above the limit.

    Returns the conditions then, and the seconds waited.

    It goes on after ``timeout_s`` seconds even if the device is too warm. ``report`` gets a line when the waiting
    begins, and one when it goes on too warm. Raises :class:`CommandFailed` where the device states no temperature.
    """
    started = time.monotonic()
    is_announced = False
    while True:
        conditions = look()
        temperature, waited = hottest(conditions), time.monotonic() - started
        if temperature is None:
            raise CommandFailed(
                f"{serial}: it states no temperature, so --cool_down cannot be kept; leave the flag out", serial
            )
        if temperature <= limit_celsius:
            return conditions, waited
        sensors = (name for name, degrees in conditions.temperatures.items() if degrees == temperature)
        warm = f"{temperature:.1f} C (sensor {printable(next(sensors, 'battery'))})"
        if waited >= timeout_s:
            report(
                f"{serial}: warning: still {warm} after {timeout_s:g} s of waiting for {limit_celsius:g} C; it goes on "
                "all the same, so its figures may be those of a throttled device. Raise --cool_down"
            )
            return conditions, waited
        if not is_announced:
            report(f"{serial}: {warm}, waiting until all are at most {limit_celsius:g} C, for up to {timeout_s:g} s")
            is_announced = True
        if stop.wait(between_looks_s):
            return conditions, waited
