"""The benchmark app of TensorFlow Lite: started by an intent, its output read from Android's log."""

from __future__ import annotations

import posixpath
import re
import shlex
import tempfile
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.device.app_log import AppRun, end_of_run, process_script, read_app_log
from evaltools.device.device import Device
from evaltools.device.errors import CommandFailed, DeviceError
from evaltools.device.part import PartWork, SentFiles
from evaltools.errors import UsageError
from evaltools.result.device_run import DevicePart

_PATIENCE_AT_END_S: Final = 10.0
_INSTALL_S: Final = 600.0
_NO_LOG, _NOT_INSTALLED, _NOT_READABLE = range(4, 7)
"""Exit codes of the script."""
_INSTALL_CODE: Final = re.compile(r"\b(INSTALL_[A-Z_]+)\b")
_ANOTHER_SIGNER: Final = "uninstall the app that is there: adb uninstall and its name"
_INSTALL_ADVICE: Final = {
    "INSTALL_FAILED_UPDATE_INCOMPATIBLE": _ANOTHER_SIGNER,
    "INSTALL_FAILED_SHARED_USER_INCOMPATIBLE": _ANOTHER_SIGNER,
    "INSTALL_FAILED_VERSION_DOWNGRADE": _ANOTHER_SIGNER,
    "INSTALL_FAILED_NO_MATCHING_ABIS": "give one that is built for the device's ro.product.cpu.abi",
    "INSTALL_FAILED_OLDER_SDK": "the device's Android is too old for it; give an older release",
    "INSTALL_FAILED_DEPRECATED_SDK_VERSION": "it is too old for the device's Android; give a newer release",
    "INSTALL_FAILED_INSUFFICIENT_STORAGE": "free space on the device",
    "INSTALL_FAILED_USER_RESTRICTED": "allow installing via USB in the device's developer options, and confirm there",
    "INSTALL_FAILED_TEST_ONLY": "it is for tests only: install it with adb install -t -r -d -g",
    "INSTALL_FAILED_VERIFICATION_FAILURE": "the device's check of apps refused it; switch that off in its settings",
}


class BenchmarkApp(Struct, frozen=True):
    """An app that benchmarks as TensorFlow's does; forks rename it.

    ``activity`` is as in ``am start -n``, from a dot on within the package. ``extra`` is the name under which the
    activity expects the flags.
    """

    package: str = "org.tensorflow.lite.benchmark"
    activity: str = ".BenchmarkModelActivity"
    extra: str = "args"

    @property
    def component(self) -> str:
        """The name of the activity for ``am``."""
        return f"{self.package}/{self.activity}"


class AppProgram(Struct, frozen=True):
    """Starts of the app, one after the other, each with the flags of a step, for at most ``timeout_s`` seconds.

    Each leaves ``start-N``, what ``am`` said, and ``log-N``, Android's log from the start on. ``readable`` are files
    below ``root`` which the app, another user, must be able to read. An app that runs already is ended before.
    """

    app: BenchmarkApp
    steps: Sequence[Sequence[str]]
    timeout_s: float
    root: str
    readable: Sequence[str]

    def command(self, _work: PartWork, _sent: SentFiles, _taskset: str) -> str:
        """The script. The log is followed, so that no line is lost where Android forgets old ones meanwhile.

        A mark in it keeps the lines of an earlier start from being taken for those of this one.
        """
        package, mark = shlex.quote(self.app.package), f"evaltools-{uuid.uuid4().hex}"
        end = _in_double_quotes(end_of_run(self.app.package, "$p"))
        folders = {self.root, *(posixpath.dirname(path) for path in self.readable)}
        folders |= {posixpath.dirname(folder) for folder in folders} - {posixpath.dirname(self.root)}
        lines = [
            f"log -t evaltools {mark} || exit {_NO_LOG}",
            f"pm path {package} | grep -q package: || exit {_NOT_INSTALLED}",
            f"chmod a+x {shlex.join(sorted(folders))} && chmod a+r {shlex.join(self.readable)} || exit {_NOT_READABLE}",
            f'new() {{ sed -n "/{mark}-$n\\./,\\$p" log-$n; }}',
            f"process() {{ new | sed -n {shlex.quote(process_script(self.app.package))} | tail -n 1; }}",
            f'over() {{ p=$(process); [ "$p" ] && new | grep -Eq {end}; }}',
        ]
        for number, step in enumerate(self.steps):
            lines += [
                f"n={number}; t=$(date '+%m-%d %H:%M:%S.000'); log -t evaltools {mark}-{number}.",
                f'logcat -v threadtime -T "$t" > log-{number} 2>&1 & l=$!',
                f"{start_command(self.app, step)} > start-{number} 2>&1; c=$?",
                f"grep -Eq '^(Error|java.lang.|Exception)' start-{number} && c=1",
                f"echo $c > code-{number}; i=0",
                f"while [ $c = 0 ] && [ $i -lt {max(1, int(self.timeout_s))} ] && ! over",
                "do i=$((i+1)); sleep 1; done",
                f"sleep 1; kill $l; am force-stop {package}",
            ]
        return "\n".join([*lines, "exit 0"])


def _in_double_quotes(expression: str) -> str:
    r"""A regular expression in the quotes of a shell in which ``$p`` is filled in.

    >>> _in_double_quotes(r"pid $p\)|`")
    '"pid $p\\\\)|\\`"'
    """
    return '"' + expression.replace("\\", "\\\\").replace('"', '\\"').replace("`", "\\`") + '"'


def start_command(app: BenchmarkApp, arguments: Sequence[str]) -> str:
    """The shell command that starts the app anew; raises :class:`UsageError` for flags that it cannot be given.

    >>> start_command(BenchmarkApp(), ["--graph=/data/local/tmp/m.tflite", "--num_threads=4"])
    "am start -S -n org.tensorflow.lite.benchmark/.BenchmarkModelActivity --es args '--graph=/data/local/tmp/m.tflite \
--num_threads=4'"
    """
    for argument in arguments:
        if argument != "".join(argument.split()) or not argument:
            raise UsageError(
                f"{argument!r} cannot be given to the benchmark app, which splits its flags at blanks; "
                "use names of files and values without blanks, or --device_program=native"
            )
    words = ["am", "start", "-S", "-n", app.component, "--es", app.extra, " ".join(arguments)]
    return shlex.join(words)


def run_app(
    device: Device,
    work: PartWork,
    app: BenchmarkApp,
    steps: Sequence[Sequence[str]],
    timeout_s: float,
    report: Callable[[str], None] = lambda _line: None,
) -> tuple[DevicePart, list[AppRun]]:
    """Run the app with the flags of each step, words as ``--num_threads=4``, until it has logged everything.

    ``timeout_s`` is that of a start. The app is ended in any case. ``report`` gets a line where that failed, which does
    not make the runs worse.

    Raises :class:`UsageError` for flags with blanks, and :class:`DeviceError` where the app or its activity is not
    there, or the device did not finish.
    """
    serial, root = device.serial, device.flags.root
    program = AppProgram(app, steps, timeout_s, root, list(work.files.values()))
    names = [f"{kind}-{number}" for number in range(len(steps)) for kind in ("code", "start", "log")]
    last = device.link.unstoppable(_PATIENCE_AT_END_S)
    stop = partial(last.shell, shlex.join(["am", "force-stop", app.package]))
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
        try:
            done = device.do(replace(work, results=tuple(names)), program, Path(temporary))
        finally:
            try:
                last.patiently(stop)
            except DeviceError as error:
                report(f"Afterwards the app {app.package} could not be ended: {error}")
        if done.code != 0:
            raise _why_not_run(serial, app, done.code, done.err, root)
        found = {name: _text(done.folder / name) for name in names}
    for number in range(len(steps)):
        if found[f"code-{number}"].strip() != "0":
            said = [line.strip() for line in found[f"start-{number}"].splitlines() if line.startswith(("E", "java"))]
            raise DeviceError(
                f"{serial}: the app {app.package} is there, but {app.component} cannot be started: "
                f"{said[-1] if said else 'am says nothing'}; look at the name of its activity",
                serial,
            )
    return done.part, [read_app_log(found[f"log-{number}"], app.package, timeout_s) for number in range(len(steps))]


def _why_not_run(serial: str, app: BenchmarkApp, code: int, err: str, root: str) -> DeviceError:
    if code == _NO_LOG:
        return CommandFailed(
            f"{serial}: nothing can be written to its log; the benchmark app runs only on Android, on other systems "
            "use --device_program=native",
            serial,
        )
    if code == _NOT_INSTALLED:
        return DeviceError(
            f"{serial}: the app {app.package} is not installed; install it with "
            "adb install -r -d -g benchmark_model.apk, or give its APK",
            serial,
        )
    return CommandFailed(
        f"{serial}: files in {root} cannot be made readable for apps: {err.strip()[-200:]}; give another "
        "--device_folder",
        serial,
    )


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""


def install_app(device: Device, apk: Path, timeout_s: float = _INSTALL_S) -> None:
    """Install an APK as ``adb install -r -d -g`` does: over another version, an older one too, with all permissions.

    It is sent first, which proves that it is whole. Raises :class:`DataError` where it cannot be read, and
    :class:`DeviceError`, also where the device refuses it. The device's ``stop`` ends the waiting.
    """
    command = shlex.join(["pm", "install", "-r", "-d", "-g", device.put(apk)])
    answer = device.shell(f"{command} 2>&1", timeout_s)
    if answer.code == 0 and "Success" in answer.text:
        return
    refused = f"{device.serial}: {apk} cannot be installed"
    found = _INSTALL_CODE.search(answer.text)
    if found is None:
        raise DeviceError(f"{refused}{answer.quote()}; try adb install -r -d -g", device.serial)
    code = found[1]
    advice = _INSTALL_ADVICE.get(code, "look for this word in the documentation of adb install")
    if code.startswith("INSTALL_PARSE_FAILED"):
        advice = "give the APK of the benchmark app, whole"
    raise DeviceError(f"{refused}: {code}; {advice}", device.serial)
