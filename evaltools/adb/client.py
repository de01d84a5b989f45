"""A client of adb: it runs the binary with a limit of time, proves that each answer is whole, and can be patient.

A command goes to a device's shell in a form by which the answer proves that it is whole. The ``kind`` of an error says
in a word what may have happened to the work, for results; the message says what was wrong, what was got, the next step.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.errors import EvaltoolsError, UsageError
from evaltools.text import last_words, printable

_STOP_LOOK_S: Final = 0.2
_INSTALL: Final = (
    "install Android's platform tools (Debian and Ubuntu: apt install adb), or give --adb=PATH or the variable ADB"
)
_LONGEST_QUOTE: Final = 200


class DeviceError(EvaltoolsError):
    """A device cannot do what was asked, however often; all errors of devices that are raised on purpose are of it."""

    exit_code = 3
    kind: ClassVar[str] = "device"


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


class DeviceInUse(DeviceError):
    """Another process has the lock of the device's folder."""

    kind = "in use"


class DeviceStopped(DeviceError):
    """What was under way was stopped from here."""

    exit_code = 130
    kind = "stopped"


MAY_PASS = (ConnectionLost, DeviceTimeout, DeviceAway)
"""What a device that reboots or reconnects goes through, or an adb server that is started again; trying again helps."""


class Answer(Struct, frozen=True):
    """The exit code of a command and what it printed; the code is negative where adb was ended.

    An exit code of 0 of adb itself proves nothing: it also exits with 0 where the connection breaks in the middle of a
    command. That of a command in the device's shell is proven by :func:`read_answer`.
    """

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """What it printed to stdout; bytes that are no UTF-8 are replaced."""
        return self.out.decode("utf-8", "replace")

    @property
    def complaints(self) -> str:
        """What it printed to stderr; bytes that are no UTF-8 are replaced."""
        return self.err.decode("utf-8", "replace")

    def quote(self) -> str:
        r"""The last line of stderr, else of stdout, to be put behind a message; empty where nothing was printed.

        >>> Answer(1, b"one\n", b"two\nthree\n").quote(), Answer(0, b"", b" \n").quote()
        ('; it printed last: three', '')
        """
        lines = (self.err.strip() or self.out.strip()).decode("utf-8", "replace").splitlines()
        return f"; it printed last: {printable(last_words(lines[-1], _LONGEST_QUOTE))}" if lines else ""


def wrap_command(command: str, mark: str) -> str:
    """The text for the device's shell: ``command``, then a mark on stderr, then a mark and the exit code on stdout.

    ``eval`` in a subshell keeps an ``exit``, an unclosed quote or a comment in the command from taking the marks away.
    ``mark`` must be new for each call.

    >>> wrap_command("exit 3", "m1")
    "( eval 'exit 3' ) < /dev/null; c=$?; printf %s m1e >&2; printf %s-%s. m1 $c"
    """
    return f"( eval {shlex.quote(command)} ) < /dev/null; c=$?; printf %s {mark}e >&2; printf %s-%s. {mark} $c"


def read_answer(out: bytes, err: bytes, mark: str) -> Answer | None:
    r"""The answer in the output of adb; None where the marks do not prove that it is whole.

    >>> read_answer(b"one\nm1-3.", b"m1e", "m1")
    Answer(code=3, out=b'one\n', err=b'')
    >>> read_answer(b"one\n", b"m1e", "m1") is None
    True
    """
    end = re.search(rb"%b-([0-9]{1,3})\." % mark.encode(), out)
    before, error_mark, after = err.partition(f"{mark}e".encode())
    if end is None or not error_mark:
        return None
    return Answer(int(end[1]), out[: end.start()] + out[end.end() :], before + after)


def find_adb(given: str = "") -> str:
    """The adb binary: ``given`` (the flag --adb), else the variable ADB, else the one in PATH.

    Raises :class:`UsageError` where one is named and cannot be run, :class:`DeviceError` where there is none.
    """
    named = given or os.environ.get("ADB", "")
    found = shutil.which(named or "adb")
    if found is not None:
        return found
    if named:
        source = f"--adb={given}" if given else f"ADB={named}"
        raise UsageError(f"{source} is not a program; give the path of the adb binary")
    raise DeviceError(f"adb is neither given nor in PATH; {_INSTALL}")


def run_adb(command: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
    """Run adb to its end, or end its process group after ``timeout_s`` seconds, and where ``stop`` is set.

    It writes into files: a server that it starts would keep a pipe open. Raises :class:`DeviceError` where the binary
    cannot be run.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as error:
            raise DeviceError(f"{command[0]} cannot be run: {error.strerror}; {_INSTALL}") from error
        limit = time.monotonic() + timeout_s
        try:
            while process.poll() is None and time.monotonic() < limit and not (stop is not None and stop.is_set()):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_LOOK_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        out.seek(0)
        err.seek(0)
        return Answer(process.returncode, out.read(), err.read())


Found = TypeVar("Found")

SHELL_TIMEOUT_S: Final = 20.0
_SERVER_TIMEOUT_S: Final = 15.0
_BETWEEN_TRIES_S: Final = 1.0
USABLE: Final = "device"
NOT_LISTED: Final = "not found"
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


def parse_devices(text: str) -> dict[str, str] | None:
    r"""The states of devices by their serial numbers, from ``adb devices``; None where the list's heading is missing.

    Lines before the heading are about the server. A serial number found by mDNS may hold a blank.

    >>> parse_devices("* daemon started\nList of devices attached\nR5\tdevice\nadb-X (2)._tcp\toffline\n")
    {'R5': 'device', 'adb-X (2)._tcp': 'offline'}
    """
    _, heading, listed = text.partition("List of devices")
    if not heading:
        return None
    pairs = [line.partition("\t") for line in listed.splitlines()[1:] if line.strip() and line[0] != "*"]
    return {serial.strip(): state.strip() or "unknown" for serial, _, state in pairs}


def next_step(state: str) -> str:
    """What to do about a device in this state, empty where it can be used.

    >>> next_step("recovery")
    'boot it into its system: adb reboot'
    """
    if state == USABLE:
        return ""
    step = next((step for known, step in _STEPS.items() if state.startswith(known)), None)
    return step or f"the state {state!r} is not known here; {_RECONNECT}"


def error_of_state(serial: str, state: str) -> DeviceError:
    """The error of a command that failed, by the state of the device afterwards.

    If that is good, the connection was lost for a moment.
    """
    if state == USABLE:
        return ConnectionLost(
            f"{serial}: the connection was lost during adb shell: no word that it ended; "
            "look at the cable or the network, then run it again"
        )
    kind = DeviceError if state.startswith(("unauthorized", "no permissions")) else DeviceAway
    return kind(f"{serial}: adb shell is not possible, the device is {state}; {next_step(state)}")


class Adb:
    """An adb server, and the binary that talks to it; all methods may be called from several threads.

    ``path`` is the adb binary (see :func:`find_adb`), which follows ADB_SERVER_SOCKET, ANDROID_ADB_SERVER_ADDRESS and
    ANDROID_ADB_SERVER_PORT.
    """

    def __init__(self, path: str = "") -> None:
        self.path = find_adb(path)
        self._starting = threading.Lock()
        self._server_runs = False

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
        """Run adb with these arguments.

        The adb server is started before the first command, and before one that follows a failure, since the server may
        have ended: then only the command itself prints, and several at once do not each start a server.
        """
        with self._starting:
            if not self._server_runs:
                run_adb([self.path, "start-server"], _SERVER_TIMEOUT_S)
                self._server_runs = True
        done = run_adb([self.path, *arguments], timeout_s, stop)
        if done.code != 0:
            self._server_runs = False
        return done

    def devices(self) -> dict[str, str]:
        """The states of the devices that the server knows, by their serial numbers.

        Raises :class:`DeviceAway` where it gives no list.
        """
        done = self.run(["devices"], _SERVER_TIMEOUT_S)
        found = parse_devices(done.text)
        if found is None:
            got = f"no answer in {_SERVER_TIMEOUT_S:g} s" if done.code < 0 else f"no list{done.quote()}"
            raise DeviceAway(
                f"{self.path} devices: {got}; look at the server with adb kill-server and adb start-server, "
                "and at ADB_SERVER_SOCKET and ANDROID_ADB_SERVER_PORT where they are set"
            )
        return found

    def choose(self) -> str:
        """The serial number to use where none is given: that in ANDROID_SERIAL, else of the only usable device.

        One that is named as HOST:PORT and is not listed is connected. Raises :class:`UsageError` where there are
        several, :class:`DeviceError` where there is none, or the error of the state that the device is in.
        """
        named = os.environ.get("ANDROID_SERIAL", "")
        if named:
            self.connect(named)
        found = {named: self.devices().get(named, NOT_LISTED)} if named else self.devices()
        usable = [serial for serial, state in found.items() if state == USABLE]
        if len(usable) > 1:
            raise UsageError(
                f"{len(usable)} devices are connected and none is named: {', '.join(usable)}; "
                "name one with --serials=SERIAL or the variable ANDROID_SERIAL"
            )
        if usable:
            return usable[0]
        if len(found) == 1:
            ((serial, state),) = found.items()
            raise error_of_state(serial, state)
        if found:
            states = ", ".join(f"{serial} is {state}" for serial, state in found.items())
            raise DeviceAway(f"no device can be used: {states}; evaltools device list says what to do")
        raise DeviceAway(f"no device is connected; {next_step(NOT_LISTED)}")

    def connect(self, serial: str) -> None:
        """Connect to a device at HOST:PORT; others come back by themselves. Its state shows whether it worked."""
        if ":" in serial:
            self.run(["connect", serial], _SERVER_TIMEOUT_S)


class Link(Struct, frozen=True):
    """The way to one device, which may break: ``patience_s`` are the seconds that a device may be away.

    ``stop`` is set to have everything ended that is under way.
    """

    adb: Adb
    serial: str
    patience_s: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)

    def unstoppable(self, patience_s: float) -> Link:
        """The same link for what must be done at the end, with no more than so much patience."""
        return replace(self, patience_s=min(self.patience_s, patience_s), stop=threading.Event())

    def run(self, arguments: Sequence[str], timeout_s: float) -> Answer:
        """Run adb for this device; raises :class:`DeviceStopped` where ``stop`` is set."""
        done = self.adb.run(["-s", self.serial, *arguments], timeout_s, self.stop)
        self.require_no_stop()
        return done

    def shell(self, command: str, timeout_s: float = SHELL_TIMEOUT_S) -> Answer:
        """Run a command in the device's shell, with empty stdin; an exit code other than 0 is not an error here.

        Raises :class:`DeviceTimeout` after ``timeout_s`` seconds, :class:`DeviceStopped` where ``stop`` is set
        meanwhile, and :class:`ConnectionLost` where the answer is not whole (the command may then still run), or the
        error of the state that the device is in. adb takes words of up to about 120 kB.
        """
        serial, mark = self.serial, f"evaltools-{uuid.uuid4().hex}"
        done = self.adb.run(["-s", serial, "shell", wrap_command(command, mark)], timeout_s, self.stop)
        answer = read_answer(done.out, done.err, mark)
        if answer is not None:
            return answer
        self.require_no_stop()
        if f"{mark}e".encode() in done.out:  # what belongs to stderr came on stdout
            raise DeviceError(f"{serial}: its shell gives no exit codes; use Android 7 or later")
        state = self.adb.devices().get(serial, NOT_LISTED)
        if done.code < 0 and state == USABLE:
            raise DeviceTimeout(
                f"{serial}: adb shell gave no answer within {timeout_s:g} s; the command may still run there. "
                "Look at the device, the cable and the network"
            )
        # If it printed anything, the device was connected at that time, whatever its state is now.
        error = error_of_state(serial, USABLE if done.out else state)
        raise type(error)(f"{error}{done.quote()}")

    def patiently(self, act: Callable[[], Found]) -> Found:
        """Do ``act``, again and again while the device or the adb server is away, for :attr:`patience_s` at most.

        The seconds count from the first failure on; after them the last error is raised. ``act`` must be repeatable: it
        may have been done although its answer was lost. Raises :class:`DeviceStopped` between two tries.
        """
        limit: float | None = None
        while True:
            self.require_no_stop()
            try:
                return act()
            except MAY_PASS:
                now = time.monotonic()
                limit = now + self.patience_s if limit is None else limit
                if now >= limit:
                    raise
            self.stop.wait(min(_BETWEEN_TRIES_S, limit - now))
            self.require_no_stop()
            self.adb.connect(self.serial)

    def require_no_stop(self) -> None:
        """Raise :class:`DeviceStopped` where ``stop`` is set."""
        if self.stop.is_set():
            raise DeviceStopped(f"{self.serial}: stopped as asked; run it again to go on")
