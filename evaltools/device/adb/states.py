"""Reads the list of ``adb devices -l``, and says what to do in each state of a device."""

from __future__ import annotations

import re
from typing import Final

from evaltools.device.adb.errors import ConnectionLost, DeviceError, NoSuchDevice, Offline, Unauthorized
from evaltools.result.device import ListedDevice

USABLE: Final = "device"
NOT_LISTED: Final = "not found"
_HEADER: Final = "List of devices"
_FIELDS: Final = {
    "usb": "port",
    "product": "product",
    "model": "model",
    "device": "name",
    "transport_id": "transport_id",
}
_TRUST: Final = (
    "unlock the device and accept the question 'Allow USB debugging?', or run adb kill-server and plug again"
)
_UDEV: Final = "give your user the USB port: add a udev rule for the device (package android-sdk-platform-tools-common)"
_RECONNECT: Final = "unplug and plug it again, or run adb reconnect offline (adb connect for HOST:PORT)"
_REBOOT: Final = "boot it into its system: adb reboot"
_STEPS: Final = {
    "unauthorized": _TRUST,
    "authorizing": _TRUST,
    "no permissions": _UDEV,
    "offline": _RECONNECT,
    "connecting": "wait a second and try again",
    "bootloader": "boot it into its system: fastboot reboot",
    "host": "it is a host, not a device; name another one",
    "recovery": _REBOOT,
    "rescue": _REBOOT,
    "sideload": _REBOOT,
    NOT_LISTED: "plug it in and allow USB debugging, or run adb connect HOST:PORT; adb devices lists what is there",
}
_STATES: Final = "|".join([USABLE, *(state for state in _STEPS if state != NOT_LISTED)])
_LINE: Final = re.compile(
    rf"(?P<serial>\S.*?)\s+(?P<state>(?:{_STATES})\b.*?)(?P<fields>(?:\s+(?:{'|'.join(_FIELDS)}):\S*)*)\s*"
)
_REFUSED: Final = ("unauthorized", "no permissions")


def parse_devices(text: str) -> tuple[ListedDevice, ...] | None:
    r"""The devices in the output of ``adb devices -l``; None where the list's heading is missing.

    Lines before the heading are about the server. Serial numbers found by mDNS may hold a blank, and the state
    ``no permissions`` carries an explanation.

    >>> text = "List of devices attached\nR5 device usb:1-2 product:p model:Pixel_7 device:d transport_id:3\n"
    >>> (found,) = parse_devices(text) or ()
    >>> found.serial, found.state, found.model, found.port
    ('R5', 'device', 'Pixel_7', '1-2')
    """
    lines = text.splitlines()
    headings = [number for number, line in enumerate(lines) if line.startswith(_HEADER)]
    if not headings:
        return None
    found = [_parse_line(line) for line in lines[headings[-1] + 1 :] if line.strip() and not line.startswith("*")]
    return tuple(found)


def _parse_line(line: str) -> ListedDevice:
    match = _LINE.fullmatch(line.strip())
    if match is None:
        serial, _, state = line.strip().partition(" ")
        return ListedDevice(serial, state.strip() or "unknown")
    pairs = [field.partition(":") for field in match["fields"].split()]
    return ListedDevice(match["serial"], match["state"], **{_FIELDS[key]: value for key, _, value in pairs})


def next_step(state: str) -> str:
    """What to do about a device in this state, empty where it can be used.

    >>> next_step("recovery")
    'boot it into its system: adb reboot'
    """
    if state == USABLE:
        return ""
    for known, step in _STEPS.items():
        if state.startswith(known):
            return step
    return f"the state {state!r} is not known here; {_RECONNECT}"


def error_of_state(serial: str, state: str, doing: str) -> DeviceError:
    """The error of an action that failed, from the device's state afterwards.

    ``doing`` is the action, such as ``adb shell``. If the device's state is good, it lost the connection for a moment.
    """
    if state == USABLE:
        return ConnectionLost(
            f"{serial}: the connection was lost during {doing}: no word that it ended; "
            "look at the cable or the network, then run it again",
            serial,
        )
    kind: type[DeviceError] = Offline
    if state == NOT_LISTED:
        kind = NoSuchDevice
    elif state.startswith(_REFUSED):
        kind = Unauthorized
    return kind(f"{serial}: {doing} is not possible, the device is {state}; {next_step(state)}", serial)
