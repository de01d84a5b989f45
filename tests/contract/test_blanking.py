"""What the contract records of a result, and how it shows what differs."""

from __future__ import annotations

import shlex

import pytest

from tests.contract.blanking import blank_paths, blank_text, differences, facts


def test_facts_are_recorded_and_amounts_of_the_machine_are_not() -> None:
    steady = (
        "ap_small", "ar_small", "same_shape", "score_shift", "skipped_files", "not_saved", "file", "images_digest",
        "peak", "source", "command", "max_secs",
    )  # fmt: skip
    unsteady = ("elapsed_s", "first_us", "load_ms", "memory", "peak_memory_mb", "run_and_read_latency", "version")
    recorded = facts({key: [{"of": key}] for key in (*steady, *unsteady)})
    assert list(recorded) == [f"{key}[0].of: {key}" for key in sorted(steady)]


def test_a_screen_loses_times_and_progress_and_keeps_headings() -> None:
    screen = (
        "evaluated 4 of 4 (100 %), 3.5/s, 1 failed\n"
        "configuration    top-1   latency   speed\n"
        "test           92.50 %  0.075 ms  3.61x (3.4 to 3.8)\n"
        "more           92.50 %  0.075 ms  about 3.6x [times jumped]\n"
    )
    heads, *rows = blank_text(screen).splitlines()
    assert heads == "configuration  top-1  latency  speed"
    assert rows == [f"{name}  92.50 %  AMOUNT  SPEED" for name in ("test", "more")]


def test_a_path_with_blanks_is_recorded_as_one_without() -> None:
    words = ["imagenet", "{}/a.tflite", "--images={}", "--config", "x: library={}/x y.so"]
    for folder in ("/folder", "/a folder"):
        typed = shlex.join(word.format(folder) for word in words)
        expected = "imagenet SAMPLE/a.tflite --images=SAMPLE --config 'x: library=SAMPLE/x y.so'"
        assert blank_paths(typed, {folder: "SAMPLE"}) == expected
    assert blank_paths("no file '/folder/a'", {"/folder": "SAMPLE"}) == "no file 'SAMPLE/a'"


@pytest.mark.parametrize(
    ("recorded", "now", "shown"),
    [
        ("a 1.00", "a 1.04", []),
        ("a 1.00", "a 1.2", ["@@ -1 +1 @@", "-a 1.00", "+a 1.2"]),
        ("a[40]: 1", "a[41]: 1", ["@@ -1 +1 @@", "-a[40]: 1", "+a[41]: 1"]),
        ("a 1.00\nc 2\nd\ne", "a 1.04\nd\ne", ["@@ -1,3 +1,2 @@", " a 1.04", "-c 2", " d"]),
    ],
)
def test_only_what_is_beyond_the_tolerance_is_a_difference(recorded: str, now: str, shown: list[str]) -> None:
    assert differences(recorded, now, 0.05) == shown
