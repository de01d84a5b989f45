"""The devices of one run: chosen, looked at, made ready when they are first needed, left clean."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

from rich.console import Console

from evaltools.cli.device_run_flags import DeviceFlags
from evaltools.device.adb import Adb
from evaltools.device.errors import DeviceError, NoSuchDevice
from evaltools.device.found import find_devices
from evaltools.device.part import PartDevice, PartOptions
from evaltools.device.patience import patiently
from evaltools.device.pool import Done, Job, Pool, PoolOutcome
from evaltools.device.python_program import PythonProgram, install
from evaltools.device.states import NOT_LISTED, USABLE, error_of_state
from evaltools.device.store import DeviceStore, clear
from evaltools.device.wheel import write_own_wheel
from evaltools.report.device_result import DeviceFacts
from evaltools.report.device_run import DeviceLeftOut, LostAttempt

_BETWEEN_LINES_S: Final = 10.0


class DevicesUsed:
    """The devices that a run may use; a context, at whose end nothing runs there any more.

    Attributes:
        facts: of each device at the beginning
        left_out: the devices that cannot be used, where all were asked for
        stop: set to have everything on the devices ended
    """

    def __init__(self, own: DeviceFlags, console: Console) -> None:
        self.adb = Adb(own.adb, own.port)
        self.stop = threading.Event()
        self.facts, self.left_out = _usable(self.adb, own)
        for entry in self.left_out:
            console.print(f"left out: {entry.reason}")
        self._own = own
        self._console = console
        self._devices = {serial: self._device(serial) for serial in self.serials}
        self._pythons: dict[str, PythonProgram] = {}
        self._temporary = tempfile.TemporaryDirectory(prefix="evaltools-")
        self._making = threading.Lock()
        self._wheels: tuple[Path, ...] = ()

    @property
    def serials(self) -> tuple[str, ...]:
        """Of the devices that can be used."""
        return tuple(facts.serial for facts in self.facts)

    def __enter__(self) -> DevicesUsed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.cleanup()
        for serial, device in self._devices.items():
            try:
                device.clean_up()
                if not self._own.keeps_files:
                    clear(self.adb, serial, self._own.root)
            except DeviceError as problem:
                self._console.print(f"evaltools: not everything could be deleted: {problem}")

    def facts_of(self, serial: str) -> DeviceFacts:
        """A device as it was at the beginning."""
        return next(facts for facts in self.facts if facts.serial == serial)

    def device(self, serial: str) -> PartDevice:
        """A device, for parts."""
        return self._devices[serial]

    def python(self, serial: str, task: str) -> PythonProgram:
        """Evaltools on a device, where it is put on the first call, for a task; raises :class:`DeviceError`."""
        if serial not in self._pythons:
            self._pythons[serial] = install(self._devices[serial].store, self._all_wheels(), task, self._own.python)
        return self._pythons[serial]

    def _device(self, serial: str) -> PartDevice:
        options = PartOptions(
            patience_s=self._own.patience_s,
            timeout_s=self._own.part_timeout_s,
            cool_down_c=self._own.cool_down_c,
            cool_down_timeout_s=self._own.cool_down_timeout_s,
            taskset=self._own.taskset,
        )
        own, told = self._own, _Sending(serial, self._console)
        return PartDevice(DeviceStore(self.adb, serial, own.root, own.patience_s, self.stop, told), options, self.stop)

    def run(
        self, jobs: Sequence[Job], do: Callable[[str, Job], Done], on_lost: Callable[[Job, LostAttempt], None]
    ) -> PoolOutcome[Done]:
        """Do parts by these devices, as :class:`Pool` does; those that could not be used are left out, too."""
        pool: Pool[Done] = Pool(self.serials, jobs, do, self.is_back, self.stop, on_lost)
        outcome = pool.run()
        outcome.left_out[:0] = self.left_out
        return outcome

    def is_back(self, serial: str) -> bool:
        """Whether a device that was lost can be used again, within the time that it may be away.

        What was there before may be gone, so that it is looked at anew.
        """
        self._pythons.pop(serial, None)
        self._devices[serial].store.forget()
        try:
            patiently(self.adb, serial, partial(self.adb.shell, serial, "true"), self._own.patience_s, self.stop)
        except DeviceError:
            return False
        return True

    def _all_wheels(self) -> tuple[Path, ...]:
        with self._making:
            if not self._wheels:
                self._wheels = (write_own_wheel(Path(self._temporary.name)), *self._own.wheels)
            return self._wheels


class _Sending:
    """Says on stderr how far a large file has come."""

    def __init__(self, serial: str, console: Console) -> None:
        self._serial = serial
        self._console = console
        self._last = time.monotonic()

    def __call__(self, file: Path, arrived: int, size: int) -> None:
        if time.monotonic() - self._last >= _BETWEEN_LINES_S:
            self._last = time.monotonic()
            share = f"{arrived / 1e6:.0f} of {size / 1e6:.0f} MB"
            self._console.print(f"{self._serial}: sending {file.name}, {share}", style="dim")


def _usable(adb: Adb, own: DeviceFlags) -> tuple[tuple[DeviceFacts, ...], list[DeviceLeftOut]]:
    """The devices asked for. One that is named must be there or be reached; of ``all`` those that can be used.

    Raises :class:`DeviceError` where there is none, or one that was named cannot be used.
    """
    wanted = own.serials
    if not own.all_devices and not wanted:
        wanted = (adb.choose(),)
    for serial in wanted:
        if adb.state(serial) == NOT_LISTED:
            adb.reconnect(serial)
    left_out = []
    usable = []
    for finding in find_devices(adb, wanted):
        if finding.facts is not None:
            usable.append(finding.facts)
            continue
        serial, state = finding.device.serial, finding.device.state
        error = error_of_state(serial, state, "adb shell")
        if state == USABLE:
            error = NoSuchDevice(finding.problem, serial)
        if wanted:
            raise error
        left_out.append(DeviceLeftOut(serial, error.kind, str(error)))
    if not usable:
        raise NoSuchDevice("no device can be used; evaltools device list says what to do")
    return tuple(usable), left_out
