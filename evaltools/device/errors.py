"""Every error of a device that evaltools raises on purpose, with exit code 3 where nothing else is said.

``kind`` says the same in a word, for results. The message says what was wrong, what was got, and the next step.
"""

from __future__ import annotations

from typing import ClassVar

from evaltools.errors import EvaltoolsError


class DeviceError(EvaltoolsError):
    """A device cannot do what was asked; ``serial`` names it, empty where it is not about one device."""

    exit_code = 3
    kind: ClassVar[str] = "device"

    def __init__(self, message: str, serial: str = "") -> None:
        super().__init__(message)
        self.serial = serial


class AdbMissing(DeviceError):
    """There is no adb binary, or it cannot be run."""

    kind = "adb missing"


class ServerFailed(DeviceError):
    """The adb server does not start, or gives no list of devices."""

    kind = "adb server"


class Unauthorized(DeviceError):
    """The device does not trust this computer, or the user may not open its USB port."""

    kind = "unauthorized"


class Offline(DeviceError):
    """The device is listed and does not answer, or is in a mode without a shell."""

    kind = "offline"


class NoSuchDevice(DeviceError):
    """No device has this serial number."""

    kind = "no such device"


class SeveralDevices(DeviceError):
    """There are several devices, and none is named."""

    exit_code = 2
    kind = "several devices"


class ConnectionLost(DeviceError):
    """The link or the device's daemon broke before a command said that it had ended; it may still run there."""

    kind = "connection lost"


class DeviceTimeout(DeviceError):
    """There was no answer within the time given; the command may still run on the device."""

    kind = "time-out"


class NoSpace(DeviceError):
    """A file does not fit on the device."""

    kind = "no space"


class NoPermission(DeviceError):
    """A folder of the device cannot be written, or a file there cannot be read."""

    kind = "permission"


class TransferFailed(DeviceError):
    """A file is not there, or did not arrive as it was sent."""

    kind = "transfer"


class FileMissing(TransferFailed):
    """A file that is to be fetched is not there."""


class CommandFailed(DeviceError):
    """A command that evaltools needs failed on the device."""

    kind = "command"


class DeviceBusy(DeviceError):
    """Another process, perhaps on another computer, uses the folder on the device."""

    kind = "in use"


class ProgramMissing(DeviceError):
    """What is to run is not on the device, or cannot be started there."""

    kind = "program missing"


class NotAlike(DeviceError):
    """A device runs another runtime, accelerator or model than those whose results its own would be joined with."""

    kind = "not alike"


class DeviceStopped(DeviceError):
    """What was under way was stopped from here."""

    exit_code = 130
    kind = "stopped"


MAY_PASS = (ConnectionLost, DeviceTimeout, Offline, NoSuchDevice, ServerFailed)
"""What a device that reboots or reconnects goes through, or an adb server that is started again; trying again helps."""
