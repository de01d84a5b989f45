"""One device of a run: what is sent to it, the program that it runs, and how it is left."""

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
from typing import Final

from msgspec import Struct
from rich.filesize import decimal

from evaltools.device import detached
from evaltools.device.adb import SHELL_TIMEOUT_S, Adb, Answer, Link
from evaltools.device.errors import CommandFailed, DeviceError, FileMissing
from evaltools.device.facts import conditions_now, masks_of_cpus
from evaltools.device.flags import DEFAULT_ROOT, DeviceFlags
from evaltools.device.store import RUNS, DeviceLock, archives, remote_path, remove_runs, stored_folder
from evaltools.device.transfer import pull, push
from evaltools.errors import OutputError
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceWork, LostAttempt, hottest
from evaltools.text import printable

_LARGE: Final = 10_000_000
"""Bytes of a file about whose sending a line is printed."""
_LONGEST_COMMAND: Final = 30_000
"""Bytes of a command, in the quotes that it is sent in; what starts it comes on top."""
_BETWEEN_LOOKS_S: Final = 5.0
_LONGEST_COOLING_S: Final = 600.0


class WorkDone(Struct, frozen=True):
    """Finished work: its facts, exit code, output, and the folder with its results."""

    work: DeviceWork
    code: int
    out: str
    err: str
    folder: Path


class Device:
    """A device that does one work at a time; files can be sent while its :attr:`lock` is held.

    ``stop`` ends everything that is under way. ``report`` gets lines for the user.

    Attributes:
        link: the way to it
        facts: at the beginning; the Python in them is the one that is used
        lock: that of evaltools' folder there
        known: files that the device has had since it was away
        python: the command that starts evaltools there, once it has been looked at since then
        lost: the attempts at the present work that failed
    """

    def __init__(
        self,
        adb: Adb,
        facts: DeviceFacts,
        flags: DeviceFlags,
        stop: threading.Event,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.link = Link(adb, facts.serial, flags.patience_s, stop)
        self.serial = facts.serial
        self.facts = facts
        self.flags = flags
        self.lock = DeviceLock(self.link, flags.root, flags.takes_by_force)
        self.report = report
        self.known: set[str] = set()
        self.python = ""
        self.lost: list[LostAttempt] = []
        self._may_run = False

    def shell(self, command: str, timeout_s: float = SHELL_TIMEOUT_S) -> Answer:
        """Run a command once, as :meth:`Link.shell` does."""
        return self.link.shell(command, timeout_s)

    def put(self, local: Path, remote: str = "") -> str:
        """Send a file unless the device has its content; returns its path on the device. Raises as :func:`push` does.

        ``remote`` is the value of :func:`remote_path`, if that is known already.
        """
        remote = remote or remote_path(self.flags.root, local)

        def on_sending(size: int) -> None:
            if size >= _LARGE:
                self.report(f"{self.serial}: sending {local.name}, {decimal(size)}")

        if remote not in self.known:
            push(self.link, local, remote, on_sending=on_sending)
            self.known.add(remote)
        return remote

    def is_back(self) -> bool:
        """Whether the device, which was lost, can be used again; waits as long as it may be away.

        Its files may be gone, so that they are looked for again.
        """
        self.known.clear()
        self.python = ""
        try:
            self.lock.take()
        except DeviceError:
            return False
        return True

    def put_all(self, files: Mapping[Path, str]) -> None:
        """Send files whose paths on the device are known."""
        for local, remote in files.items():
            self.put(local, remote)

    def put_content(self, name: str, content: bytes) -> str:
        """Send a file with this content; returns its path on the device."""
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, name)
            try:
                file.write_bytes(content)
            except OSError as error:
                raise OutputError(f"{file} cannot be written: {error.strerror}; make room, or set TMPDIR") from error
            return self.put(file)

    def put_folder(self, folder: Path, files: Sequence[Path]) -> list[str]:
        """Send files below a folder, in archives; returns the paths of those on the device."""
        return [self.put_content("files.tar", content) for content in archives(folder, files)]

    @property
    def affinity(self) -> str:
        """What stands before a command that is to run on the CPUs of ``--taskset``."""
        asked = self.flags.taskset
        mask = masks_of_cpus(self.facts.conditions.cpu_frequencies).get(asked, asked)
        return f"taskset {shlex.quote(mask)} " if mask else ""

    def do(
        self,
        prepare: Callable[[], str],
        results: Sequence[str],
        folder: Path,
        on_line: Callable[[bytes], None] = lambda _line: None,
    ) -> WorkDone:
        """Wait until the device is cool, run a command in a folder of its own, fetch its ``results`` into ``folder``.

        ``prepare`` sends what the command needs, and gives it. ``on_line`` gets each line that it prints to stderr.

        If the device goes away afterwards, the work still counts, and the conditions after it are not known. Raises
        :class:`DeviceError` where the device did not finish, or another has taken its lock.
        """
        self.lock.take()
        self.link.patiently(self._remove_runs)  # earlier commands may have left some
        before, waited_s = self._begin()
        started_at, started = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        answer = self._run(self._with_libraries(prepare()), results, folder, on_line)
        elapsed_s = round(time.monotonic() - started, 3)
        try:
            after = self._conditions()
        except DeviceError:
            after = DeviceConditions()
        self.clean_up()
        lost = tuple(self.lost)
        done = DeviceWork(self.serial, started_at, round(waited_s, 3), elapsed_s, before, after, lost=lost)
        return WorkDone(done, answer.code, answer.text, answer.err.decode("utf-8", "replace"), folder)

    def _run(self, command: str, results: Sequence[str], folder: Path, on_line: Callable[[bytes], None]) -> Answer:
        flags = self.flags
        run = posixpath.join(flags.root, RUNS, uuid.uuid4().hex[:16])
        if len(shlex.quote(shlex.quote(command)).encode()) > _LONGEST_COMMAND:  # too long for adb's command line
            command = f"exec sh {shlex.quote(self.put_content('command', command.encode()))}"
        self._may_run = True
        self.link.patiently(partial(detached.start, self.link, command, run, flags.ends_itself_after_s))
        answer = detached.wait(self.link, run, flags.silence_s, on_line)
        for result in results:
            with suppress(FileMissing):  # the exit code shows why the command did not write it
                pull(self.link, posixpath.join(run, result), folder / result)
        return answer

    def _with_libraries(self, command: str) -> str:
        """The command, for which the libraries of ``--device_libraries`` are found there; they are sent, too."""
        if self.flags.libraries is None:
            return command
        folder, files = stored_folder(self.flags.root, self.flags.libraries)
        self.put_all(files)
        own = shlex.quote(folder)
        loader = f"LD_LIBRARY_PATH={own}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
        signal_processor = f'ADSP_LIBRARY_PATH={own}"${{ADSP_LIBRARY_PATH:+;$ADSP_LIBRARY_PATH}}"'
        return f"export {loader} {signal_processor}\n{command}"

    def _begin(self) -> tuple[DeviceConditions, float]:
        if self.flags.cool_down_c is None:
            return self._conditions(), 0.0
        return cool_down(self._conditions, self.serial, self.flags.cool_down_c, self.link.stop, report=self.report)

    def _conditions(self) -> DeviceConditions:
        return self.link.patiently(partial(conditions_now, self.link))

    def clean_up(self) -> DeviceError | None:
        """End and delete what still runs there. If that fails, the next attempt tries it again.

        Returns the error if something may still run or lie there, None if not.
        """
        try:
            if self._may_run:
                self._remove_runs()
        except DeviceError as error:
            return error
        return None

    def _remove_runs(self) -> None:
        remove_runs(self.link.unstoppable(self.link.patience_s), self.flags.root)
        self._may_run = False

    def leave(self) -> None:
        """End what still runs there; what stays is said."""
        flags, problem = self.flags, self.clean_up()
        words = ["evaltools", "device", "clean", f"--serials={self.serial}"]
        words += [f"--adb={flags.adb}"] if flags.adb else []
        words += [f"--device_folder={flags.root}"] if flags.root != DEFAULT_ROOT else []
        if problem is not None:
            self.report(
                f"evaltools: {self.serial}: something may still run there, and its files be left ({problem}); it ends "
                f"itself after {flags.ends_itself_after_s / 60:.0f} minutes, and {shlex.join(words)} --force ends and "
                "deletes all"
            )


def cool_down(
    look: Callable[[], DeviceConditions],
    serial: str,
    limit_celsius: float,
    stop: threading.Event,
    timeout_s: float = _LONGEST_COOLING_S,
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
