"""The devices of one run: choosing, locking, preparing and cleaning them."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType

from rich.console import Console

from evaltools.device.adb import Adb
from evaltools.device.device import Device
from evaltools.device.errors import DeviceError
from evaltools.device.facts import find_devices, masks_of_cpus
from evaltools.device.flags import KINDS_OF_CPUS, DeviceFlags
from evaltools.result.device_run import DeviceLeftOut


class DevicesUsed:
    """The devices that a run may use; a context, at whose end nothing runs there any more, or is said to.

    Making it raises :class:`DeviceError` where there is no device, or one that was named cannot be used. Entering it
    takes the lock of the folder on each device, which raises :class:`DeviceError` where one that was named is in use.

    Attributes:
        left_out: the devices that cannot be used, where all were asked for
        stop: set to have everything on the devices ended
    """

    def __init__(self, flags: DeviceFlags, console: Console) -> None:
        self.stop = threading.Event()
        self.left_out: list[DeviceLeftOut] = []
        self._devices: dict[str, Device] = {}
        self._flags = flags
        self._console = console
        self._held = ExitStack()
        adb = Adb(flags.adb)
        wanted = flags.serials
        if not flags.all_devices and not wanted:
            wanted = (adb.choose(),)
        for serial in wanted:
            adb.connect(serial)
        for found in find_devices(adb, wanted):
            facts, problem = found.facts, found.problem
            if facts is not None and flags.taskset in KINDS_OF_CPUS:
                has_kinds = masks_of_cpus(facts.conditions.cpu_frequencies)
                problem = "" if has_kinds else f"{found.serial}: it does not say which CPUs are {flags.taskset}"
            if facts is None or problem:
                self._leave_out(DeviceError(problem, found.serial))
            else:
                self._devices[found.serial] = Device(adb, facts, flags, self.stop, console.print)
        self._require_any()

    @property
    def serials(self) -> tuple[str, ...]:
        """The serial numbers of the devices that can be used."""
        return tuple(self._devices)

    def __getitem__(self, serial: str) -> Device:
        """The device with this serial number."""
        return self._devices[serial]

    def __enter__(self) -> DevicesUsed:
        with ExitStack() as held:
            for serial, device in list(self._devices.items()):
                try:
                    held.enter_context(device.lock)
                except DeviceError as error:
                    self._leave_out(error)
                    del self._devices[serial]
            self._require_any()
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            for device in self._devices.values():
                device.leave()

    def _leave_out(self, error: DeviceError) -> None:
        """Go on without a device where all were asked for; else raise its error."""
        if not self._flags.all_devices:
            raise error
        self.left_out.append(DeviceLeftOut(error.serial, str(error)))
        self._console.print(f"left out: {error}")

    def _require_any(self) -> None:
        if not self._devices:
            reasons = "".join(f"\n  {entry.reason}" for entry in self.left_out)
            raise DeviceError(f"no device can be used; evaltools device list says what to do{reasons}")
