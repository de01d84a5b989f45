"""The benchmark app of TensorFlow Lite: started by an intent, its output read from Android's log."""

from __future__ import annotations

import posixpath
import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.adb.client import DeviceError
from evaltools.device.device import Device
from evaltools.device.native_program import KILLED, REFUSED, ProgramRun, finished, run_steps
from evaltools.errors import UsageError
from evaltools.result.device import DeviceWork
from evaltools.text import printable

_PATIENCE_AT_END_S: Final = 10.0
_INSTALL_S: Final = 600.0
_LINE: Final = re.compile(
    r"\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+(?P<process>\d+)\s+\d+ (?P<level>[VDIWEF]) (?P<tag>.*?)\s*:(?: (?P<text>.*)|$)"
)
_FIRST_LINE: Final = "Running TensorFlow Lite benchmark with args"
_TIMINGS: Final = r"(Average inference|Inference) timings in us: "
_GAVE_UP: Final = (
    r"Benchmarking failed\.|Failed to (load model|apply|allocate tensors|set thread number|initialize the interpreter"
    r"|parse flag)|Disallowed CPU fallback detected\.|Please specify the name of your TF Lite input file"
    r"|Signature not specified or incorrect\."
)
_EXCEPTION: Final = "FATAL EXCEPTION"
_SIGNAL: Final = "Fatal signal "


def app_script(
    component: str, steps: Sequence[Sequence[str]], timeout_s: float, root: str, readable: Sequence[str]
) -> str:
    """Starts of the app, one after the other, each with the flags of a step, for at most ``timeout_s`` seconds.

    ``component`` is the package with the activity, as in ``am start -n``; forks rename both.
    Each leaves ``out-N``, what ``am`` said, and ``log-N``, Android's log from the start on. ``readable`` are files
    below ``root`` which the app, another user, must be able to read. An app that runs already is ended before.

    The log is followed, so that no line is lost where Android forgets old ones meanwhile. A mark in it keeps the lines
    of an earlier start from being taken for those of this one.
    """
    name, mark = package_of(component), f"evaltools-{uuid.uuid4().hex}"
    package = shlex.quote(name)
    folders = {root, *(posixpath.dirname(path) for path in readable)}
    folders |= {posixpath.dirname(folder) for folder in folders} - {posixpath.dirname(root)}
    lines = [
        f"log -t evaltools {mark} || {_refusal('it has no log: the benchmark app runs on Android only')}",
        f"pm path {package} | grep -q package: || " + _refusal(f"the app {name} is not installed: give --app_apk=FILE"),
        f"chmod a+x {shlex.join(sorted(folders))} && chmod a+r {shlex.join(readable)} || "
        + _refusal(f"apps cannot be let read {root}: give another --device_folder"),
        f'new() {{ sed -n "/{mark}-$n\\./,\\$p" log-$n; }}',
        over_script(name),
    ]
    for number, step in enumerate(steps):
        lines += [
            f"n={number}; t=$(date '+%m-%d %H:%M:%S.000'); log -t evaltools {mark}-{number}.",
            f'logcat -v threadtime -T "$t" > log-{number} 2>&1 & l=$!',
            f"{start_command(component, step)} > out-{number} 2>&1; c=$?",
            f"grep -Eq '^(Error|java.lang.|Exception)' out-{number} && c=1",
            f"echo $c > code-{number}; i=0",
            f"while [ $c = 0 ] && [ $i -lt {max(1, int(timeout_s))} ] && ! over",
            "do i=$((i+1)); sleep 1; done",
            f"sleep 1; kill $l; am force-stop {package}",
        ]
    return "\n".join([*lines, "exit 0"])


def _refusal(why: str) -> str:
    """The shell command that ends the script with a reason."""
    return f"{{ echo {shlex.quote(why)} >&2; exit {REFUSED}; }}"


def package_of(component: str) -> str:
    """The app of a component.

    >>> package_of("org.tensorflow.lite.benchmark/.BenchmarkModelActivity")
    'org.tensorflow.lite.benchmark'
    """
    return component.partition("/")[0]


def start_command(component: str, arguments: Sequence[str]) -> str:
    """The shell command that starts the app anew; raises :class:`UsageError` for flags that it cannot be given.

    >>> start_command("org.app/.Main", ["--graph=/data/local/tmp/m.tflite", "--num_threads=4"])
    "am start -S -n org.app/.Main --es args '--graph=/data/local/tmp/m.tflite --num_threads=4'"
    """
    for argument in arguments:
        if argument != "".join(argument.split()) or not argument:
            raise UsageError(
                f"{argument!r} cannot be given to the benchmark app, which splits its flags at blanks; "
                "use names of files and values without blanks, or --device_program=native"
            )
    return shlex.join(["am", "start", "-S", "-n", component, "--es", "args", " ".join(arguments)])


def run_app(
    device: Device,
    files: Mapping[Path, str],
    component: str,
    steps: Sequence[Sequence[str]],
    timeout_s: float,
) -> tuple[DeviceWork, Sequence[ProgramRun]]:
    """Run the app with the flags of each step, words as ``--num_threads=4``, until it has logged everything.

    ``files`` are sent before, each to its path there. ``timeout_s`` is that of a start. The app is ended in any case;
    where that failed, it is said, and does not make the runs worse.

    Raises :class:`UsageError` for flags with blanks, :class:`DeviceError` where the app or its activity is not there or
    the device did not finish, and as :func:`finished` does.
    """
    serial, root, package = device.serial, device.flags.root, package_of(component)
    script = app_script(component, steps, timeout_s, root, list(files.values()))
    last = device.link.unstoppable(_PATIENCE_AT_END_S)
    stop = partial(last.shell, shlex.join(["am", "force-stop", package]))

    def prepare() -> str:
        device.put_all(files)
        return script

    try:
        work, runs = run_steps(device, prepare, len(steps))
    finally:
        try:
            last.patiently(stop)
        except DeviceError as error:
            device.report(printable(f"evaltools: afterwards the app {package} could not be ended: {error}"))
    for run in runs:
        if run.code != 0:
            said = [line.strip() for line in run.out.splitlines() if line.startswith(("E", "java"))]
            raise DeviceError(
                f"{serial}: the app {package} is there, but {component} cannot be started: "
                f"{said[-1] if said else 'am says nothing'}; look at the name of its activity"
            )
    return finished(device, work, [read_app_log(run.logcat, package, timeout_s) for run in runs])


def install_app(device: Device, apk: Path, timeout_s: float = _INSTALL_S) -> None:
    """Install an APK as ``adb install -r -d -g`` does: over another version, an older one too, with all permissions.

    It is sent first, which proves that it is whole. Raises :class:`DataError` where it cannot be read, and
    :class:`DeviceError`, also where the device refuses it. The device's ``stop`` ends the waiting.
    """
    command = shlex.join(["pm", "install", "-r", "-d", "-g", device.put(apk)])
    answer = device.link.shell(f"{command} 2>&1", timeout_s)
    if answer.code != 0 or "Success" not in answer.text:
        raise DeviceError(
            f"{device.serial}: {apk} cannot be installed{answer.quote()}; it must be built for the device's ABI, an "
            "app of that name with another signature must go first (adb uninstall), and the phone may ask"
        )


def over_script(package: str) -> str:
    """The shell function ``over``: whether ``new`` prints a line after which the app logs nothing of interest.

    A line counts that holds the number of the app's process, its own or one of Android's.
    """
    process = (
        rf"s/.*: Start proc \([0-9][0-9]*\):{re.escape(package)}\/.*/\1/p; "
        rf"s/^[^ ]*  *[^ ]*  *\([0-9][0-9]*\) .*: {_FIRST_LINE}.*/\1/p"
    )
    end = f": *({_TIMINGS}|{_GAVE_UP}|{_EXCEPTION}|{_SIGNAL})|{_ended_by_android(package)}"
    return (
        f"over() {{ p=$(new | sed -n {shlex.quote(process)} | tail -n 1); "
        f'[ "$p" ] && new | grep -w "$p" | grep -Eq {shlex.quote(end)}; }}'
    )


def _ended_by_android(package: str) -> str:
    """A regular expression, of ``grep -E`` and of Python, for the lines in which Android ends a process of the app."""
    name = re.escape(package)
    return rf"Process {name} \(pid |Killing [0-9]+:{name}/|am_crash.*{name}|Kill(ing)? '{name}'"


def read_app_log(text: str, package: str, timeout_s: float) -> ProgramRun:
    """The run of the app's last process in a log that was read until the run was over, or for ``timeout_s`` seconds.

    It has failed where the process crashed, was killed, or its time was over; not where the benchmark itself failed. It
    was killed where it neither crashed nor was ended by evaltools: the device may have lacked memory.
    """
    lines = [found for found in map(_LINE.fullmatch, text.splitlines()) if found]
    started = re.findall(rf"Start proc (\d+):{re.escape(package)}/", text)
    started = started or [line["process"] for line in lines if _text(line).startswith(_FIRST_LINE)]
    process = started[-1] if started else "none"
    own = [line for line in lines if line["process"] == process]
    log = "".join(f"{line[0]}\n" for line in own)
    if any(re.match(_TIMINGS, _text(line)) for line in own):
        return ProgramRun(log)
    crash = _crash(own)
    if crash:
        return ProgramRun(log, failure=f"it crashed: {crash}")
    if any(re.match(_GAVE_UP, _text(line)) for line in own):
        return ProgramRun(log)
    of_process = [line for line in lines if re.search(rf"\b{process}\b", _text(line))]
    ended = [line for line in of_process if re.search(_ended_by_android(package), f"{line['tag']}: {_text(line)}")]
    if ended:
        why = f"it ended before its time: {_text(ended[0])}{_last_error(own)}"
        return ProgramRun(log, code=KILLED, failure=why)
    last = next((_text(line) for line in reversed(own) if _text(line).strip()), "")
    said = f'it logged last: "{last}"' if last else "it has logged nothing"
    return ProgramRun(log, failure=f"it did not end within {timeout_s:g} s and was ended; {said}")


def _crash(own: Sequence[re.Match[str]]) -> str:
    """The Java exception or the signal that ended the process, empty where none did."""
    for number, line in enumerate(own):
        if _text(line).startswith(_EXCEPTION):
            behind = [_text(later) for later in own[number + 1 :] if later["tag"] == line["tag"]]
            return next((text for text in behind if not text.startswith("Process: ")), _text(line))
        if _text(line).startswith(_SIGNAL):
            return f"{_text(line)}{_last_error(own[:number])}"
    return ""


def _last_error(own: Sequence[re.Match[str]]) -> str:
    said = next((_text(line) for line in reversed(own) if line["level"] in "EF"), "")
    return f', after "{said}"' if said else ""


def _text(line: re.Match[str]) -> str:
    return line["text"] or ""
