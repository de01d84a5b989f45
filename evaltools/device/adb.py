"""A client of adb: it runs the binary as a subprocess, proves that each answer is whole, and can be patient."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from evaltools.device.errors import (
    MAY_PASS,
    ConnectionLost,
    DeviceError,
    DeviceStopped,
    DeviceTimeout,
    NoSuchDevice,
    Offline,
    ServerFailed,
    SeveralDevices,
    Unauthorized,
)
from evaltools.device.process import Answer, find_adb, read_answer, run_adb, wrap_command
from evaltools.result.device import ListedDevice

Found = TypeVar("Found")

SHELL_TIMEOUT_S: Final = 20.0
_SERVER_TIMEOUT_S: Final = 15.0
_BETWEEN_TRIES_S: Final = 1.0
USABLE: Final = "device"
NOT_LISTED: Final = "not found"
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
_RECONNECT: Final = "unplug and plug it again, or run adb reconnect offline (adb connect for HOST:PORT)"
_REBOOT: Final = "boot it into its system: adb reboot"
_STEPS: Final = {
    "unauthorized": _TRUST,
    "authorizing": _TRUST,
    "no permissions": "give your user the USB port: add a udev rule for the device (package "
    "android-sdk-platform-tools-common)",
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
    headings = [number for number, line in enumerate(lines) if line.startswith("List of devices")]
    if not headings:
        return None
    return tuple(_listed(line.strip()) for line in lines[headings[-1] + 1 :] if line.strip() and line[0] != "*")


def _listed(line: str) -> ListedDevice:
    match = _LINE.fullmatch(line)
    if match is None:
        serial, _, state = line.partition(" ")
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
    step = next((step for known, step in _STEPS.items() if state.startswith(known)), None)
    return step or f"the state {state!r} is not known here; {_RECONNECT}"


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
    elif state.startswith(("unauthorized", "no permissions")):
        kind = Unauthorized
    return kind(f"{serial}: {doing} is not possible, the device is {state}; {next_step(state)}", serial)


class Adb:
    """The devices of one adb server.

    ``path`` is the adb binary (see :func:`find_adb`). ``port`` names a server of its own; without it adb follows
    ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_ADDRESS and ANDROID_ADB_SERVER_PORT. ``environment`` replaces that of this
    process. All methods may be called from several threads.
    """

    def __init__(self, path: str = "", port: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.path = find_adb(path, environment)
        self.port = port
        self._environment = environment
        self._starting = threading.Lock()
        self._server_runs = False

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
        """Run adb with these arguments.

        The adb server is started before the first command, and before one that follows a failure, since the server may
        have ended: then only the command itself prints, and several at once do not each start a server.
        """
        command = [self.path, *([] if self.port is None else ["-P", str(self.port)])]
        with self._starting:
            if not self._server_runs:
                run_adb([*command, "start-server"], _SERVER_TIMEOUT_S, self._environment)
                self._server_runs = True
        done = run_adb([*command, *arguments], timeout_s, self._environment, stop)
        if done.code != 0:
            self._server_runs = False
        return done

    def devices(self) -> tuple[ListedDevice, ...]:
        """The devices that the server knows; raises :class:`ServerFailed` where it gives no list."""
        done = self.run(["devices", "-l"], _SERVER_TIMEOUT_S)
        found = parse_devices(done.text)
        if found is None:
            got = f"no answer in {_SERVER_TIMEOUT_S:g} s" if done.code < 0 else f"no list{done.quote()}"
            raise ServerFailed(
                f"{self.path} devices: {got}; look at the server with adb kill-server and adb start-server, "
                "and at ADB_SERVER_SOCKET and ANDROID_ADB_SERVER_PORT where they are set"
            )
        return found

    def state(self, serial: str) -> str:
        """The state of a device in adb's words, ``not found`` where it is not listed."""
        return next((found.state for found in self.devices() if found.serial == serial), NOT_LISTED)

    def choose(self, serial: str = "") -> str:
        """The serial number to use: the one given, else ANDROID_SERIAL, else that of the only usable device.

        One that is named as HOST:PORT and is not listed is connected. Raises :class:`SeveralDevices`,
        :class:`NoSuchDevice`, or the error of the state that the device is in.
        """
        variables = os.environ if self._environment is None else self._environment
        named = serial or variables.get("ANDROID_SERIAL", "")
        if named:
            self.reconnect_if_unlisted(named)
            state = self.state(named)
            if state != USABLE:
                raise error_of_state(named, state, "adb shell")
            return named
        found = self.devices()
        usable = [device.serial for device in found if device.state == USABLE]
        if len(usable) > 1:
            raise SeveralDevices(
                f"{len(usable)} devices are connected and none is named: {', '.join(usable)}; "
                "name one with --serials=SERIAL or the variable ANDROID_SERIAL"
            )
        if usable:
            return usable[0]
        if len(found) == 1:
            raise error_of_state(found[0].serial, found[0].state, "adb shell")
        if found:
            states = ", ".join(f"{device.serial} is {device.state}" for device in found)
            raise NoSuchDevice(f"no device can be used: {states}; evaltools device list says what to do")
        raise NoSuchDevice(f"no device is connected; {next_step(NOT_LISTED)}")

    def features(self, serial: str) -> tuple[str, ...]:
        """The features that the device's adb and the host's have in common, in order."""
        done = self.run(["-s", serial, "features"], _SERVER_TIMEOUT_S)
        if done.code != 0:
            raise self._why(serial, "adb features", done, _SERVER_TIMEOUT_S)
        return tuple(sorted(set(done.text.split())))

    def shell(
        self, serial: str, command: str, timeout_s: float = SHELL_TIMEOUT_S, stop: threading.Event | None = None
    ) -> Answer:
        """Run a command in the device's shell, with empty stdin; an exit code other than 0 is not an error here.

        Raises :class:`DeviceTimeout` after ``timeout_s`` seconds, :class:`DeviceStopped` where ``stop`` is set
        meanwhile, and :class:`ConnectionLost` where the answer is not whole (the command may then still run), or the
        error of the state that the device is in. adb takes words of up to about 120 kB.
        """
        mark = f"evaltools-{uuid.uuid4().hex}"
        done = self.run(["-s", serial, "shell", wrap_command(command, mark)], timeout_s, stop)
        answer = read_answer(done.out, done.err, mark)
        if answer is None:
            stop_if_asked(serial, stop)
            if f"{mark}e".encode() in done.out:  # what belongs to stderr came on stdout
                raise DeviceError(f"{serial}: its shell gives no exit codes; use Android 7 or later", serial)
            raise self._why(serial, "adb shell", done, timeout_s)
        return answer

    def reconnect(self, serial: str) -> None:
        """Connect again to a device at HOST:PORT; other devices come back by themselves.

        Its state shows whether it worked.
        """
        if ":" in serial:
            self.run(["connect", serial], _SERVER_TIMEOUT_S)

    def reconnect_if_unlisted(self, serial: str) -> None:
        """Connect again to a device at HOST:PORT if the server does not list it."""
        if self.state(serial) == NOT_LISTED:
            self.reconnect(serial)

    def _why(self, serial: str, doing: str, done: Answer, timeout_s: float) -> DeviceError:
        """The error of a command that failed, from its time and the device's state; adb's messages are not read.

        If it printed anything, the device was connected at that time, whatever its state is now.
        """
        state = self.state(serial)
        if done.code < 0 and state == USABLE:
            return DeviceTimeout(
                f"{serial}: {doing} gave no answer within {timeout_s:g} s; the command may still run there. "
                "Look at the device, the cable and the network, or allow more time",
                serial,
            )
        error = error_of_state(serial, USABLE if done.out else state, doing)
        return type(error)(f"{error}{done.quote()}", serial)


def patiently(
    adb: Adb, serial: str, act: Callable[[], Found], patience_s: float, stop: threading.Event | None = None
) -> Found:
    """Do ``act``, again and again while the device or the adb server is away; between the tries it tries to reconnect.

    ``patience_s`` is the number of seconds, from the first failure on, after which the last error is raised. It does
    not interrupt a try, and 0 means one try. ``act`` must be repeatable: it may have been done although its answer was
    lost. Raises :class:`DeviceStopped` between two tries where ``stop`` is set.
    """
    limit: float | None = None
    while True:
        stop_if_asked(serial, stop)
        try:
            return act()
        except MAY_PASS:
            now = time.monotonic()
            limit = now + patience_s if limit is None else limit
            if now >= limit:
                raise
            pause = min(_BETWEEN_TRIES_S, limit - now)
        rest(pause, stop)
        stop_if_asked(serial, stop)
        adb.reconnect(serial)


def stop_if_asked(serial: str, stop: threading.Event | None) -> None:
    """Raise :class:`DeviceStopped` where ``stop`` is set."""
    if stop is not None and stop.is_set():
        raise DeviceStopped(f"{serial}: stopped as asked; run it again to go on", serial)


def rest(seconds: float, stop: threading.Event | None = None) -> None:
    """Wait, at most until ``stop`` is set."""
    if stop is None:
        time.sleep(seconds)
    else:
        stop.wait(seconds)
