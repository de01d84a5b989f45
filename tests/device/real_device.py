"""Devices that are the real adb daemon, on ports of a network of their own that nothing outside can reach.

The daemon asks nobody who they are and gives a shell. So it runs in a network namespace (and a user namespace, where
root is not needed), without vsock, which namespaces do not divide. Every device sees this machine's files with a
``/data/local/tmp`` of its own. Namespaces of processes end whatever ran in them, and mounts, when the context ends, or
when the tests are killed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shlex
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

import psutil
from msgspec import Struct


class Facts(Struct, frozen=True):
    """What a device says of itself.

    Attributes:
        model: e.g. of a telephone
        sdk: Android's API level
        soc: the processor's model
        abi: the processor's instruction set, as Android calls it
        temperature: of the battery, tenths of a degree Celsius
        thermal_status: Android's, 0 (none) to 6 (shutdown)
    """

    model: str = "Real daemon"
    sdk: int = 34
    soc: str = "EV100"
    abi: str = "x86_64"
    temperature: int = 287
    thermal_status: int = 0

    @property
    def properties(self) -> dict[str, str]:
        """Names and values of ``getprop``."""
        return {
            "ro.product.cpu.abi": self.abi,
            "ro.product.model": self.model,
            "ro.build.version.sdk": str(self.sdk),
            "ro.soc.model": self.soc,
        }


def getprop(facts: Facts) -> str:
    """A program that answers like Android's of that name."""
    cases = [f"  {name}) echo {shlex.quote(value)} ;;" for name, value in facts.properties.items()]
    lines = [f"  echo {shlex.quote(f'[{name}]: [{value}]')}" for name, value in facts.properties.items()]
    return "\n".join(
        ["#!/bin/sh", "if [ $# = 0 ]; then", *lines, "  exit", "fi", 'case "$1" in', *cases, "  *) echo ;;", "esac", ""]
    )


def dumpsys(facts: Facts) -> str:
    """A program that answers like Android's of that name, for three services."""
    celsius = facts.temperature / 10
    return f"""#!/bin/sh
case "$1" in
battery) cat <<'END'
Current Battery Service state:
  AC powered: false
  USB powered: true
  status: 2
  health: 2
  present: true
  level: 93
  scale: 100
  voltage: 4341
  temperature: {facts.temperature}
  technology: Li-ion
END
;;
thermalservice) cat <<'END'
IsStatusOverride: false
Thermal Status: {facts.thermal_status}
Cached temperatures:
HAL Ready: true
HAL connection:
\tThermalHAL 2.0 connected: yes
Current temperatures from HAL:
\tTemperature{{mValue={celsius}, mType=2, mName=battery, mStatus={facts.thermal_status}}}
Current cooling devices from HAL:
END
;;
SurfaceFlinger) echo 'GLES: Qualcomm, Adreno (TM) 740, OpenGL ES 3.2 V@0676.65' ;;
*) echo "Can't find service: $1" >&2 ;;
esac
"""


if TYPE_CHECKING:
    from tests.device.fault_proxy import FaultProxy

SCRIPT: Final = "scripts/get_adbd.py"
FIRST_PORT: Final = 17555
"""Outside 5555-5585, where an adb server looks for devices by itself."""
TESTED_BY: Final = "EVALTOOLS_TESTED_BY"
"""A variable of everything that runs on a device: the process of the tests, of which several may run at once."""
_TOOLS: Final = ("unshare", "nsenter", "ip", "mount", "chroot")
_SOON: Final = 20
"""Seconds that anything may take that takes less than one."""
_LONG: Final = 60
_PAUSE: Final = 0.05
_SOCKET_CALL: Final = {"x86_64": 41, "aarch64": 198}
_VSOCK: Final = 40

# Waits for its standard input to end, and for processes whose parents have ended, as a first process must.
_WAIT: Final = "echo ready; exec 3<&0; cat <&3 >/dev/null & wait $!"
_BOOT_NETWORK: Final = f"ip link set lo up && {{ {_WAIT}; }}"
_BOOT_DEVICE: Final = """set -e
root=$1 own=$2
mount -t tmpfs tmpfs "$root"
mirror() {
  for path in "$1"/* "$1"/.[!.]*; do
    case $path in /data | /data/local | /proc) continue ;; esac
    if [ -L "$path" ]; then cp -P "$path" "$root$path"
    elif [ -d "$path" ]; then mkdir "$root$path"; mount --rbind "$path" "$root$path"
    elif [ -f "$path" ]; then : >"$root$path"; mount --bind "$path" "$root$path"; fi
  done
}
mkdir -p "$root/data/local/tmp" "$root/proc"
mirror ""
mirror /data
mount --bind "$own" "$root/data/local/tmp"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
exec chroot "$root" /bin/sh -c 'cd /; WAIT'
""".replace("WAIT", _WAIT)


class NoNetwork(Exception):
    """A network of its own, or a device on it, cannot be had here, and why."""


def missing_programs() -> str | None:
    """Why there is no real client or daemon here, or None."""
    for name in ("EVALTOOLS_ADB", "EVALTOOLS_ADBD"):
        program = os.environ.get(name)
        if not program:
            return f"{name} is not set: run `python {SCRIPT}`, then `. .adbd/env.sh`"
        if not os.access(program, os.X_OK):
            return f"{name}={program} is not a program: run `python {SCRIPT}` anew"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"a network of its own needs {', '.join(missing)}"
    if platform.machine() not in _SOCKET_CALL:
        return f"vsock cannot be kept from the daemon on {platform.machine()}, only on {', '.join(_SOCKET_CALL)}"
    return None


class _Machine:
    """A first process that waits until its standard input ends; with it ends everything in its namespaces."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if said != "ready\n":
            said += self._process.stdout.read()
            self.end()
            raise NoNetwork(f"{shlex.join(command[:3])} ...: {said.strip()}")

    @property
    def first(self) -> int:
        """The first process in the namespaces, as the outside counts."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            if _number_inside(process.pid) == 1:
                return process.pid
        raise NoNetwork(f"no first process below {self._process.pid}")

    def end(self) -> None:
        """End it and all that runs in it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_SOON)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class Network:
    """A network with nothing but a loopback, for devices and the adb that talks to them.

    Raises :class:`NoNetwork` on entering, where this machine does not allow it.

    Attributes:
        adb: a program that runs the real client, and so its server, in this network
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.adb = folder / "adb"
        self._users: list[str] = []

    def __enter__(self) -> Network:
        reason = missing_programs()
        if reason is not None:
            raise NoNetwork(reason)
        namespaces = ["--net", "--pid", "--fork", "--kill-child"]
        boot = ["sh", "-c", _BOOT_NETWORK]
        own_user = ["--user", "--map-root-user"]
        try:
            self._machine = _Machine(["unshare", *own_user, *namespaces, *boot])
            self._users = ["--user", "--preserve-credentials"]
        except NoNetwork:
            if os.geteuid() != 0:
                raise
            self._machine = _Machine(["unshare", *namespaces, *boot])
        self._folder.mkdir(parents=True, exist_ok=True)
        # Keys and logs of the client stay in the folder.
        own_files = ["env", f"HOME={self._folder}", f"TMPDIR={self._folder}"]
        command = self.command(*own_files, os.environ["EVALTOOLS_ADB"])
        self.adb.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        self.adb.chmod(0o755)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._machine.end()

    def command(self, *command: str) -> list[str]:
        """The command that runs another in this network, in the same working folder."""
        return [*self.entering(self._machine.first), "--", *command]

    def entering(self, process: int) -> list[str]:
        """The command that enters the network and the processes of ``process``, without its end."""
        return ["nsenter", f"--target={process}", *self._users, "--net", "--pid"]

    def run_adb(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run the real client, whatever the environment says of servers and devices."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("ADB_", "ANDROID_"))}
        command = [str(self.adb), *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_LONG, check=False
        )

    def states(self) -> dict[str, str]:
        """Serial and state of every device that the adb server of this network knows."""
        lines = self.run_adb("devices").stdout.decode().splitlines()
        fields = [line.split("\t") for line in lines if "\t" in line]
        return dict(fields)

    def connect(self, device: RealDevice | FaultProxy) -> None:
        """Let the adb server of this network know a device, and wait until it is ready; raises ``TimeoutError``."""

        def is_ready() -> bool:
            self.run_adb("connect", device.serial)
            return self.states().get(device.serial) == "device"

        wait_until(is_ready, f"adb does not know {device.serial}; the daemon wrote: {device.log}")


class RealDevice:
    """A device that is the real daemon, running from entering the context to its end.

    Attributes:
        network: where it runs
        folder: its ``/data/local/tmp``, as the outside sees it
        port: the daemon's
        facts: what it says of itself
    """

    def __init__(self, network: Network, folder: Path, port: int = FIRST_PORT, facts: Facts | None = None) -> None:
        self.network = network
        self.folder = folder / "tmp"
        self.port = port
        self.facts = facts or Facts()
        self._base = folder
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def serial(self) -> str:
        """The name under which adb knows it."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What the daemon wrote."""
        return (self._base / "adbd.log").read_text(errors="replace")

    def __enter__(self) -> RealDevice:
        root = self._base / "root"
        for folder in (self.folder, root):
            folder.mkdir(parents=True)
        self.add_program("getprop", getprop(self.facts))
        self.add_program("dumpsys", dumpsys(self.facts))
        boot = ["sh", "-c", _BOOT_DEVICE, "sh", str(root), str(self.folder)]
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        self._machine = _Machine(self.network.command(*namespaces, *boot))
        try:
            self.start_daemon()
        except BaseException:
            self._machine.end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._machine.end()
        if self._daemon is not None:
            self._daemon.wait()

    def add_program(self, name: str, text: str) -> None:
        """Put a program into the first folder of the device's search path, at any time; it replaces one of its name.

        ``text`` is the whole file, from ``#!`` on.
        """
        program = self._base / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)

    def start_daemon(self) -> None:
        """Start the daemon; ``adb connect`` finds it soon after."""
        search = f"PATH={self._base / 'bin'}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        variables = [search, f"ADBD_PORT={self.port}", "HOME=/data/local/tmp", "LANG=C.UTF-8"]
        variables.append(f"{TESTED_BY}={os.getpid()}")
        inside = ["env", "--ignore-environment", "--chdir=/", *variables, os.environ["EVALTOOLS_ADBD"]]
        first = self._machine.first
        command = [*self.network.entering(first), "--mount", "--root", "--", *inside]
        with (self._base / "adbd.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_vsock_filter()
            )
        wait_until(lambda: _is_listening(first, self.port), f"no daemon listens on {self.port}; it wrote: {self.log}")

    def kill_daemon(self) -> None:
        """Kill the daemon alone; what it started and what left its group goes on, as on a telephone."""
        assert self._daemon is not None
        for process in psutil.Process(self._daemon.pid).children():
            process.kill()
        self._daemon.wait()
        self._daemon = None


def wait_until(is_so: Callable[[], bool], otherwise: str) -> None:
    """Wait until something is so; raises ``TimeoutError`` with what is the matter otherwise."""
    end = time.monotonic() + _SOON
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(_PAUSE)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))


def _vsock_filter() -> Callable[[], None]:
    """What a process calls before its program so that ``socket(AF_VSOCK, ...)`` fails in it and all that it starts."""
    load, equal, end = 0x20, 0x15, 0x06
    not_supported, allowed = 0x00050000 | errno.EAFNOSUPPORT, 0x7FFF0000
    steps = [
        (load, 0, 0, 0),  # the number of the call
        (equal, 0, 3, _SOCKET_CALL[platform.machine()]),
        (load, 0, 0, 16),  # its first argument
        (equal, 0, 1, _VSOCK),
        (end, 0, 0, not_supported),
        (end, 0, 0, allowed),
    ]
    program = _Filter(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def forbid() -> None:
        no_new_privileges, seccomp, filtering = 38, 22, 2
        if prctl(no_new_privileges, 1, 0, 0, 0) or prctl(seccomp, filtering, ctypes.byref(program)):
            raise OSError(ctypes.get_errno(), "vsock cannot be forbidden")

    return forbid


def _number_inside(process: int) -> int:
    """The number of a process in the innermost of its namespaces."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    raise NoNetwork("this kernel does not tell the numbers of processes in namespaces")


def _is_listening(process: int, port: int) -> bool:
    """Whether anything listens on a TCP port in the network of a process."""
    listening = "0A"
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if state == listening and int(local.split(":")[1], 16) == port:
                return True
    return False
