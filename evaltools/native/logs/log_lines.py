"""Lines of a log without what logging put in front of them: native tools, absl and glog, Android's and Apple's logs."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_LEVELS: Final = {
    "V": "VERBOSE",
    "D": "DEBUG",
    "I": "INFO",
    "W": "WARNING",
    "WARN": "WARNING",
    "E": "ERROR",
    "F": "FATAL",
    "Notice": "INFO",
    "Info": "INFO",
    "Debug": "DEBUG",
    "Warning": "WARNING",
    "Error": "ERROR",
    "Fault": "FATAL",
}
_DIVIDER: Final = re.compile(r"-{5,} (?:beginning of|switch to) \S+")
_CLOCK: Final = r"\d\d:\d\d:\d\d"
_SYSTEM: Final = (
    # logcat -v threadtime: time, process, thread, level, tag
    re.compile(rf"\d\d-\d\d {_CLOCK}\.\d{{3,9}}\s+\d+\s+\d+ (?P<level>[VDIWEF]) (?P<tag>.*?)\s*:(?: |$)"),
    # Xcode's console, as NSLog and os_log print: time, program, process and thread
    re.compile(rf"\d{{4}}-\d\d-\d\d {_CLOCK}\.\d{{3,9}}(?:[+-]\d{{4}})? (?P<tag>[^\[\]]+)\[\d+:\d+\](?: |$)"),
    # the console of an Apple device: time, host where it is shown, program with the library that logged, process, level
    re.compile(
        rf"[A-Z][a-z]{{2}} [ \d]\d {_CLOCK}(?:\.\d+)? (?:\S+ )?(?P<tag>[^\[\]() ]+)(?:\([^()]*\))?\[\d+\] "
        r"<(?P<level>Notice|Info|Debug|Warning|Error|Fault)>:(?: |$)"
    ),
)
_SOURCE_FILE: Final = (
    # glog: month and day, with the year in front where asked for; absl before its start: seconds since 1970
    re.compile(rf"(?P<level>[IWEF])(?:(?:\d{{4}})?\d{{4}} {_CLOCK}|0000 00:00:\d+)\.\d+\s+\d+ \S+:\d+\](?: |$)"),
    # TensorFlow
    re.compile(rf"\d{{4}}-\d\d-\d\d {_CLOCK}\.\d+: (?P<level>[IWEF]) \S+:\d+\](?: |$)"),
)
_NATIVE: Final = (re.compile(r"(?P<level>VERBOSE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL):(?: |$)"),)


class LogLine(Struct, frozen=True):
    """What was logged.

    ``level`` is VERBOSE, DEBUG, INFO, WARNING, ERROR or FATAL, empty where the line does not say; ``tag`` is logcat's,
    and the program in Apple's logs; empty elsewhere.
    """

    level: str
    text: str
    tag: str = ""


def plain_lines(text: str) -> list[LogLine]:
    r"""The lines of a log without prefixes, blanks at both ends and line ends; dividers of logcat are left out.

    Understood are ``INFO: `` and the like of native tools, ``I1122 13:10:02.123456  1234 file.cc:12] `` of glog and
    absl, ``2023-11-22 13:10:02.123456: I file.cc:12] `` of TensorFlow, logcat's format ``threadtime``, and what Xcode
    and the console of an Apple device put in front. Where one stands behind another the level of the last counts, as
    logcat knows native tools' fatal lines as errors.

    >>> plain_lines("11-22 13:10:02.123  1234  1250 I tflite  : WARN: no\r\ncount=1")
    [LogLine(level='WARNING', text='no', tag='tflite'), LogLine(level='', text='count=1', tag='')]
    """
    lines = (line.strip() for line in text.splitlines())
    return [_plain(line) for line in lines if _DIVIDER.fullmatch(line) is None]


def _plain(line: str) -> LogLine:
    level = tag = ""
    for layer in (_SYSTEM, _SOURCE_FILE, _NATIVE):
        found = next((match for match in (prefix.match(line) for prefix in layer) if match), None)
        if found is not None:
            said = found.groupdict()
            level, tag, line = said.get("level", level), said.get("tag", tag), line[found.end() :]
    return LogLine(_LEVELS.get(level, level), line, tag)
