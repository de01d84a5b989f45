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

from evaltools.device.adb import detached
from evaltools.device.adb.adb import patiently
from evaltools.device.adb.detached import DetachedRun
from evaltools.device.adb.errors import CommandFailed, DeviceError, FileMissing
from evaltools.device.adb.facts import facts_that_change
from evaltools.device.adb.process import ShellAnswer
from evaltools.device.files.store import RUNS, DeviceStore, chunks, write_archive
from evaltools.device.files.transfer import pull
from evaltools.documents import json_as
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceConditions, DevicePart, hottest
from evaltools.text import printable

Found = TypeVar("Found")

ARCHIVE: Final = ".tar"
"""The ending of archives that are sent; before it stands what is in them."""
EVALUATION: Final = "evaluation"
_LONGEST_COMMAND: Final = 30_000
"""Bytes of a command, in the quotes that it is sent in; what starts it comes on top."""
_BATTERY: Final = "battery"
_BETWEEN_LOOKS_S: Final = 5.0


class PartOptions(Struct, frozen=True):
    """How parts are done.

    ``patience_s`` is how long to wait for a device that is away, ``timeout_s`` how long a part may take, both in
    seconds. ``cool_down_c`` is the temperature in degrees Celsius to wait for, for at most ``cool_down_timeout_s``;
    None: no waiting. ``taskset`` is a mask of CPUs, empty for all.
    """

    patience_s: float
    timeout_s: float
    cool_down_c: float | None = None
    cool_down_timeout_s: float = 0.0
    taskset: str = ""

    @property
    def ends_itself_after_s(self) -> float:
        """The seconds after which a part ends itself on a device that stays away."""
        return self.timeout_s + self.patience_s


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


class PictureFolder(Struct, frozen=True):
    """A folder of which the ``chosen`` files are sent.

    ``manifest`` is a file that names all, None where none is needed.
    """

    folder: Path
    chosen: tuple[Path, ...]
    manifest: Path | None = None


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


class PartDevice:
    """A device that does one part at a time; ``tell`` gets lines for the user about what it waits for."""

    def __init__(
        self,
        store: DeviceStore,
        options: PartOptions,
        stop: threading.Event,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._store = store
        self._adb = store.adb
        self._serial = store.serial
        self._options = options
        self._stop = stop
        self._tell = tell
        self._left: list[DetachedRun] = []
        self._has_looked = False

    @property
    def store(self) -> DeviceStore:
        """The files on the device."""
        return self._store

    def do(self, work: PartWork, program: Program, folder: Path, on_output: Callable[[bytes, bytes], None]) -> PartDone:
        """Run a program; its results are put into ``folder``.

        Raises :class:`DeviceError` where the device did not finish.
        """

        def act(sent: SentFiles) -> ShellAnswer:
            name = f"{work.index}-of-{work.count}-{uuid.uuid4().hex[:16]}"
            command = self._in_short(program.command(work, sent, self._options.taskset))
            parent = posixpath.join(self._store.root, RUNS)
            run = DetachedRun(self._serial, posixpath.join(parent, name))
            self._left.append(run)
            patience_s, timeout_s = self._options.patience_s, self._options.timeout_s
            limit_s = self._options.ends_itself_after_s
            self._patiently(partial(detached.start, self._adb, self._serial, command, parent, name, limit_s))
            answer = detached.wait(self._adb, run, timeout_s, on_output, patience_s=patience_s, stop=self._stop)
            for result in work.results:
                self._fetch(run, result, folder)
            return answer

        answer, part = self.run_part(work, act)
        return PartDone(part, answer.code, answer.text, answer.err.decode("utf-8", "replace"), folder)

    def run_part(self, work: PartWork, act: Callable[[SentFiles], Found]) -> tuple[Found, DevicePart]:
        """Wait until the device is cool, send the files, call ``act``.

        Returns its result, and the conditions before and after.

        If the device goes away after ``act``, the result still counts, and the conditions afterwards are not known.
        """
        self._take_over_left()
        self._patiently(self._remove_left)
        before, waited_s = self._begin()
        started_at, started = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        found = act(self._send(work))
        elapsed_s = round(time.monotonic() - started, 3)
        after = self._conditions_if_there()
        self.clean_up()
        waited_s = round(waited_s, 3)
        return found, DevicePart(
            work.index, work.count, self._serial, work.examples, started_at, waited_s, elapsed_s, before, after
        )

    def clean_up(self) -> DeviceError | None:
        """End and delete what earlier parts left on the device. If that fails, the next part tries it again.

        Returns the error if something may still run or lie there, None if not.
        """
        try:
            self._remove_left()
        except DeviceError as error:
            return error
        return None

    def _take_over_left(self) -> None:
        """Remember the runs that earlier commands left on the device, for :meth:`clean_up`."""
        if not self._has_looked:
            self._left += [DetachedRun(self._serial, folder) for folder in self._store.runs()]
            self._has_looked = True

    def _remove_left(self) -> None:
        for run in list(self._left):
            detached.remove(self._adb, run)
            self._left.remove(run)

    def _begin(self) -> tuple[DeviceConditions, float]:
        limit = self._options.cool_down_c
        if limit is None:
            return self._conditions(), 0.0
        timeout_s = self._options.cool_down_timeout_s
        return cool_down(self._conditions, self._serial, limit, timeout_s, self._stop, tell=self._tell)

    def _conditions(self) -> DeviceConditions:
        return conditions_of(self._patiently(partial(facts_that_change, self._adb, self._serial)))

    def _conditions_if_there(self) -> DeviceConditions:
        try:
            return self._conditions()
        except DeviceError:
            return DeviceConditions()

    def _send(self, work: PartWork) -> SentFiles:
        """Send the files of a part."""
        for local, remote in work.files.items():
            self._store.put(local, remote)
        manifests = {
            name: self._store.put(pictures.manifest)
            for name, pictures in work.pictures.items()
            if pictures.manifest is not None
        }
        archives = {
            name: self._send_archives("pictures", pictures.folder, pictures.chosen)
            for name, pictures in work.pictures.items()
        }
        for name, folder in work.folders.items():
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            archives[name] = self._send_archives("files", folder, files)
        return SentFiles(manifests, archives, self._send_request(work.request) if work.request else "")

    def _send_request(self, content: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, "request.json")
            file.write_bytes(content)
            return self._store.put(file)

    def _send_archives(self, name: str, folder: Path, files: Sequence[Path]) -> tuple[str, ...]:
        paths = []
        for chunk in chunks(files):
            with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
                archive = Path(temporary, f"{name}{ARCHIVE}")
                write_archive(archive, folder, chunk)
                paths.append(self._store.put(archive))
        return tuple(paths)

    def _in_short(self, command: str) -> str:
        """The command itself; where it is too long for adb's command line, one that runs a file with it."""
        length = len(shlex.quote(shlex.quote(command)).encode())
        if length <= _LONGEST_COMMAND:
            return command
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, "command")
            file.write_text(command, encoding="utf-8", newline="\n")
            return f"exec sh {shlex.quote(self._store.put(file))}"

    def _fetch(self, run: DetachedRun, name: str, folder: Path) -> None:
        """Fetch a result. If the command did not write it, that is no error here: its exit code shows what happened."""
        remote, local = posixpath.join(run.folder, name), folder / name
        local.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileMissing):
            pull(self._adb, self._serial, remote, local, patience_s=self._options.patience_s, stop=self._stop)

    def _patiently(self, act: Callable[[], Found]) -> Found:
        return patiently(self._adb, self._serial, act, self._options.patience_s, self._stop)


class PartProgress(Struct, frozen=True):
    """The progress of a part: finished examples, those of them that failed, and failures by configuration."""

    done: int
    failed_examples: int = 0
    failed: dict[str, int] = field(default_factory=dict)


class ProgressReader:
    """Reads the lines of ``--progress=json`` about an evaluation in a command's stderr, which comes in pieces."""

    def __init__(self, on_progress: Callable[[PartProgress], None]) -> None:
        self._on_progress = on_progress
        self._rest = b""

    def __call__(self, _out: bytes, err: bytes) -> None:
        """Take the next piece of output."""
        *lines, self._rest = (self._rest + err).split(b"\n")
        for line in lines:
            progress = progress_of(line)
            if progress is not None:
                self._on_progress(progress)


def progress_of(line: bytes) -> PartProgress | None:
    """The progress of an evaluation in a line; None if it is any other line.

    >>> progress_of(b'{"phase": "evaluation", "done": 20, "total": 50, "failed_examples": 1, "failed": {"test": 1}}')
    PartProgress(done=20, failed_examples=1, failed={'test': 1})
    """
    if not line.startswith(f'{{"phase": "{EVALUATION}"'.encode()):
        return None
    try:
        return json_as(line, PartProgress)
    except ValueError:
        return None


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
        warm = f"{temperature:.1f} C (sensor {printable(sensor_of(conditions, temperature))})"
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


def sensor_of(conditions: DeviceConditions, temperature: float) -> str:
    """The name of the sensor that shows this temperature, in degrees Celsius.

    >>> sensor_of(DeviceConditions(battery_temperature=287, temperatures={"skin": 31.5}), 31.5)
    'skin'
    """
    return next((name for name, degrees in conditions.temperatures.items() if degrees == temperature), _BATTERY)
