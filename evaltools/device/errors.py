"""Every error of a device that evaltools raises on purpose, with exit code 3 where nothing else is said.

``kind`` says in a word what may have happened to the work, for results. The message says what was wrong, what was got,
and the next step.
"""

from __future__ import annotations

from typing import ClassVar

from evaltools.errors import EvaltoolsError


class DeviceError(EvaltoolsError):
    """A device cannot do what was asked, however often; ``serial`` names it, empty where it is not about one device."""

    exit_code = 3
    kind: ClassVar[str] = "device"

    def __init__(self, message: str, serial: str = "") -> None:
        super().__init__(message)
        self.serial = serial


class DeviceAway(DeviceError):
    """The device, or the adb server, is not there or does not answer."""

    kind = "away"


class ConnectionLost(DeviceError):
    """The link or the device's daemon broke before a command said that it had ended; it may still run there."""

    kind = "connection lost"


class DeviceTimeout(DeviceError):
    """There was no answer within the time given; the command may still run on the device."""

    kind = "time-out"


class CommandFailed(DeviceError):
    """A command failed on the device, or a file did not arrive as it was sent; another try may help."""

    kind = "command"


class FileMissing(CommandFailed):
    """A file that is to be fetched is not there."""


class DeviceStopped(DeviceError):
    """What was under way was stopped from here."""

    exit_code = 130
    kind = "stopped"


MAY_PASS = (ConnectionLost, DeviceTimeout, DeviceAway)
"""What a device that reboots or reconnects goes through, or an adb server that is started again; trying again helps."""
