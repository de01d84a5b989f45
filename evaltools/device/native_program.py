"""TensorFlow's binaries on a device: their command lines, and several runs with what each printed, wrote and logged.

The native tools take a flag that they do not know for a misspelt word, warn and go on without it; so none is printed
that they lack: what they cannot do is refused here.
"""

from __future__ import annotations

import shlex
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.adb.client import CommandFailed, DeviceError
from evaltools.adb.transfer import sha256_of
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.device.device import Device
from evaltools.device.flags import DeviceFlags
from evaltools.errors import UsageError
from evaltools.gone import PROGRAMS_GONE
from evaltools.native.logs.delegates import delegate_lines
from evaltools.request import Options
from evaltools.result.device import DeviceFacts, DeviceWork
from evaltools.result.facts import RuntimeUsed
from evaltools.text import last_lines, printable

_ELSEWHERE: Final = "leave it out, or take --device_program=evaltools"
_DIGITS_OF_SHA256: Final = 12


def refuse_options(options: Options, program: str) -> None:
    """Raise :class:`UsageError` for the first option that has no effect on a native program.

    Flags of configurations are looked at by :func:`configuration_flags`, when it prints them.
    """
    for name, value in options.stated.items():
        parameter = options.parameters[name]
        refused = parameter.not_native
        if refused is None or name in CONFIGURATION_PARAMETERS:
            continue
        first = value[0] if isinstance(value, tuple) else value
        if first not in refused.harmless and not parameter.is_as_left_out(first):
            raise UsageError(
                f"{parameter.format(first)} has no effect with --device_program={program}: {refused.reason}; "
                f"{_ELSEWHERE}"
            )


def require_binary(flags: DeviceFlags, command: str) -> Path:
    """The binary that was given; raises :class:`UsageError` where there is none."""
    binary = flags.native_binary
    if binary is None:
        raise UsageError(f"--device_program=native needs --native_binary=PATH, {command}'s program for the device")
    if instead := PROGRAMS_GONE.get(binary.name):
        raise UsageError(f"--native_binary={binary} is gone: {instead}")
    if not binary.is_file():
        raise UsageError(f"--native_binary={binary}: no such file; build it with bazel for the device's ABI")
    return binary


def native_runtime(binary: Path) -> RuntimeUsed:
    """What ran, as a result states it; native tools state no version: it is that of their content."""
    return RuntimeUsed("native", binary.name, f"sha256 {sha256_of(binary)[:_DIGITS_OF_SHA256]}", "default")


_NOW: Final = "t=$(date '+%m-%d %H:%M:%S.000')"
# An earlier process may have had the same number.
_LOGCAT: Final = 'command -v logcat > /dev/null && logcat -d -v threadtime -T "$t" --pid=$p'
# The program that writes crash dumps is another process.
_CRASHES: Final = 'command -v logcat > /dev/null && logcat -d -b crash -v threadtime -T "$t"'
_KINDS: Final = ("out", "err", "code", "log", "crash")
_OUTPUT: Final = "proto"
REFUSED, UNREADY = range(3, 5)
"""Exit codes of scripts with steps: one says why it does not begin, the files of another could not be made ready."""
_SIGNALLED: Final = 128
KILLED: Final = _SIGNALLED + signal.SIGKILL
_WAS_KILLED: Final = "was killed there (SIGKILL)"
_NOT_STARTED: Final = (126, 127)
"""What a shell ends with where it cannot run a program, or does not find it or what it needs."""
_ANDROID: Final = {
    "arm64-v8a": "android_arm64",
    "armeabi-v7a": "android_arm",
    "x86_64": "android_x86_64",
    "x86": "android_x86",
}
_BOARDS: Final = {"aarch64": "elinux_aarch64", "armv7l": "elinux_armhf"}
"""TensorFlow's configurations of bazel, by Android's ABI and by what ``uname -m`` says."""


class ProgramRun(Struct, frozen=True):
    """A run of a native program on a device: of a binary, or of the app, of which there is only what it logged.

    ``code`` is its exit code. ``logcat`` is its part of Android's log. ``output`` is the file that it wrote, None where
    it wrote none. ``crash`` is what Android's crash dump says, empty where there is none. ``failure`` says why it could
    not be started, or did not come to its end; empty where it did, or only its code is known.
    """

    out: str
    err: str = ""
    code: int = 0
    logcat: str = ""
    output: bytes | None = None
    crash: str = ""
    failure: str = ""

    @property
    def printed(self) -> str:
        """What it printed to both streams."""
        return f"{self.out}\n{self.err}"

    @property
    def delegate_lines(self) -> tuple[str, ...]:
        """What it and its delegates printed or logged of what was delegated."""
        return delegate_lines(f"{self.printed}\n{self.logcat}")


def output_file(step: int) -> str:
    """The name of the file that a step writes."""
    return f"{_OUTPUT}-{step}"


def native_script(binary: str, steps: Sequence[Sequence[str]], affinity: str = "") -> str:
    """A shell command that runs ``binary`` with the arguments of each step, whatever their exit codes.

    ``binary`` is a path on the device; each step writes :func:`output_file` of its number. A line is printed after
    each, by which it is seen that it goes on.
    """
    lines = [f"chmod +x {shlex.quote(binary)} || exit {UNREADY}"]
    for number, step in enumerate(steps):
        lines.append(_NOW)
        lines.append(f"( exec {affinity}{shlex.join([binary, *step])} ) > out-{number} 2> err-{number} < /dev/null &")
        lines.append(f"p=$!; wait $p; echo $? $p > code-{number}")
        lines.append(f"{_LOGCAT} > log-{number} 2> /dev/null")
        lines.append(f"{_CRASHES} > crash-{number} 2> /dev/null")
        lines.append(f"echo {number}")
    return "\n".join([*lines, "exit 0"])


def run_binary(
    device: Device,
    binary: Path,
    steps: Sequence[Sequence[str]],
    files: Mapping[Path, str],
) -> tuple[DeviceWork, Sequence[ProgramRun]]:
    """Run ``binary``, a file here, with the arguments of each step, in their order.

    Before, ``files`` are sent, each to its path there. Raises :class:`CommandFailed` where the steps could not be
    started, or one left no exit code, and as :func:`finished` does.
    """

    def script() -> str:
        device.put_all(files)
        return native_script(device.put(binary), steps, device.affinity)

    return finished(device, *run_steps(device, script, len(steps)))


def run_steps(device: Device, prepare: Callable[[], str], count: int) -> tuple[DeviceWork, Sequence[ProgramRun]]:
    """Run a script of so many steps, which ``prepare`` gives, and read what each left in files with its number.

    Raises :class:`DeviceError` where the script refused to begin, :class:`CommandFailed` where it could not, or a step
    left no exit code.
    """
    names = [f"{kind}-{number}" for number in range(count) for kind in (*_KINDS, _OUTPUT)]
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        work, answer = device.do(prepare, names, Path(temporary))
        said = last_lines(answer.complaints)
        if answer.code == REFUSED:
            raise DeviceError(f"{device.serial}: {said}")
        if answer.code != 0:
            raise CommandFailed(
                f"{device.serial}: the files could not be unpacked, or the binary not be made executable: {said}"
            )
        return work, read_runs(Path(temporary), count, device.facts)


def read_runs(folder: Path, count: int, facts: DeviceFacts) -> list[ProgramRun]:
    """What each of the steps on a device with these ``facts`` gave, in files that lie in a folder here.

    Raises :class:`CommandFailed` where one left no exit code.
    """
    found = []
    for number in range(count):
        out, err, ended, log, crashes = (text_of(folder / f"{kind}-{number}") for kind in _KINDS)
        code, _, process = ended.strip().partition(" ")
        output = folder / output_file(number)
        if not code.isdigit():
            raise CommandFailed(
                f"{facts.serial}: run {number + 1} left no exit code; memory or space ran out there: see adb shell "
                "df, then run it again"
            )
        proto = output.read_bytes() if output.is_file() else None
        why = why_not_started(int(code), last_lines(err), facts)
        found.append(ProgramRun(out, err, int(code), log, proto, crash_of(crashes, process), why))
    return found


def finished(device: Device, work: DeviceWork, runs: Sequence[ProgramRun]) -> tuple[DeviceWork, Sequence[ProgramRun]]:
    """The work with what delegates said in its runs.

    Raises :class:`CommandFailed` the first time that a run was killed on a device, as where memory runs out: everything
    is tried again there. If it happens again, it counts as a result, as a crash does: the configuration may need more
    memory than there is.
    """
    killed = [number for number, run in enumerate(runs, 1) if run.code == KILLED]
    if killed and not any(_WAS_KILLED in lost.reason for lost in device.lost):
        raise CommandFailed(
            f"{device.serial}: run {killed[0]} {_WAS_KILLED}, as Android does where memory runs out; it is tried once "
            "more"
        )
    lines = dict.fromkeys(line for run in runs for line in run.delegate_lines)
    return replace(work, delegate_lines=tuple(lines)), runs


def crash_of(log: str, process: str) -> str:
    r"""The signal and the innermost function in the crash dump of a process; empty where the log has none of it.

    >>> dump = [f"06-15 12:00:00.5  9  9 F DEBUG   : {text}" for text in (
    ...     "*** *** ***", "pid: 7, tid: 7, name: run_eval  >>> ./run_eval <<<",
    ...     "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x10", "      #00 pc 000a1 libcl.so (clBuild+9)")]
    >>> crash_of("\n".join(dump), "7"), crash_of("\n".join(dump), "8")
    ('signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x10, in libcl.so (clBuild+9)', '')
    """
    texts = [line.partition(" F DEBUG   : ")[2].strip() for line in log.splitlines()]
    heads = [number for number, text in enumerate(texts) if text.startswith(f"pid: {process}, ")]
    if not heads:
        return ""
    behind = texts[heads[-1] + 1 :]
    own = behind[: next((number for number, text in enumerate(behind) if text.startswith("pid: ")), None)]
    signal = next((text for text in own if text.startswith("signal ")), "")
    frame = next((text.split(maxsplit=3)[-1] for text in own if text.startswith("#00 pc ")), "")
    return ", in ".join(printable(text) for text in (signal, frame) if text)


def text_of(path: Path) -> str:
    """What a program printed into a file, empty where there is none."""
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""


def signal_of(code: int) -> str:
    """The name of the signal that ended a program, by its exit code as a shell or Python has it; empty: none did.

    >>> signal_of(139), signal_of(-6), signal_of(255), signal_of(1)
    ('SIGSEGV', 'SIGABRT', '', '')
    """
    number = code - _SIGNALLED if code > _SIGNALLED else -code
    return next((entry.name for entry in signal.Signals if entry.value == number), "")


def why_not_started(code: int, said: str, facts: DeviceFacts) -> str:
    """Why a device's shell could not start a binary, and the next step; empty where it started it.

    ``code`` is the exit code of the shell, ``said`` the end of its stderr.
    """
    if code not in _NOT_STARTED:
        return ""
    processor = facts.abi or facts.machine
    config = _ANDROID.get(facts.abi) if facts.abi else _BOARDS.get(facts.machine or "")
    if config:
        step = f"the device's ABI is {processor}: build the binary for it with bazel build -c opt --config={config}"
    elif processor:
        step = f"the device's ABI is {processor}: build the binary for it"
    else:
        step = "build the binary for its ABI, for most phones with bazel build -c opt --config=android_arm64"
    return f'the device cannot start the native tool (exit code {code}, "{said}"); {step}'
