"""What Android's log says of one run of the benchmark app; lines are those of ``logcat -v threadtime``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

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
_CRASHED: Final = "it crashed: "


class AppRun(NamedTuple):
    """A run of the app as its log shows it.

    ``log`` has the lines of the app's process. ``failure`` says why the run did not finish: it crashed, was killed, or
    its time was over. It is empty where the run finished, even if the log says that the benchmark failed.
    ``was_killed``: the app neither crashed nor was ended by evaltools, so that the device may have killed it for lack
    of memory.
    """

    log: str
    failure: str = ""
    was_killed: bool = False


class _LogcatLine(NamedTuple):
    whole: str
    process: str
    level: str
    tag: str
    text: str


def process_script(package: str) -> str:
    """An expression of ``sed -n`` that prints the number of the app's process, more than once, from such a log."""
    first = rf"s/^[^ ]*  *[^ ]*  *\([0-9][0-9]*\) .*: {_FIRST_LINE}.*/\1/p"
    return rf"s/.*: Start proc \([0-9][0-9]*\):{re.escape(package)}\/.*/\1/p; {first}"


def end_of_run(package: str, process: str) -> str:
    """A regular expression, of ``grep -E`` and of Python, for lines after which the app logs nothing of interest."""
    own = rf"^[^ ]+ +[^ ]+ +{process} .*: *({_TIMINGS}|{_GAVE_UP}|{_EXCEPTION}|{_SIGNAL})"
    return rf"{own}|{_ended_by_android(package, process)}"


def _ended_by_android(package: str, process: str) -> str:
    name = re.escape(package)
    return (
        rf"Process {name} \(pid {process}\) has died|Killing {process}:{name}/|am_crash.*{name}"
        rf"|Kill(ing)? '{name}' \({process}\)"
    )


def read_app_log(text: str, package: str, timeout_s: float) -> AppRun:
    """The run of the app's last process in a log that was read until the run was over, or for ``timeout_s`` seconds."""
    lines = [
        _LogcatLine(found[0], found["process"], found["level"], found["tag"], found["text"] or "")
        for found in map(_LINE.fullmatch, text.splitlines())
        if found
    ]
    process = _process_of(lines, package)
    own = [line for line in lines if line.process == process]
    log = "".join(f"{line.whole}\n" for line in own)
    if any(re.match(_TIMINGS, line.text) for line in own):
        return AppRun(log)
    crash = _crash(own)
    if crash:
        return AppRun(log, f"{_CRASHED}{crash}")
    if any(re.match(_GAVE_UP, line.text) for line in own):
        return AppRun(log)
    died = re.compile(_ended_by_android(package, process))
    ended = next((line.text for line in lines if process and died.search(f"{line.tag}: {line.text}")), None)
    if ended is not None:
        return AppRun(log, f"it ended before its time: {ended}{_last_error(own)}", was_killed=True)
    last = next((line.text for line in reversed(own) if line.text.strip()), "")
    said = f'it logged last: "{last}"' if last else "it has logged nothing"
    return AppRun(log, f"it did not end within {timeout_s:g} s and was ended; {said}")


def _process_of(lines: Sequence[_LogcatLine], package: str) -> str:
    """The number of the process that was started last, else of the one that began a benchmark.

    Empty if there is none.
    """
    started = re.compile(rf"Start proc (?P<process>\d+):{re.escape(package)}/.*")
    found = [match["process"] for match in (started.fullmatch(line.text) for line in lines) if match]
    found = found or [line.process for line in lines if line.text.startswith(_FIRST_LINE)]
    return found[-1] if found else ""


def _crash(own: Sequence[_LogcatLine]) -> str:
    """The Java exception or the signal that ended the process, empty where none did."""
    for number, line in enumerate(own):
        if line.text.startswith(_EXCEPTION):
            behind = [later.text for later in own[number + 1 :] if later.tag == line.tag]
            return next((text for text in behind if not text.startswith("Process: ")), line.text)
        if line.text.startswith(_SIGNAL):
            return f"{line.text}{_last_error(own[:number])}"
    return ""


def _last_error(own: Sequence[_LogcatLine]) -> str:
    said = next((line.text for line in reversed(own) if line.level in "EF"), "")
    return f', after "{said}"' if said else ""
