"""Commands that go on when the link is cut: a session of their own on the device, looked at from time to time."""

from __future__ import annotations

import posixpath
import shlex
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from evaltools.device.adb import Adb
from evaltools.device.answer import Answer
from evaltools.device.errors import MAY_PASS, CommandFailed, DeviceTimeout

Found = TypeVar("Found")

WORK_FOLDER: Final = "/data/local/tmp"
_BOOT: Final = "/proc/sys/kernel/random/boot_id"
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 60.0
_BETWEEN_TRIES_S: Final = 1.0
_OUTER: Final = (
    "echo $$ > pid.part; mv pid.part pid; sh command > out 2> err < /dev/null; echo $? > code.part; mv code.part code"
)
_OWN: Final = f'[ -s pid ] && [ "$(cat boot)" = "$(cat {_BOOT})" ]'
"""True where the pid is one of this boot: after a restart it would be somebody else's."""


@dataclass(frozen=True)
class DetachedRun:
    """A command on a device: ``folder`` there holds its pid, exit code, stdout and stderr."""

    serial: str
    folder: str


@dataclass(frozen=True)
class Progress:
    """What came since the last look: ``code`` is None while it runs; ``is_gone``: it ended without leaving a code."""

    out: bytes
    err: bytes
    code: int | None
    is_gone: bool


def start(adb: Adb, serial: str, command: str, parent: str = WORK_FOLDER, name: str = "") -> DetachedRun:
    """Start a command in a session of its own, in a new folder ``name`` below ``parent``, which is its work folder.

    To start again under the same name does nothing, so that a start whose answer was lost can be repeated. Raises
    :class:`CommandFailed` where the folder cannot be made or the device has no ``setsid``.
    """
    folder = posixpath.join(parent, name or f"evaltools-{uuid.uuid4().hex[:12]}")
    answer = adb.shell(
        serial,
        f"mkdir -p {shlex.quote(parent)} && if mkdir {shlex.quote(folder)} 2> /dev/null; then "
        f"cd {shlex.quote(folder)} && printf %s {shlex.quote(command)} > command && cat {_BOOT} > boot && "
        "for tool in '' toybox busybox; do if $tool setsid true 2> /dev/null; then "
        f"$tool setsid sh -c {shlex.quote(_OUTER)} > /dev/null 2>&1 < /dev/null & exit 0; fi; done; "
        f"rm -r {shlex.quote(folder)}; echo no setsid; exit 1; fi; test -d {shlex.quote(folder)}",
    )
    if answer.code != 0:
        raise CommandFailed(
            f"{serial}: nothing can be started in {folder}{answer.quote()}; it needs a folder that can be written "
            "and the program setsid, which every Android from 6 on has",
            serial,
        )
    return DetachedRun(serial, folder)


def look(adb: Adb, run: DetachedRun, out_offset: int = 0, err_offset: int = 0) -> Progress:
    """What the command printed behind these offsets (bytes), and whether it has ended."""
    mark = f"evaltools-{uuid.uuid4().hex}"
    cut = f"printf %s {mark}"
    answer = adb.shell(
        run.serial,
        f"cd {shlex.quote(run.folder)} || exit 1; alive=0; [ -s pid ] || alive=1; "
        f"if {_OWN}; then kill -0 $(cat pid) && alive=1; fi 2> /dev/null; code=$(cat code 2> /dev/null); "
        f"tail -c +{out_offset + 1} out 2> /dev/null; {cut}; tail -c +{err_offset + 1} err 2> /dev/null; {cut}; "
        "echo $alive $code",
    )
    parts = answer.out.split(mark.encode())
    if answer.code != 0 or len(parts) != 3:
        raise CommandFailed(
            f"{run.serial}: {run.folder} is gone or cannot be read{answer.quote()}; run it again", run.serial
        )
    out, err, end = parts
    alive, *code = end.split()
    return Progress(out, err, int(code[0]) if code else None, is_gone=not code and alive == b"0")


def wait(
    adb: Adb,
    run: DetachedRun,
    timeout_s: float,
    on_output: Callable[[bytes, bytes], None] | None = None,
    poll_s: float = _POLL_S,
    patience_s: float = _PATIENCE_S,
) -> Answer:
    """Wait for the end; ``on_output`` gets what is new on stdout and stderr.

    A device that is away is waited for ``patience_s`` seconds at a time. Raises :class:`DeviceTimeout` after
    ``timeout_s`` seconds, when the command and its children have been ended, :class:`CommandFailed` where the command
    vanished without an exit code (memory ran out, or the device restarted), and the error of a device that stayed away.
    """
    limit = time.monotonic() + timeout_s
    out, err = bytearray(), bytearray()
    while True:
        is_late = time.monotonic() > limit
        progress = _patiently(adb, run.serial, partial(look, adb, run, len(out), len(err)), patience_s)
        out += progress.out
        err += progress.err
        if on_output is not None and (progress.out or progress.err):
            on_output(progress.out, progress.err)
        if progress.code is not None:
            return Answer(progress.code, bytes(out), bytes(err))
        if progress.is_gone:
            last = Answer(0, bytes(out), bytes(err)).quote()
            raise CommandFailed(
                f"{run.serial}: the command in {run.folder} vanished without an exit code{last}; memory ran out, or "
                "the device restarted: see adb logcat, then run it again",
                run.serial,
            )
        if is_late:
            _patiently(adb, run.serial, partial(end, adb, run), patience_s)
            raise DeviceTimeout(
                f"{run.serial}: the command in {run.folder} did not end within {timeout_s:g} s and was ended; "
                "allow more time, or see what it printed there",
                run.serial,
            )
        time.sleep(max(0.0, min(poll_s, limit - time.monotonic())))


def end(adb: Adb, run: DetachedRun) -> None:
    """End the command and its children; nothing where they have ended. Raises :class:`CommandFailed` if they stay."""
    answer = adb.shell(
        run.serial,
        f"cd {shlex.quote(run.folder)} || exit 0; {{ {_OWN}; }} || exit 0; p=$(cat pid); "
        'case "$p" in 0|1|*[!0-9]*) exit 1;; esac; '
        "kill -9 -$p 2> /dev/null; for i in 1 2 3 4 5; do kill -0 -$p 2> /dev/null || exit 0; sleep 1; done; exit 1",
    )
    if answer.code != 0:
        raise CommandFailed(
            f"{run.serial}: the command in {run.folder} cannot be ended{answer.quote()}; restart it", run.serial
        )


def remove(adb: Adb, run: DetachedRun) -> None:
    """End the command if it still runs, and delete its folder."""
    end(adb, run)
    adb.shell(run.serial, f"rm -rf {shlex.quote(run.folder)}")


def _patiently(adb: Adb, serial: str, act: Callable[[], Found], patience_s: float) -> Found:
    """Do it again while the device is away, for ``patience_s`` seconds."""
    limit = time.monotonic() + patience_s
    while True:
        try:
            return act()
        except MAY_PASS:
            if time.monotonic() > limit:
                raise
        time.sleep(_BETWEEN_TRIES_S)
        adb.reconnect(serial)
