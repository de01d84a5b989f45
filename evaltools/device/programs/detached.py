"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time.

All processes of a run carry the variable ``EVALTOOLS_RUN`` with its folder, by which those are found that have left the
run's session. Only one that neither stays in the session nor keeps its environment is lost sight of.
"""

from __future__ import annotations

import math
import posixpath
import shlex
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.answer import Answer
from evaltools.device.adb.errors import CommandFailed, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.adb.patience import patiently, rest, stop_if_asked
from evaltools.device.programs.scripts import end_script, look_script, start_script

WORK_FOLDER: Final = "/data/local/tmp"
ABANDONED_AFTER_S: Final = 900.0
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_PATIENCE_AT_STOP_S: Final = 10.0
_LONGEST_TICK_S: Final = 60


@dataclass(frozen=True)
class DetachedRun:
    """A command on a device: ``folder`` there holds its pid, exit code, stdout and stderr."""

    serial: str
    folder: str


@dataclass(frozen=True)
class Progress:
    """What came since the last look: ``code`` is None while it runs; ``is_gone``: it ended without leaving a code.

    ``is_abandoned``: it ended itself, because nobody looked.
    """

    out: bytes
    err: bytes
    code: int | None
    is_gone: bool
    is_abandoned: bool = False


def start(
    adb: Adb,
    serial: str,
    command: str,
    parent: str = WORK_FOLDER,
    name: str = "",
    abandoned_after_s: float = ABANDONED_AFTER_S,
) -> DetachedRun:
    """Start a command in a session of its own, in a new folder ``name`` below ``parent``, which is its work folder.

    To start again under the same name does nothing, so that a start whose answer was lost can be repeated; one that
    was cut in the middle is completed. A run that nobody looks at for ``abandoned_after_s`` seconds (and up to a tenth
    more) ends itself with all its processes; its folder stays. Raises :class:`CommandFailed` where the folder cannot
    be made or the device has no ``setsid``. Devices of before Android 7 may take 2000 bytes of ``command`` and no more.
    """
    folder = posixpath.join(parent, name or f"evaltools-{uuid.uuid4().hex[:12]}")
    tick_s = min(_LONGEST_TICK_S, max(1, int(abandoned_after_s / 10)))
    ticks = max(1, math.ceil(abandoned_after_s / tick_s))
    answer = adb.shell(serial, start_script(folder, command, tick_s, ticks))
    if answer.code != 0:
        raise CommandFailed(
            f"{serial}: nothing can be started in {folder}{answer.quote()}; it needs a folder that can be written, "
            "space there, and the program setsid, which every Android from 6 on has",
            serial,
        )
    return DetachedRun(serial, folder)


def look(adb: Adb, run: DetachedRun, out_offset: int = 0, err_offset: int = 0) -> Progress:
    """What the command printed behind these offsets (bytes), and whether it has ended; it is not abandoned then."""
    mark = f"evaltools-{uuid.uuid4().hex}"
    answer = adb.shell(run.serial, look_script(run.folder, out_offset, err_offset, mark))
    parts = answer.out.split(mark.encode())
    if answer.code != 0 or len(parts) != 3:
        raise CommandFailed(
            f"{run.serial}: {run.folder} is gone or cannot be read{answer.quote()}; run it again", run.serial
        )
    out, err, end = parts
    alive, abandoned, *code = end.split()
    is_gone = not code and alive == b"0"
    return Progress(out, err, int(code[0]) if code else None, is_gone, is_gone and abandoned == b"1")


def wait(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] | None = None,
    poll_s: float = _POLL_S,
    patience_s: float = _PATIENCE_S,
    stop: threading.Event | None = None,
) -> Answer:
    """Wait for the end; ``on_output`` gets what is new on stdout and stderr.

    A device that is away is waited for ``patience_s`` seconds at a time. Raises :class:`DeviceTimeout` after
    ``timeout_s`` seconds and :class:`DeviceStopped` where ``stop`` is set, when the command and its children have been
    ended, :class:`CommandFailed` where the command vanished without an exit code (memory or space ran out, the device
    restarted, or nobody looked at it), and the error of a device that stayed away.
    """
    try:
        return _watch(adb, run, timeout_s, on_output, poll_s, patience_s, stop)
    except DeviceStopped as stopped:
        try:
            patiently(adb, run.serial, partial(end, adb, run), min(patience_s, _PATIENCE_AT_STOP_S))
        except DeviceError as error:
            raise DeviceStopped(
                f"{stopped}. The command in {run.folder} could not be ended: {error}; it ends itself when nobody "
                "looks at it any more",
                run.serial,
            ) from error
        raise


def _watch(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] | None,
    poll_s: float,
    patience_s: float,
    stop: threading.Event | None,
) -> Answer:
    """As :func:`wait`, except that a stop leaves the command running."""
    limit = time.monotonic() + timeout_s
    out, err = bytearray(), bytearray()
    while True:
        is_late = time.monotonic() > limit
        progress = patiently(adb, run.serial, partial(look, adb, run, len(out), len(err)), patience_s, stop)
        out += progress.out
        err += progress.err
        if on_output is not None and (progress.out or progress.err):
            on_output(progress.out, progress.err)
        if progress.code is not None:
            return Answer(progress.code, bytes(out), bytes(err))
        if progress.is_gone:
            patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise _why_gone(run, progress, Answer(0, bytes(out), bytes(err)))
        if is_late:
            patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise DeviceTimeout(
                f"{run.serial}: the command in {run.folder} did not end within {timeout_s:g} s and was ended"
                f"{Answer(0, bytes(out), bytes(err)).quote()}; allow more time",
                run.serial,
            )
        rest(max(0.0, min(poll_s, limit - time.monotonic())), stop)
        stop_if_asked(run.serial, stop)


def _why_gone(run: DetachedRun, progress: Progress, printed: Answer) -> CommandFailed:
    if progress.is_abandoned:
        return CommandFailed(
            f"{run.serial}: the command in {run.folder} ended itself, because nobody had looked at it for its time; "
            "run it again",
            run.serial,
        )
    return CommandFailed(
        f"{run.serial}: the command in {run.folder} vanished without an exit code{printed.quote()}; memory or space "
        "ran out, or the device restarted: see adb logcat and df, then run it again",
        run.serial,
    )


def end(adb: Adb, run: DetachedRun) -> None:
    """End the command and its children; nothing where they have ended. Raises :class:`CommandFailed` if they stay."""
    answer = adb.shell(run.serial, end_script(run.folder))
    if answer.code != 0:
        raise CommandFailed(
            f"{run.serial}: the command in {run.folder} cannot be ended{answer.quote()}; restart the device", run.serial
        )


def remove(adb: Adb, run: DetachedRun) -> None:
    """End the command if it still runs, and delete its folder."""
    end(adb, run)
    adb.shell(run.serial, f"rm -rf {shlex.quote(run.folder)}")
