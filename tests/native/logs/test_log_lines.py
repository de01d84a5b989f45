"""Lines of logs without their prefixes."""

from __future__ import annotations

import pytest

from evaltools.native.logs.log_lines import LogLine, plain_lines
from tests.native.logs.log_styles import STYLES, recorded


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("count=3", LogLine("", "count=3")),
        ("", LogLine("", "")),
        ("  two words ", LogLine("", "two words")),
        ("INFO: STARTING!", LogLine("INFO", "STARTING!")),
        ("INFO:", LogLine("INFO", "")),
        ("VERBOSE: a", LogLine("VERBOSE", "a")),
        ("DEBUG: a", LogLine("DEBUG", "a")),
        ("WARN: a: b", LogLine("WARNING", "a: b")),
        ("WARNING: a", LogLine("WARNING", "a")),
        ("ERROR: a", LogLine("ERROR", "a")),
        ("FATAL: a", LogLine("FATAL", "a")),
        ("INFORMATION: a", LogLine("", "INFORMATION: a")),
        ("INFO:a", LogLine("", "INFO:a")),
        ("I0000 00:00:1700000000.123456    1234 stage.cc:12] a", LogLine("INFO", "a")),
        ("W0000 00:00:1700000000.123456 24696965 stage.cc:191] ", LogLine("WARNING", "")),
        ("W1122 13:10:02.123456  1234 file.cc:12] a", LogLine("WARNING", "a")),
        ("E20231122 13:10:02.123456 136871327533376 file.cc:12] a", LogLine("ERROR", "a")),
        ("F1122 13:10:02.123456  1234 file.cc:12] a", LogLine("FATAL", "a")),
        ("2023-11-22 13:10:02.123456: I tensorflow/lite/a.cc:12] b", LogLine("INFO", "b")),
        ("11-22 13:10:02.123  1234  1250 I tflite  : a", LogLine("INFO", "a", "tflite")),
        ("11-22 13:10:02.123  1234  1250 I tflite  :", LogLine("INFO", "", "tflite")),
        ("11-22 13:10:02.123 22838 22838 I a b:c   : d: e", LogLine("INFO", "d: e", "a b:c")),
        ("11-22 13:10:02.123  1234  1250 I tflite  : INFO: a", LogLine("INFO", "a", "tflite")),
        ("11-22 13:10:02.123  1234  1250 E tflite  : FATAL: a", LogLine("FATAL", "a", "tflite")),
        ("I0000 00:00:1700000000.123456    1234 stage.cc:12] ERROR: a", LogLine("ERROR", "a")),
        ("2020-10-28 14:21:10.624179+0800 TFLiteBenchmark[3858:924590] a: b", LogLine("", "a: b", "TFLiteBenchmark")),
        ("2019-07-28 14:21:10.624 my app[3858:924590] WARN: a", LogLine("WARNING", "a", "my app")),
        ("Oct 28 14:21:10 iPhone TFLiteBenchmark[3858] <Error>: a", LogLine("ERROR", "a", "TFLiteBenchmark")),
        ("Oct  8 14:21:10 TFLiteBenchmark(TFL)[3858] <Notice>: INFO: a", LogLine("INFO", "a", "TFLiteBenchmark")),
        ("2020-10-28 14:21:10 a[1:2] b", LogLine("", "2020-10-28 14:21:10 a[1:2] b")),
        ("INFO: I/O of a file (1234): b", LogLine("INFO", "I/O of a file (1234): b")),
    ],
)
def test_a_line_without_its_prefixes(line: str, expected: LogLine) -> None:
    assert plain_lines(line + "\r\n") == [expected]


@pytest.mark.parametrize("divider", ["--------- beginning of main", "--------- switch to crash"])
def test_the_dividers_of_logcat_are_left_out(divider: str) -> None:
    assert plain_lines(f"a\n{divider}\nb") == [LogLine("", "a"), LogLine("", "b")]


def test_levels_come_from_logcat_where_no_word_says_them() -> None:
    log = STYLES["threadtime"](recorded("benchmark_nnapi_compilation_failed"))
    assert [line.text for line in plain_lines(log) if line.level == "ERROR"][-2:] == [
        "Failed to apply NNAPI delegate.",
        "Benchmarking failed.",
    ]
