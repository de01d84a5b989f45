"""Every device that was asked for, with its facts, or with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import DeviceError
from evaltools.device.adb.facts import device_facts
from evaltools.device.adb.states import NOT_LISTED, USABLE, error_of_state, next_step
from evaltools.result.device import DeviceFacts, DeviceFinding, ListedDevice

_AT_ONCE: Final = 8
_AFTER_FAILURE: Final = "see the problem, then run evaltools device list again"


def find_devices(adb: Adb, serials: Sequence[str] = ()) -> tuple[DeviceFinding, ...]:
    """The devices named by ``serials`` in that order, or all, with what to do for each that cannot be used.

    Raises :class:`evaltools.device.adb.errors.ServerFailed` where there is no list.
    """
    return tuple(_finding(device, found) for device, found in look_at_devices(adb, serials))


def look_at_devices(
    adb: Adb, serials: Sequence[str] = ()
) -> tuple[tuple[ListedDevice, DeviceFacts | DeviceError], ...]:
    """The same devices, each with its facts, or with the error that asking for them gave.

    A device that is named and not listed gets the error ``not found``. One in another state than ``device`` gets the
    error of that state.
    """
    listed = {device.serial: device for device in adb.devices()}
    wanted = [listed.get(serial, ListedDevice(serial, NOT_LISTED)) for serial in serials] or list(listed.values())
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(zip(wanted, pool.map(lambda device: _facts_or_error(adb, device), wanted), strict=True))


def _facts_or_error(adb: Adb, device: ListedDevice) -> DeviceFacts | DeviceError:
    if device.state != USABLE:
        return error_of_state(device.serial, device.state, "adb shell")
    try:
        return device_facts(adb, device.serial)
    except DeviceError as error:
        return error


def _finding(device: ListedDevice, found: DeviceFacts | DeviceError) -> DeviceFinding:
    if isinstance(found, DeviceFacts):
        return DeviceFinding(device, found)
    if device.state != USABLE:
        return DeviceFinding(device, None, device.state, next_step(device.state))
    return DeviceFinding(device, None, str(found), _AFTER_FAILURE)
