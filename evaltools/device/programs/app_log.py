"""What Android's log says of one run of the benchmark app; lines are those of ``logcat -v threadtime``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

_LINE: Final = re.compile(
    r"\d\d-\d\d \d\d:\d\d:\d\d\.\d+\s+(?P<process>\d+)\s+\d+ (?P<level>[VDIWEF]) (?P<tag>.*?)\s*:(?: (?P<text>.*)|$)"
)
_FIRST_LINES: Final = ("Running TensorFlow Lite benchmark with args", "STARTING!")
_TIMINGS: Final = re.compile(r"(?:Average inference|Inference) timings in us: .+")
_GAVE_UP: Final = re.compile(
    r"Benchmarking failed\.|Failed to (?:load model|apply|allocate tensors|set thread number|initialize the interpreter"
    r"|parse flag)\b.*|Disallowed CPU fallback detected\..*|Please specify the name of your TF Lite input file.*"
    r"|Signature not specified or incorrect\..*"
)
_EXCEPTION: Final = "FATAL EXCEPTION"
_SIGNAL: Final = "Fatal signal "
_CRASHED: Final = "it crashed: "


class AppState(NamedTuple):
    """The state of a run as its log shows it.

    ``log`` has the lines of the app's process. ``failure`` says why the process ended early, empty where it did not.
    ``is_over``: the log has the times, or says that the benchmark gave up. ``last`` is the app's last line.
    """

    log: str
    is_over: bool
    failure: str
    last: str

    @property
    def was_killed(self) -> bool:
        """Whether the process neither finished nor crashed."""
        return bool(self.failure) and not self.is_over and not self.failure.startswith(_CRASHED)


class _LogcatLine(NamedTuple):
    whole: str
    process: str
    level: str
    tag: str
    text: str


def joined_log(kept: str, shown: str, marks: Sequence[str]) -> str | None:
    r"""The log read so far and the log ``shown`` now, joined at the first mark that is in both.

    Android's log is a ring that drops its oldest lines; ``kept`` has lines that are no longer shown. None where no mark
    is in both, so that lines are lost.

    >>> joined_log("m1 a\nm2 b\n", "b2\nm2 b\nc\n", ["m1", "m2"])
    'm1 a\nm2 b\nc\n'
    >>> joined_log("m1 a\n", "c\n", ["m1"]) is None
    True
    """
    for mark in marks:
        if mark in kept and mark in shown:
            return kept[: kept.index(mark)] + shown[shown.index(mark) :]
    return None


def marks_shown(marks: Sequence[str], shown: str) -> list[str]:
    """The marks from the first one in the log ``shown`` now; the log has dropped those before it."""
    return list(dropwhile(lambda mark: mark not in shown, marks))


def read_app_log(text: str, package: str) -> AppState:
    """The state of the app's last process since the mark with which ``text`` begins."""
    lines = [
        _LogcatLine(found[0], found["process"], found["level"], found["tag"], found["text"] or "")
        for found in map(_LINE.fullmatch, text.splitlines())
        if found
    ]
    process = _process_of(lines, package)
    own = [line for line in lines if line.process == process]
    is_measured = any(_TIMINGS.fullmatch(line.text) for line in own)
    return AppState(
        log="".join(f"{line.whole}\n" for line in own),
        is_over=is_measured or any(_GAVE_UP.fullmatch(line.text) for line in own),
        failure="" if is_measured else _failure(lines, own, process, package),
        last=next((line.text for line in reversed(own) if line.text.strip()), ""),
    )


def _process_of(lines: Sequence[_LogcatLine], package: str) -> str:
    """The number of the process that was started last, else of the one that began a benchmark.

    Empty if there is none.
    """
    name = re.escape(package)
    started = re.compile(rf"Start proc (?P<process>\d+):{name}/.*")
    found = [match for match in (started.fullmatch(line.text) for line in lines) if match]
    if found:
        return found[-1]["process"]
    return next((line.process for line in reversed(lines) if line.text.startswith(_FIRST_LINES)), "")


def _failure(lines: Sequence[_LogcatLine], own: Sequence[_LogcatLine], process: str, package: str) -> str:
    """Why the process ended: a Java exception, a signal, or the system."""
    for number, line in enumerate(own):
        if line.text.startswith(_EXCEPTION):
            behind = [later.text for later in own[number + 1 :] if later.tag == line.tag]
            exception = next((text for text in behind if not text.startswith("Process: ")), line.text)
            return f"{_CRASHED}{exception}"
        if line.text.startswith(_SIGNAL):
            return f"{_CRASHED}{line.text}{_last_error(own[:number])}"
    name = re.escape(package)
    ended = re.compile(
        rf"Process {name} \(pid {process}\) has died\b.*|Killing {process}:{name}/.*|am_crash.*\b{name}\b.*"
        rf"|Kill(?:ing)? '{name}' \({process}\).*"
    )
    found = next(
        (line for line in lines if ended.fullmatch(line.text) or ended.fullmatch(f"{line.tag}: {line.text}")), None
    )
    return f"it ended before its time: {found.text}{_last_error(own)}" if process and found else ""


def _last_error(own: Sequence[_LogcatLine]) -> str:
    said = next((line.text for line in reversed(own) if line.level in "EF"), "")
    return f', after "{said}"' if said else ""
