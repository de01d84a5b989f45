"""The devices of a run: what is sent to each, what it runs, how it is left; what one loses, it does again."""

from __future__ import annotations

import posixpath
import shlex
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field
from rich.console import Console
from rich.filesize import decimal

from evaltools.adb import detached
from evaltools.adb.client import MAY_PASS, Adb, Answer, CommandFailed, DeviceError, DeviceStopped, FileMissing, Link
from evaltools.adb.facts import conditions_now, find_devices, masks_of_cpus
from evaltools.adb.store import DEFAULT_ROOT, RUNS, DeviceFolder, archives, remote_path, stored_folder
from evaltools.adb.transfer import pull, push
from evaltools.device.flags import KINDS_OF_CPUS, DeviceFlags, ProgramName
from evaltools.errors import OutputError
from evaltools.result.device import (
    DeviceConditions,
    DeviceFacts,
    DeviceFinding,
    DeviceLeftOut,
    DeviceRun,
    DeviceWork,
    LostAttempt,
    hottest,
)
from evaltools.text import printable

_LARGE: Final = 10_000_000
"""Bytes of a file about whose sending a line is printed."""
_LONGEST_COMMAND: Final = 30_000
"""Bytes of a command, in the quotes that it is sent in; what starts it comes on top."""
_BETWEEN_LOOKS_S: Final = 5.0
_LONGEST_COOLING_S: Final = 600.0


class Device:
    """A device that does one work at a time; files can be sent while its :attr:`folder` is held.

    ``stop`` ends everything that is under way.

    Attributes:
        link: the way to it
        report: shows a line to the user
        facts: at the beginning; the Python in them is the one that is used
        folder: evaltools' own there
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
        self.folder = DeviceFolder(self.link, flags.root, flags.takes_by_force)
        self.report = report
        self.known: set[str] = set()
        self.python = ""
        self.lost: list[LostAttempt] = []
        self._may_run = False

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
            self.folder.take()
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
    ) -> tuple[DeviceWork, Answer]:
        """Wait until the device is cool, run a command in a folder of its own, fetch its ``results`` into ``folder``.

        ``prepare`` sends what the command needs, and gives it. ``on_line`` gets each line that it prints to stderr.

        If the device goes away afterwards, the work still counts, and the conditions after it are not known. Raises
        :class:`DeviceError` where the device did not finish, or another has taken its lock.
        """
        look = partial(self.link.patiently, partial(conditions_now, self.link))
        self.folder.take()
        self.link.patiently(self._remove_runs)  # earlier commands may have left some
        before, waited_s = self.cool_down(look)
        started_at, started = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        answer = self._run(self._with_libraries(prepare()), results, folder, on_line)
        elapsed_s = round(time.monotonic() - started, 3)
        try:
            after = look()
        except DeviceError:
            after = DeviceConditions()
        with suppress(DeviceError):  # the next attempt tries it again
            self._remove_runs()
        lost = tuple(self.lost)
        return DeviceWork(self.serial, started_at, round(waited_s, 3), elapsed_s, before, after, lost=lost), answer

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

    def cool_down(self, look: Callable[[], DeviceConditions]) -> tuple[DeviceConditions, float]:
        """Wait until no temperature that ``look`` finds is above that of ``--cool_down``, which None leaves out.

        Returns the conditions then, and the seconds waited: after :data:`_LONGEST_COOLING_S` it goes on all the same.
        Raises :class:`CommandFailed` where the device states no temperature.
        """
        started, limit = time.monotonic(), self.flags.cool_down_c
        is_announced = False
        while True:
            conditions = look()
            temperature, waited = hottest(conditions), time.monotonic() - started
            if limit is None:
                return conditions, 0.0
            if temperature is None:
                raise CommandFailed(
                    f"{self.serial}: it states no temperature, so --cool_down cannot be kept; leave the flag out"
                )
            if temperature <= limit:
                return conditions, waited
            sensors = (name for name, degrees in conditions.temperatures.items() if degrees == temperature)
            warm = f"{temperature:.1f} C (sensor {printable(next(sensors, 'battery'))})"
            if waited >= _LONGEST_COOLING_S:
                self.report(
                    f"{self.serial}: warning: still {warm} after {_LONGEST_COOLING_S:g} s of waiting for {limit:g} C; "
                    "it goes on all the same, so its figures may be those of a throttled device. Raise --cool_down"
                )
                return conditions, waited
            if not is_announced:
                self.report(
                    f"{self.serial}: {warm}, waiting until all are at most {limit:g} C, for up to "
                    f"{_LONGEST_COOLING_S:g} s"
                )
                is_announced = True
            if self.link.stop.wait(_BETWEEN_LOOKS_S):
                return conditions, waited

    def _remove_runs(self) -> None:
        self.folder.remove_runs()
        self._may_run = False

    def leave(self) -> None:
        """End and delete what still runs there; what stays is said."""
        try:
            if self._may_run:
                self._remove_runs()
        except DeviceError as problem:
            flags = self.flags
            words = ["evaltools", "device", "clean", f"--serials={self.serial}"]
            words += [f"--adb={flags.adb}"] if flags.adb else []
            words += [f"--device_folder={flags.root}"] if flags.root != DEFAULT_ROOT else []
            self.report(
                f"evaltools: {self.serial}: something may still run there, and its files be left ({problem}); it ends "
                f"itself after {flags.ends_itself_after_s / 60:.0f} minutes, and {shlex.join(words)} --force ends and "
                "deletes all"
            )


class DevicesUsed(Struct):
    """The devices that a run may use, and those that cannot be used, where all were asked for.

    ``stop`` is set to have everything on the devices ended.
    """

    by_serial: dict[str, Device] = field(default_factory=dict)
    left_out: list[DeviceLeftOut] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)


@contextmanager
def devices_used(flags: DeviceFlags, console: Console) -> Iterator[DevicesUsed]:
    """The devices that flags ask for, with the lock of the folder on each; a context.

    At its end nothing runs there any more, or is said to. Raises :class:`DeviceError` where there is no device, or one
    that was named cannot be used.
    """
    adb, used = Adb(flags.adb), DevicesUsed()
    wanted = flags.serials
    if not flags.all_devices and not wanted:
        wanted = (adb.choose(),)
    for serial in wanted:
        adb.connect(serial)
    with ExitStack() as held:
        for found in find_devices(adb, wanted):
            try:
                device = Device(adb, _usable(found, flags), flags, used.stop, console.print)
                held.enter_context(device.folder)
            except DeviceError as error:
                if not flags.all_devices:
                    raise
                used.left_out.append(DeviceLeftOut(found.serial, str(error)))
                console.print(f"left out: {error}")
            else:
                held.callback(device.leave)
                used.by_serial[found.serial] = device
        if not used.by_serial:
            reasons = "".join(f"\n  {entry.reason}" for entry in used.left_out)
            raise DeviceError(f"no device can be used; evaltools device list says what to do{reasons}")
        yield used


def _usable(found: DeviceFinding, flags: DeviceFlags) -> DeviceFacts:
    """The facts of a device; raises :class:`DeviceError` for one that cannot be used."""
    if found.facts is None:
        raise DeviceError(found.problem)
    if flags.taskset in KINDS_OF_CPUS and not masks_of_cpus(found.facts.conditions.cpu_frequencies):
        raise DeviceError(f"{found.serial}: it does not say which CPUs are {flags.taskset}")
    return found.facts


Done = TypeVar("Done")

MOST_ATTEMPTS: Final = 3
"""A device that lost its work so often is left out."""
_WORTH_ANOTHER_TRY: Final = (*MAY_PASS, CommandFailed)
_LOOK_S: Final = 0.2


def do_on_each(
    devices: DevicesUsed, serials: Sequence[str], do: Callable[[Device], Done], console: Console
) -> tuple[dict[str, Done], list[DeviceLeftOut]]:
    """Call ``do`` for each of these devices, in a thread of its own, as far as the devices can.

    Returns what they did, by serial number, and the devices that were left out, here and before.

    ``do`` raises :class:`DeviceError` where the device did not finish. Raises any other error of it, and
    :class:`KeyboardInterrupt`; before that it asks the devices to stop, and waits for them.
    """
    done, left_out = dict[str, Done](), list(devices.left_out)

    errors: list[BaseException] = []

    def work(device: Device) -> None:
        try:
            found = _do_on(device, do, console)
        except DeviceStopped:
            return
        except BaseException as error:
            errors.append(error)
            devices.stop.set()
            return
        if isinstance(found, DeviceLeftOut):
            left_out.append(found)
        else:
            done[device.serial] = found

    threads = [threading.Thread(target=work, args=(devices.by_serial[serial],), name=serial) for serial in serials]
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(_LOOK_S)  # whichever thread a signal reaches, it is heeded when this one wakes
    finally:
        devices.stop.set()
        for thread in threads:
            if thread.is_alive():
                thread.join()
    if errors:
        raise errors[0]
    return done, left_out


def _do_on(device: Device, do: Callable[[Device], Done], console: Console) -> Done | DeviceLeftOut:
    """Call ``do`` until it gives something, or the device is left out."""
    device.lost = []
    while True:
        started = time.monotonic()
        try:
            return do(device)
        except DeviceStopped:
            raise
        except DeviceError as error:
            attempt = LostAttempt(error.kind, str(error), round(time.monotonic() - started, 3))
            device.lost.append(attempt)
            console.print(f"{printable(attempt.reason)} [{attempt.kind}]", markup=False)
            may_pass = isinstance(error, _WORTH_ANOTHER_TRY) and len(device.lost) < MOST_ATTEMPTS
            if not (may_pass and device.is_back()):
                return DeviceLeftOut(device.serial, attempt.reason)


def require_any(done: Collection[str], left_out: Sequence[DeviceLeftOut], step: str = "") -> None:
    """Raise :class:`DeviceError` where no device did its work; ``step`` ends the message."""
    if not done:
        raise DeviceError(f"no device did its work: {'; '.join(dict.fromkeys(each.reason for each in left_out))}{step}")


def run_on_each(
    do: Callable[[Device], tuple[DeviceWork, Done]], program: ProgramName, devices: DevicesUsed, console: Console
) -> tuple[Mapping[str, Done], DeviceRun]:
    """What every device gives, by serial number, with what the result says of devices; ``do`` gives both for one.

    Raises :class:`DeviceError` where no device did its work.
    """
    found, left_out = do_on_each(devices, [*devices.by_serial], do, console)
    require_any(found, left_out)
    done = {serial: device for serial, device in devices.by_serial.items() if serial in found}
    run = DeviceRun(
        program=program,
        devices=tuple(device.facts for device in done.values()),
        work=tuple(found[serial][0] for serial in done),
        left_out=tuple(left_out),
    )
    return {serial: found[serial][1] for serial in done}, run
