"""What Android's log says of the benchmark app: by hand, without a device."""

from __future__ import annotations

import subprocess

import pytest

from evaltools.device.app import over_script, read_app_log
from evaltools.device.native_program import KILLED, ProgramRun

PACKAGE = "org.tensorflow.lite.benchmark"
TIMES = "Inference timings in us: Init: 1, First inference: 2, Warmup (avg): 3, Inference (avg): 4"


def line(text: str, process: int = 22838, tag: str = "tflite", level: str = "I") -> str:
    return f"11-22 13:10:02.123 {process:5} {process:5} {level} {tag:<8}: {text}"


STARTED = line(f"Start proc 22838:{PACKAGE}/u0a217 for pre-top-activity {{x}}", 1812, "ActivityManager")


def log(*lines: str) -> str:
    return "".join(f"{text}\n" for text in lines)


def read(*lines: str) -> ProgramRun:
    return read_app_log(log(*lines), PACKAGE, 60.0)


def is_over(*lines: str) -> bool:
    """Whether the shell of the device finds the process in these lines, and its end."""
    script = f"text=$(cat); new() {{ printf '%s\\n' \"$text\"; }}; {over_script(PACKAGE)}; over"
    return subprocess.run(["sh", "-c", script], input=log(*lines), text=True).returncode == 0


def test_the_log_of_the_process_that_was_started_last() -> None:
    found = read(
        line("STARTING!", 3),
        STARTED,
        line("STARTING!"),
        STARTED.replace("22838", "22900"),
        line("STARTING!", 22900),
        line("other", 4),
    )
    assert found.out == log(line("STARTING!", 22900))


@pytest.mark.parametrize(
    "started",
    [STARTED, line("Running TensorFlow Lite benchmark with args: --graph=a", tag="tflite_BenchmarkModelActivity")],
)
def test_the_process_is_known_from_android_or_from_its_first_line(started: str) -> None:
    found = read(line("x", 3), started, line("y"), line("z", 4))
    assert found.failure == 'it did not end within 60 s and was ended; it logged last: "y"'
    assert line("y") in found.out
    assert line("x", 3) not in found.out


def test_a_process_of_another_package_is_not_the_app() -> None:
    other = STARTED.replace(PACKAGE, f"{PACKAGE}.other").replace("22838", "7")
    assert read(other, line("a", 7)) == ProgramRun(
        "", failure="it did not end within 60 s and was ended; it has logged nothing"
    )


@pytest.mark.parametrize(
    "text",
    [
        TIMES,
        "Average inference timings in us: Warmup: 1, Init: 2, Inference: 3Overall 4 MB",
        "Benchmarking failed.",
        "Failed to load model /a b",
        "Failed to apply GPU delegate.",
        "Failed to allocate tensors!",
        "Disallowed CPU fallback detected.",
        "Please specify the name of your TF Lite input file with --graph",
    ],
)
def test_a_run_is_over_with_its_times_or_where_it_gave_up(text: str) -> None:
    assert read(STARTED, line(text)).failure == ""
    assert is_over(STARTED, line(text))
    of_another = (STARTED, line(text, 3), line("count=3 curr=1"))
    assert "it did not end" in read(*of_another).failure
    assert not is_over(*of_another)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        (f"Process {PACKAGE} (pid 22838) has died: fg  TOP", "ActivityManager"),
        (f"Process {PACKAGE} (pid 22838) has died", "ActivityManager"),
        (f"Killing 22838:{PACKAGE}/u0a217 (adj 0): user request after error", "ActivityManager"),
        (f"Kill '{PACKAGE}' (22838), uid 10217, oom_score_adj 0 to free 99 kB", "lowmemorykiller"),
        (f"[0,22838,{PACKAGE},948452932,java.lang.Error]", "am_crash"),
    ],
)
def test_a_process_that_android_ended(text: str, tag: str) -> None:
    ended = line(text, 1812, tag)
    found = read(STARTED, ended)
    assert (found.failure, found.code) == (f"it ended before its time: {text}", KILLED)
    assert is_over(STARTED, ended)
    assert read(STARTED, line(TIMES), ended).failure == ""


@pytest.mark.parametrize(
    "text",
    [
        f"Process {PACKAGE} (pid 22837) has died: it was there before",
        f"Process {PACKAGE}.other (pid 22838) has died",
        f"Killing 22837:{PACKAGE}/u0a217 (adj 900): stop {PACKAGE}",
    ],
)
def test_the_end_of_another_process_is_none_of_the_app(text: str) -> None:
    ended = line(text, 1812, "ActivityManager")
    assert read(STARTED, ended).code != KILLED
    assert not is_over(STARTED, ended)


def test_an_exception_with_and_without_words() -> None:
    crash = line("FATAL EXCEPTION: main", tag="AndroidRuntime", level="E")
    words = line("java.lang.UnsatisfiedLinkError: no tensorflowlite_benchmark", tag="AndroidRuntime", level="E")
    found = read(STARTED, crash, line(f"Process: {PACKAGE}, PID: 22838", tag="AndroidRuntime", level="E"), words)
    assert found.failure == "it crashed: java.lang.UnsatisfiedLinkError: no tensorflowlite_benchmark"
    assert read(STARTED, crash).failure == "it crashed: FATAL EXCEPTION: main"
    assert is_over(STARTED, crash)
    assert "it did not end" in read(STARTED, crash.replace("22838", "   12")).failure
