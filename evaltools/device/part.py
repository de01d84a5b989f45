"""A part of a run on a device: sends its files, runs the program, fetches the results, and leaves nothing behind."""

from __future__ import annotations

import posixpath
import shlex
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

from msgspec import Struct, field

from evaltools.device import detached
from evaltools.device.adb import patiently
from evaltools.device.detached import DetachedRun
from evaltools.device.errors import CommandFailed, DeviceError, FileMissing
from evaltools.device.facts import facts_that_change
from evaltools.device.flags import DeviceFlags
from evaltools.device.process import Answer
from evaltools.device.store import ARCHIVE, RUNS, DeviceStore, chunks, write_archive
from evaltools.device.transfer import pull
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceConditions, DevicePart, hottest
from evaltools.text import printable

Found = TypeVar("Found")

_LONGEST_COMMAND: Final = 30_000
"""Bytes of a command, in the quotes that it is sent in; what starts it comes on top."""
_BETWEEN_LOOKS_S: Final = 5.0


class PictureFolder(Struct, frozen=True):
    """A folder of which the ``chosen`` files are sent.

    ``manifest`` is a file that names all, None where none is needed.
    """

    folder: Path
    chosen: tuple[Path, ...]
    manifest: Path | None = None


class PartWork(Struct, frozen=True):
    """The work of one part: the ``index``-th of ``count``, with ``examples`` examples.

    ``request`` is the request as JSON, for programs that take one. ``files`` are single files with their paths on the
    device. ``pictures`` are folders of which some files are sent, and ``folders`` are sent whole; both are by their
    names in the request. ``results`` are the files to fetch from the program's working directory. ``records_only``: of
    an evaluation the records count alone.
    """

    index: int
    count: int
    examples: int
    files: Mapping[Path, str]
    request: bytes = b""
    pictures: Mapping[str, PictureFolder] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    records_only: bool = False


class SentFiles(Struct, frozen=True):
    """Where the files of a part are on the device: manifests and archives by the names of the folders in them.

    ``request`` is the file with that, empty where there is none.
    """

    manifests: Mapping[str, str]
    archives: Mapping[str, tuple[str, ...]]
    request: str = ""


class Program(Protocol):
    """A program that does the work of a part on a device."""

    def command(self, work: PartWork, sent: SentFiles, taskset: str) -> str:
        """The shell command for a part, which runs in a folder of its own; ``taskset`` is a mask of CPUs, or empty."""


class PartDone(Struct, frozen=True):
    """A finished part: its facts, exit code, output, and the folder with its results."""

    part: DevicePart
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


class PartDevice:
    """A device that does one part at a time; ``tell`` gets lines for the user about what it waits for.

    Attributes:
        store: the files on the device
    """

    def __init__(
        self,
        store: DeviceStore,
        flags: DeviceFlags,
        stop: threading.Event,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.store = store
        self._flags = flags
        self._stop = stop
        self._tell = tell
        self._left: list[DetachedRun] | None = None

    def do(
        self,
        work: PartWork,
        program: Program,
        folder: Path,
        on_output: Callable[[bytes, bytes], None] = lambda _out, _err: None,
    ) -> PartDone:
        """Run a program; its results are put into ``folder``.

        Raises :class:`DeviceError` where the device did not finish.
        """

        def act(sent: SentFiles) -> Answer:
            adb, serial, flags = self.store.adb, self.store.serial, self._flags
            parent = posixpath.join(self.store.root, RUNS)
            name = f"{work.index}-of-{work.count}-{uuid.uuid4().hex[:16]}"
            run = DetachedRun(serial, posixpath.join(parent, name))
            command = self._in_short(program.command(work, sent, flags.taskset))
            assert self._left is not None
            self._left.append(run)
            self._patiently(partial(detached.start, adb, serial, command, parent, name, flags.ends_itself_after_s))
            answer = detached.wait(
                adb, run, flags.part_timeout_s, on_output, patience_s=flags.patience_s, stop=self._stop
            )
            for result in work.results:
                local = folder / result
                local.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileMissing):  # the exit code shows why the command did not write it
                    remote = posixpath.join(run.folder, result)
                    pull(adb, serial, remote, local, patience_s=flags.patience_s, stop=self._stop)
            return answer

        answer, part = self.run_part(work, act)
        return PartDone(part, answer.code, answer.text, answer.err.decode("utf-8", "replace"), folder)

    def run_part(self, work: PartWork, act: Callable[[SentFiles], Found]) -> tuple[Found, DevicePart]:
        """Wait until the device is cool, send the files, call ``act``.

        Returns its result, and the conditions before and after.

        If the device goes away after ``act``, the result still counts, and the conditions afterwards are not known.
        """
        self._patiently(self._remove_left)
        before, waited_s = self._begin()
        started_at, started = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        found = act(self._send(work))
        elapsed_s = round(time.monotonic() - started, 3)
        try:
            after = self._conditions()
        except DeviceError:
            after = DeviceConditions()
        self.clean_up()
        part = DevicePart(
            work.index,
            work.count,
            self.store.serial,
            work.examples,
            started_at,
            round(waited_s, 3),
            elapsed_s,
            before,
            after,
        )
        return found, part

    def clean_up(self) -> DeviceError | None:
        """End and delete what earlier parts left on the device. If that fails, the next part tries it again.

        Returns the error if something may still run or lie there, None if not.
        """
        try:
            if self._left:
                self._remove_left()
        except DeviceError as error:
            return error
        return None

    def _remove_left(self) -> None:
        """End and delete runs; at first those that earlier commands left on the device."""
        if self._left is None:
            self._left = [DetachedRun(self.store.serial, folder) for folder in self.store.runs()]
        for run in list(self._left):
            detached.remove(self.store.adb, run)
            self._left.remove(run)

    def _begin(self) -> tuple[DeviceConditions, float]:
        limit = self._flags.cool_down_c
        if limit is None:
            return self._conditions(), 0.0
        timeout_s = self._flags.cool_down_timeout_s
        return cool_down(self._conditions, self.store.serial, limit, timeout_s, self._stop, tell=self._tell)

    def _conditions(self) -> DeviceConditions:
        return conditions_of(self._patiently(partial(facts_that_change, self.store.adb, self.store.serial)))

    def _send(self, work: PartWork) -> SentFiles:
        """Send the files of a part."""
        for local, remote in work.files.items():
            self.store.put(local, remote)
        manifests, archives = {}, {}
        for name, pictures in work.pictures.items():
            if pictures.manifest is not None:
                manifests[name] = self.store.put(pictures.manifest)
            archives[name] = self._send_archives("pictures", pictures.folder, pictures.chosen)
        for name, folder in work.folders.items():
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            archives[name] = self._send_archives("files", folder, files)
        request = self._send_content("request.json", work.request) if work.request else ""
        return SentFiles(manifests, archives, request)

    def _send_archives(self, name: str, folder: Path, files: Sequence[Path]) -> tuple[str, ...]:
        paths = []
        for chunk in chunks(files):
            with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
                archive = Path(temporary, f"{name}{ARCHIVE}")
                write_archive(archive, folder, chunk)
                paths.append(self.store.put(archive))
        return tuple(paths)

    def _send_content(self, name: str, content: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, name)
            file.write_bytes(content)
            return self.store.put(file)

    def _in_short(self, command: str) -> str:
        """The command itself; where it is too long for adb's command line, one that runs a file with it."""
        if len(shlex.quote(shlex.quote(command)).encode()) <= _LONGEST_COMMAND:
            return command
        return f"exec sh {shlex.quote(self._send_content('command', command.encode()))}"

    def _patiently(self, act: Callable[[], Found]) -> Found:
        return patiently(self.store.adb, self.store.serial, act, self._flags.patience_s, self._stop)


def conditions_of(facts: DeviceFacts) -> DeviceConditions:
    """The facts about a device that change while it works."""
    return DeviceConditions(
        battery_level=facts.battery_level,
        battery_temperature=facts.battery_temperature,
        thermal_status=facts.thermal_status,
        temperatures=facts.temperatures or {},
        cpu_frequencies=facts.cpu_frequencies,
    )


def cool_down(
    look: Callable[[], DeviceConditions],
    serial: str,
    limit_celsius: float,
    timeout_s: float,
    stop: threading.Event,
    between_looks_s: float = _BETWEEN_LOOKS_S,
    tell: Callable[[str], None] = lambda _line: None,
) -> tuple[DeviceConditions, float]:
    """Wait until no temperature that ``look`` finds is above the limit.

    Returns the conditions then, and the seconds waited.

    It goes on after ``timeout_s`` seconds even if the device is too warm. ``tell`` gets a line when the waiting begins,
    and one when it goes on too warm. Raises :class:`CommandFailed` where the device states no temperature.
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
            tell(
                f"{serial}: warning: still {warm} after {timeout_s:g} s of waiting for {limit_celsius:g} C; it goes on "
                "all the same, so its figures may be those of a throttled device. Raise --cool_down_timeout or "
                "--cool_down"
            )
            return conditions, waited
        if not is_announced:
            tell(f"{serial}: {warm}, waiting until all are at most {limit_celsius:g} C, for up to {timeout_s:g} s")
            is_announced = True
        if stop.wait(between_looks_s):
            return conditions, waited
