"""What Android's log says of the benchmark app: by hand, without a device."""

from __future__ import annotations

import pytest

from evaltools.device.programs.app_log import joined_log, marks_shown, read_app_log

PACKAGE = "org.tensorflow.lite.benchmark"
TIMES = "Inference timings in us: Init: 1, First inference: 2, Warmup (avg): 3, Inference (avg): 4"


def line(text: str, process: int = 22838, tag: str = "tflite", level: str = "I") -> str:
    return f"11-22 13:10:02.123 {process:5} {process:5} {level} {tag:<8}: {text}"


STARTED = line(f"Start proc 22838:{PACKAGE}/u0a217 for pre-top-activity {{x}}", 1812, "ActivityManager")


def log(*lines: str) -> str:
    return "".join(f"{text}\n" for text in lines)


def test_the_log_of_the_process_that_was_started_last() -> None:
    text = log(
        line("STARTING!", 3),
        STARTED,
        line("STARTING!"),
        STARTED.replace("22838", "22900"),
        line("STARTING!", 22900),
        line("other", 4),
    )
    assert read_app_log(text, PACKAGE).log == log(line("STARTING!", 22900))


@pytest.mark.parametrize(
    "started",
    [
        STARTED,
        line("Running TensorFlow Lite benchmark with args: --graph=a", tag="tflite_BenchmarkModelActivity"),
        line("STARTING!"),
    ],
)
def test_the_process_is_known_from_android_or_from_its_first_line(started: str) -> None:
    state = read_app_log(log(line("x", 3), started, line("y"), line("z", 4)), PACKAGE)
    assert state.last == "y"
    assert line("y") in state.log
    assert line("x", 3) not in state.log


def test_a_process_of_another_package_is_not_the_app() -> None:
    other = STARTED.replace(PACKAGE, f"{PACKAGE}.other").replace("22838", "7")
    assert read_app_log(log(other, line("a", 7)), PACKAGE).log == ""


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
    state = read_app_log(log(STARTED, line(text)), PACKAGE)
    assert (state.is_over, state.failure) == (True, "")
    assert not read_app_log(log(STARTED, line(text, 3), line("count=3 curr=1")), PACKAGE).is_over


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
    assert read_app_log(log(STARTED, ended), PACKAGE).failure == f"it ended before its time: {text}"
    assert read_app_log(log(STARTED, line(TIMES), ended), PACKAGE).failure == ""


@pytest.mark.parametrize(
    "text",
    [
        f"Process {PACKAGE} (pid 22837) has died: it was there before",
        f"Process {PACKAGE}.other (pid 22838) has died",
        f"Killing 22837:{PACKAGE}/u0a217 (adj 900): stop {PACKAGE}",
    ],
)
def test_the_end_of_another_process_is_none_of_the_app(text: str) -> None:
    assert read_app_log(log(STARTED, line(text, 1812, "ActivityManager")), PACKAGE).failure == ""


def test_an_exception_without_words() -> None:
    crash = line("FATAL EXCEPTION: main", tag="AndroidRuntime", level="E")
    assert read_app_log(log(STARTED, crash), PACKAGE).failure == "it crashed: FATAL EXCEPTION: main"
    assert read_app_log(log(STARTED, crash.replace("22838", "   12")), PACKAGE).failure == ""


def test_a_log_that_forgets_its_beginning_is_joined() -> None:
    shown = [log("m0.", "a", "b"), log("m0.", "a", "b", "m1.", "c"), log("b", "m1.", "c", "m2.", "d"), log("m2.", "e")]
    kept, marks = "m0.", ["m0."]
    for number, text in enumerate(shown, 1):
        joined = joined_log(kept, text, marks)
        assert joined is not None
        kept = joined
        marks.append(f"m{number}.")
    assert kept == log("m0.", "a", "b", "m1.", "c", "m2.", "e")
    assert joined_log(kept, log("f"), marks) is None


def test_marks_that_the_log_has_forgotten_are_looked_for_no_more() -> None:
    assert marks_shown(["m1", "m2", "m3", "m4"], log("m2", "a", "m4")) == ["m2", "m3", "m4"]
    assert marks_shown(["m1", "m2"], log("m1", "m2")) == ["m1", "m2"]
    assert marks_shown(["m1"], "") == []
