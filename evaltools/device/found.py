"""Every device that was asked for, with its facts or with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evaltools.device.adb import Adb
from evaltools.device.errors import DeviceError
from evaltools.device.facts import device_facts
from evaltools.device.states import NOT_LISTED, USABLE, next_step
from evaltools.report.device_result import DeviceFinding, ListedDevice

_AT_ONCE: Final = 8
_AFTER_FAILURE: Final = "see the problem, then run evaltools device list again"


def find_devices(adb: Adb, serials: Sequence[str] = ()) -> tuple[DeviceFinding, ...]:
    """The devices named by ``serials`` in that order, or all; one that is named and not listed is ``not found``.

    Raises :class:`evaltools.device.errors.ServerFailed` where there is no list.
    """
    listed = {device.serial: device for device in adb.devices()}
    wanted = [listed.get(serial, ListedDevice(serial, NOT_LISTED)) for serial in serials] or list(listed.values())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda device: _finding(adb, device), wanted))


def _finding(adb: Adb, device: ListedDevice) -> DeviceFinding:
    if device.state != USABLE:
        return DeviceFinding(device, None, device.state, next_step(device.state))
    try:
        return DeviceFinding(device, device_facts(adb, device.serial))
    except DeviceError as error:
        return DeviceFinding(device, None, str(error), _AFTER_FAILURE)
