"""The devices of one run: choosing, locking, preparing and cleaning them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType

from rich.console import Console

from evaltools.device.adb import Adb
from evaltools.device.device import Device
from evaltools.device.errors import DeviceError
from evaltools.device.facts import find_devices, masks_of_cpus
from evaltools.device.flags import KINDS_OF_CPUS, DeviceFlags
from evaltools.result.device import DeviceFacts
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
        adb = Adb(flags.adb)
        usable, self.left_out = _usable(adb, flags)
        for entry in self.left_out:
            console.print(f"left out: {entry.reason}")
        self._devices = {facts.serial: Device(adb, facts, flags, self.stop, console.print) for facts in usable}
        self._flags = flags
        self._console = console
        self._held = ExitStack()

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
                    if not self._flags.all_devices:
                        raise
                    self.left_out.append(DeviceLeftOut(serial, str(error)))
                    self._console.print(f"left out: {error}")
                    del self._devices[serial]
            if not self._devices:
                raise _none_usable(self.left_out)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            for device in self._devices.values():
                device.leave()


def _usable(adb: Adb, flags: DeviceFlags) -> tuple[tuple[DeviceFacts, ...], list[DeviceLeftOut]]:
    """The devices that can be used, and those that are left out.

    A device that is named must be usable; with ``all`` the usable ones are taken. Raises :class:`DeviceError` where
    there is none, or one that was named cannot be used.
    """
    wanted = flags.serials
    if not flags.all_devices and not wanted:
        wanted = (adb.choose(),)
    for serial in wanted:
        adb.connect(serial)
    left_out: list[DeviceLeftOut] = []
    usable: list[DeviceFacts] = []
    for found in find_devices(adb, wanted):
        problem = found.problem if found.facts is None else _why_not_used(found.facts, flags.taskset, usable)
        if found.facts is not None and not problem:
            usable.append(found.facts)
        elif wanted:
            raise DeviceError(problem, found.serial)
        else:
            left_out.append(DeviceLeftOut(found.serial, problem))
    if not usable:
        raise _none_usable(left_out)
    return tuple(usable), left_out


def _none_usable(left_out: Iterable[DeviceLeftOut]) -> DeviceError:
    reasons = "".join(f"\n  {entry.reason}" for entry in left_out)
    return DeviceError(f"no device can be used; evaltools device list says what to do{reasons}")


def _why_not_used(facts: DeviceFacts, mask: str, others: Sequence[DeviceFacts]) -> str:
    """Why a device cannot be used that is the same as one of ``others``, or lacks the CPUs of the mask; else empty."""
    for other in others:
        if facts.identity and facts.identity == other.identity:
            return (
                f"{facts.serial} is the same device as {other.serial}, connected twice, and would disturb itself; "
                "name one of the two in --serials"
            )
    return why_not_bound(facts, mask)


def why_not_bound(facts: DeviceFacts, mask: str) -> str:
    """Why a device has none of the CPUs of ``--taskset``; empty if it has some, or does not say."""
    masks = masks_of_cpus(facts.cpu_frequencies)
    named = "; ".join(f"{name} are {own}" for name, own in masks.items())
    if mask in KINDS_OF_CPUS and mask not in masks:
        return f"{facts.serial}: --taskset={mask}: it does not say that its CPUs differ; give a mask of them"
    if not mask or facts.cpus is None or mask in masks:
        return ""
    count = max([facts.cpus, *(cpu.cpu + 1 for cpu in facts.cpu_frequencies)])
    if int(mask, 16) % (1 << count):
        return ""
    return (
        f"{facts.serial}: --taskset={mask} names none of its {count} CPUs; give a mask of them, such as "
        f"{(1 << count) - 1:x} for all{f'; {named}' if named else ''}"
    )
