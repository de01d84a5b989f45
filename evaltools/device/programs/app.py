"""The benchmark app of TensorFlow Lite: started by an intent, its output read from Android's log."""

from __future__ import annotations

import re
import shlex
import threading
import time
import uuid
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.device.adb.adb import Adb, patiently, rest, stop_if_asked
from evaltools.device.adb.errors import CommandFailed, DeviceError, NoSpace, ProgramMissing
from evaltools.device.adb.process import ShellAnswer
from evaltools.device.files.store import DeviceStore
from evaltools.device.programs.app_log import AppState, joined_log, marks_shown, read_app_log
from evaltools.errors import UsageError

_TAG: Final = "evaltools"
_TRACE_PROPERTY: Final = "debug.tflite.trace"
_POLL_S: Final = 1.0
_PATIENCE_S: Final = 60.0
_PATIENCE_AT_STOP_S: Final = 10.0
_INSTALL_S: Final = 600.0
_MOST_LOOKS_AT_THE_END: Final = 10
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


class AppRun(Struct, frozen=True):
    """A run of the app that ended.

    ``log`` has the lines of the app's process as ``logcat -v threadtime`` prints them. ``failure`` says why the run did
    not finish: it crashed, was killed, or its time was over. It is empty where the run finished, even if the log says
    that the benchmark failed. ``left`` says what could not be cleaned up afterwards, which does not make the run worse;
    it is empty where everything was. ``was_killed``: the app neither crashed nor was ended by evaltools, so that the
    device may have killed it for lack of memory.
    """

    log: str
    failure: str = ""
    left: str = ""
    was_killed: bool = False


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


def install_app(store: DeviceStore, apk: Path, timeout_s: float = _INSTALL_S) -> None:
    """Install an APK as ``adb install -r -d -g`` does: over another version, an older one too, with all permissions.

    The store sends it, which proves that it is whole. Raises :class:`DataError` where it cannot be read,
    :class:`NoSpace`, :class:`ProgramMissing` where the device refuses it, and :class:`DeviceError`. The store's
    ``stop`` ends the waiting.
    """
    command = shlex.join(["pm", "install", "-r", "-d", "-g", store.put(apk)])
    answer = store.adb.shell(store.serial, command, timeout_s, store.stop)
    said = _said(answer)
    if answer.code == 0 and "Success" in said:
        return
    refused = f"{store.serial}: {apk} cannot be installed"
    code = next((found[1] for found in map(_INSTALL_CODE.search, said) if found), None)
    if code is None:
        raise ProgramMissing(f"{refused}{answer.quote()}; try adb install -r -d -g", store.serial)
    kind = NoSpace if code == "INSTALL_FAILED_INSUFFICIENT_STORAGE" else ProgramMissing
    advice = _INSTALL_ADVICE.get(code, "look for this word in the documentation of adb install")
    if code.startswith("INSTALL_PARSE_FAILED"):
        advice = "give the APK of the benchmark app, whole"
    raise kind(f"{refused}: {code}; {advice}", store.serial)


def run_app(
    adb: Adb,
    serial: str,
    arguments: Sequence[str],
    timeout_s: float,
    app: BenchmarkApp | None = None,
    traces: bool = False,
    poll_s: float = _POLL_S,
    patience_s: float = _PATIENCE_S,
    stop: threading.Event | None = None,
) -> AppRun:
    """Run the app with flags, words as ``--num_threads=4``, until it has logged everything.

    An app that runs already is ended before, and its process afterwards, also after ``timeout_s`` seconds and where
    ``stop`` is set. ``traces`` sets the property by which the runtime writes to Android's trace, and puts it back. A
    device that is away is waited for ``patience_s`` seconds at a time.

    Raises :class:`UsageError` for flags with blanks, :class:`ProgramMissing` where the app or its activity is not
    there, :class:`CommandFailed` where the device forgot lines of its log meanwhile, :class:`DeviceStopped`, and the
    error of a device that stayed away. A device that leaves after the end of the run is no error, see
    :class:`AppRun`.
    """
    run = _RunningApp(adb, serial, app or BenchmarkApp(), patience_s, stop)
    command = start_command(run.app, arguments)
    if traces:
        run.note_tracing()
    try:
        if traces:
            run.trace()
        run.begin(command)
        found = _watch(run, timeout_s, poll_s)
    except BaseException as error:
        left = run.tidy(_PATIENCE_AT_STOP_S)
        if left and isinstance(error, DeviceError):
            raise type(error)(f"{error}. {left}", serial) from error
        raise
    left = run.tidy(patience_s)
    if not left:
        return found
    return replace(found, failure=f"{found.failure}. {left}" if found.failure else "", left=left)


class _RunningApp:
    """One run of the app on one device."""

    def __init__(
        self, adb: Adb, serial: str, app: BenchmarkApp, patience_s: float, stop: threading.Event | None
    ) -> None:
        self.app = app
        self.serial = serial
        self.stop = stop
        self._adb = adb
        self._patience_s = patience_s
        self._name = f"evaltools-{uuid.uuid4().hex}"
        self._marks = [f"{self._name}-0."]
        self._kept = self._marks[0]
        self._looks = 0
        self._tidying = {f"the app {app.package} could not be ended": _force_stop(app)}

    def note_tracing(self) -> None:
        """Read the property for tracing, so that :meth:`tidy` can set it back."""
        before = self.shell(f"getprop {_TRACE_PROPERTY}").text.strip()
        words = f"the property {_TRACE_PROPERTY} could not be set back to {before or 'nothing'}"
        self._tidying[words] = f"setprop {_TRACE_PROPERTY} {shlex.quote(before)}"

    def trace(self) -> None:
        """Let the runtime write to Android's trace."""
        answer = self.shell(f"setprop {_TRACE_PROPERTY} 1")
        if answer.code != 0:
            raise CommandFailed(
                f"{self.serial}: the property {_TRACE_PROPERTY} cannot be set{answer.quote()}; run without tracing",
                self.serial,
            )

    def begin(self, command: str) -> None:
        """Mark the log, then start the app."""
        marked = self.shell(f"log -t {_TAG} {self._marks[0]}")
        if marked.code != 0:
            raise CommandFailed(
                f"{self.serial}: nothing can be written to its log{marked.quote()}; the benchmark app runs on Android "
                "alone, on other systems use --device_program=native",
                self.serial,
            )
        answer = self.shell(command)
        errors = [line for line in _said(answer) if line.startswith(("Error", "java.lang.", "Exception"))]
        if errors or answer.code != 0:
            raise self._why_not_started(errors, answer)

    def look(self) -> AppState:
        """Read the app's log; raises :class:`CommandFailed` where a part of it is lost."""
        self._looks += 1
        mark = f"{self._name}-{self._looks}."
        answer = self.shell(f"log -t {_TAG} {mark}; logcat -d -v threadtime")
        if answer.code != 0:
            raise CommandFailed(
                f"{self.serial}: its log cannot be read{answer.quote()}; try adb logcat -d", self.serial
            )
        self._marks = marks_shown(self._marks, answer.text)
        joined = joined_log(self._kept, answer.text, self._marks)
        if joined is None:
            raise CommandFailed(
                f"{self.serial}: its log has forgotten lines of this run, because others wrote too much; make it "
                "larger with adb logcat -G 16M, and run it again",
                self.serial,
            )
        self._marks.append(mark)
        self._kept = joined
        return read_app_log(joined, self.app.package)

    def shell(self, command: str) -> ShellAnswer:
        """Run a command that may be repeated."""
        act = partial(self._adb.shell, self.serial, command)
        return patiently(self._adb, self.serial, act, self._patience_s, self.stop)

    def tidy(self, patience_s: float) -> str:
        """End the app and set the tracing property back. This is done even when everything is to stop.

        Returns what may not be cleaned up, and why; empty where everything is.
        """
        command = "; ".join(self._tidying.values())
        try:
            patiently(self._adb, self.serial, partial(self._adb.shell, self.serial, command), patience_s)
        except DeviceError as error:
            return f"Afterwards {', and '.join(self._tidying)}: {error}"
        return ""

    def _why_not_started(self, errors: Sequence[str], answer: ShellAnswer) -> ProgramMissing:
        package = self.app.package
        if "package:" not in self.shell(f"pm path {shlex.quote(package)}").text:
            return ProgramMissing(
                f"{self.serial}: the app {package} is not installed; install it with "
                "adb install -r -d -g benchmark_model.apk, or give its APK",
                self.serial,
            )
        said = f": {errors[-1]}" if errors else answer.quote()
        return ProgramMissing(
            f"{self.serial}: the app {package} is there, but {self.app.component} cannot be started{said}; "
            "look at the name of its activity",
            self.serial,
        )


def _said(answer: ShellAnswer) -> list[str]:
    """All lines that a command printed, on stdout and stderr: Android's programs print errors on either."""
    return [line.strip() for line in f"{answer.text}\n{answer.err.decode('utf-8', 'replace')}".splitlines()]


def _force_stop(app: BenchmarkApp) -> str:
    return shlex.join(["am", "force-stop", app.package])


def _watch(run: _RunningApp, timeout_s: float, poll_s: float) -> AppRun:
    """Read the log again and again until it says that the run is over, and then until no more lines come."""
    limit = time.monotonic() + timeout_s
    looks_at_the_end = 0
    before = ""
    while True:
        is_late = time.monotonic() > limit
        state = run.look()
        if state.is_over or state.failure:
            looks_at_the_end += 1
            if state.log == before or looks_at_the_end == _MOST_LOOKS_AT_THE_END:
                return AppRun(state.log, state.failure, was_killed=state.was_killed)
        elif is_late:
            said = f'it logged last: "{state.last}"' if state.last else "it has logged nothing"
            return AppRun(state.log, f"it did not end within {timeout_s:g} s and was ended; {said}")
        before = state.log
        rest(poll_s, run.stop)
        stop_if_asked(run.serial, run.stop)
