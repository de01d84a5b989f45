"""The devices of one run: choosing, locking, preparing and cleaning them."""

from __future__ import annotations

import re
import shlex
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.device.adb import Adb
from evaltools.device.errors import DeviceError, NoSuchDevice
from evaltools.device.facts import look_at_devices
from evaltools.device.flags import DEFAULT_ROOT, DeviceFlags
from evaltools.device.lock import DeviceLock
from evaltools.device.part import PartDevice
from evaltools.device.python_program import Needed, PythonProgram, install, write_own_package
from evaltools.device.store import DeviceStore, clear
from evaltools.errors import UsageError
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceLeftOut
from evaltools.task_kind import RequestKind

_OWN_NAME: Final = "evaltools"


class DevicesUsed:
    """The devices that a run may use; a context, at whose end nothing runs there any more, or is said to.

    Making it raises :class:`UsageError` for wheels of which two are the same package, and :class:`DeviceError` where
    there is no device, or one that was named cannot be used. Entering it takes the lock of the folder on each device,
    which raises :class:`DeviceError` where one that was named is in use.

    Attributes:
        facts: of each device at the beginning
        left_out: the devices that cannot be used, where all were asked for
        stop: set to have everything on the devices ended
    """

    def __init__(self, flags: DeviceFlags, console: Console) -> None:
        self._others_wheels = _one_of_each(flags.wheels, console)
        self.adb = Adb(flags.adb, flags.port)
        self.stop = threading.Event()
        self.facts, self.left_out = _usable(self.adb, flags)
        for entry in self.left_out:
            console.print(f"left out: {entry.reason}")
        self._flags = flags
        self._console = console
        self._devices = {serial: self._device(serial) for serial in self.serials}
        self._locks: dict[str, DeviceLock] = {}
        self._held = ExitStack()
        self._pythons: dict[str, PythonProgram] = {}
        self._temporary = tempfile.TemporaryDirectory(prefix="evaltools-")
        self._making = threading.Lock()
        self._wheels: tuple[Path, ...] = ()

    @property
    def serials(self) -> tuple[str, ...]:
        """The serial numbers of the devices that can be used."""
        return tuple(facts.serial for facts in self.facts)

    def __enter__(self) -> DevicesUsed:
        with ExitStack() as held:
            for serial in self.serials:
                lock = DeviceLock(
                    self.adb, serial, self._flags.root, self._flags.patience_s, self.stop, self._flags.takes_by_force
                )
                try:
                    held.enter_context(lock)
                except DeviceError as error:
                    if not self._flags.all_devices:
                        raise
                    self._leave_out(serial, error)
                else:
                    self._locks[serial] = lock
            if not self.facts:
                raise _none_usable(self.left_out)
            self._held = held.pop_all()
        return self

    def _leave_out(self, serial: str, error: DeviceError) -> None:
        self.left_out.append(DeviceLeftOut(serial, error.kind, str(error)))
        self._console.print(f"left out: {error}")
        self.facts = tuple(facts for facts in self.facts if facts.serial != serial)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.cleanup()
        with self._held:
            for serial, lock in self._locks.items():
                self._leave(serial, lock)

    def _leave(self, serial: str, lock: DeviceLock) -> None:
        """End what still runs on a device; unless files are to be kept, delete evaltools' there."""
        problem = self._devices[serial].clean_up()
        if problem is not None:
            self._console.print(
                f"evaltools: {serial}: a part may still run there, and its files be left ({problem}); it ends "
                f"itself after {self._flags.ends_itself_after_s / 60:.0f} minutes, and "
                f"{self._cleaning(serial)} --force ends and deletes all"
            )
        elif not self._flags.keeps_files:
            try:
                lock.take()
                clear(self.adb, serial, lock)
            except DeviceError as error:
                self._console.print(
                    f"evaltools: not everything could be deleted: {error}; try again with {self._cleaning(serial)}"
                )

    def _cleaning(self, serial: str) -> str:
        """The command that ends and deletes what is left on a device."""
        flags = self._flags
        words = ["evaltools", "device", "clean", f"--serials={serial}"]
        words += [f"--adb={flags.adb}"] if flags.adb else []
        words += [f"--adb_port={flags.port}"] if flags.port is not None else []
        words += [f"--device_folder={flags.root}"] if flags.root != DEFAULT_ROOT else []
        return shlex.join(words)

    def facts_of(self, serial: str) -> DeviceFacts:
        """The facts about a device at the beginning; the Python in them is the one that is used."""
        facts = next(facts for facts in self.facts if facts.serial == serial)
        program = self._pythons.get(serial)
        if program is None or not self._flags.python:
            return facts
        return replace(facts, python=program.version, python_path=program.python)

    def device(self, serial: str) -> PartDevice:
        """A device to run parts on; raises :class:`DeviceBusy` where another process has taken its lock."""
        if serial in self._locks:
            self._locks[serial].take()
        return self._devices[serial]

    def python(self, serial: str, kind: RequestKind) -> PythonProgram:
        """Evaltools on a device, which is installed if necessary; raises :class:`DeviceError`."""
        store, program = self._devices[serial].store, self._pythons.get(serial)
        if program is None:
            needed = Needed(kind.command, kind.modules_on_devices)
            program = self._pythons[serial] = install(store, self._all_wheels(), needed, self._flags.python)
        return program

    def check_python_again(self, serial: str) -> None:
        """Have evaltools checked before the next part on a device, as after one that failed: a package may be gone."""
        self._pythons.pop(serial, None)

    def _device(self, serial: str) -> PartDevice:
        store = DeviceStore(self.adb, serial, self._flags.root, self._flags.patience_s, self.stop, self._tell)
        return PartDevice(store, self._flags, self.stop, self._console.print)

    def _tell(self, line: str) -> None:
        self._console.print(line, style="dim")

    def is_back(self, serial: str) -> bool:
        """Whether a device that was lost can be used again; waits as long as a device may be away.

        Its files may be gone, so that they are looked for again.
        """
        self._pythons.pop(serial, None)
        self._devices[serial].store.forget()
        try:
            self._locks[serial].take()
        except DeviceError:
            return False
        return True

    def _all_wheels(self) -> tuple[Path, ...]:
        with self._making:
            if not self._wheels:
                self._wheels = (write_own_package(Path(self._temporary.name)), *self._others_wheels)
            return self._wheels


def _one_of_each(wheels: Iterable[Path], console: Console) -> tuple[Path, ...]:
    """The given wheels without those of evaltools, of which the host's version is sent.

    Raises :class:`UsageError` where two are of one package: all are unpacked into one folder.
    """
    found: dict[str, Path] = {}
    for wheel in wheels:
        name = re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        if name == _OWN_NAME:
            console.print(f"left aside: {wheel}: evaltools is sent to the devices as it is here")
        elif name in found:
            raise UsageError(
                f"--device_wheels: {found[name]} and {wheel} are both {name}, and one would be unpacked over the "
                "other; leave the one for the devices' processor and Python there, and delete the other"
            )
        else:
            found[name] = wheel
    return tuple(found.values())


def _usable(adb: Adb, flags: DeviceFlags) -> tuple[tuple[DeviceFacts, ...], list[DeviceLeftOut]]:
    """The devices that can be used, and those that are left out.

    A device that is named must be usable; with ``all`` the usable ones are taken. Raises :class:`DeviceError` where
    there is none, or one that was named cannot be used.
    """
    wanted = flags.serials
    if not flags.all_devices and not wanted:
        wanted = (adb.choose(),)
    for serial in wanted:
        adb.reconnect_if_unlisted(serial)
    left_out: list[DeviceLeftOut] = []
    usable: list[DeviceFacts] = []
    for device, found in look_at_devices(adb, wanted):
        error = found if isinstance(found, DeviceError) else _why_not_used(found, flags.taskset, usable)
        if isinstance(found, DeviceFacts) and error is None:
            usable.append(found)
        elif error is not None:
            if wanted:
                raise error
            left_out.append(DeviceLeftOut(device.serial, error.kind, str(error)))
    if not usable:
        raise _none_usable(left_out)
    return tuple(usable), left_out


def _none_usable(left_out: Iterable[DeviceLeftOut]) -> NoSuchDevice:
    reasons = "".join(f"\n  {entry.reason}" for entry in left_out)
    return NoSuchDevice(f"no device can be used; evaltools device list says what to do{reasons}")


def _why_not_used(facts: DeviceFacts, mask: str, others: Sequence[DeviceFacts]) -> DeviceError | None:
    """The error of a device that is the same as one of ``others``, or lacks the CPUs of the mask.

    None if it can be used, or does not say.
    """
    for other in others:
        if facts.identity and facts.identity == other.identity:
            return DeviceError(
                f"{facts.serial} is the same device as {other.serial}, connected twice, and would disturb itself; "
                "name one of the two in --serials",
                facts.serial,
            )
    if not mask or facts.cpus is None:
        return None
    count = max([facts.cpus, *(cpu.cpu + 1 for cpu in facts.cpu_frequencies)])
    if int(mask, 16) % (1 << count):
        return None
    return DeviceError(
        f"{facts.serial}: --taskset={mask} names none of its {count} CPUs; give a mask of them, such as "
        f"{(1 << count) - 1:x} for all",
        facts.serial,
    )
