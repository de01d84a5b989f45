"""The answer of a run to whoever asks what it does now."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from evaltools.engine.capture_answer import REQUEST_NAME, CaptureAnswers, CaptureRequest
from evaltools.engine.process_memory import NamedProcess
from evaltools.engine.stages import Span
from evaltools.engine.trace import events_in

SPAN = Span("decode", 5_000, 1_500, 0, "a.jpg")
NAMED = [NamedProcess(os.getpid(), "evaltools"), NamedProcess(77, "gpu, worker 0", "gpu")]


def at_work(answers: CaptureAnswers, end: threading.Event) -> None:
    while not end.wait(0.02):
        answers.add([SPAN], 5)


def asked(folder: Path, seconds: float, patience_s: float = 5.0) -> str | None:
    """What a run answers that does a piece of work every 20 ms."""
    end = threading.Event()
    with CaptureAnswers(folder, lambda: NAMED) as answers:
        run = threading.Thread(target=at_work, args=(answers, end))
        run.start()
        try:
            with CaptureRequest(folder, seconds) as request:
                return request.answer(patience_s)
        finally:
            end.set()
            run.join()


def test_a_run_writes_its_work_for_the_seconds_that_are_asked_for(tmp_path: Path) -> None:
    text = asked(tmp_path, 0.3)
    assert text is not None
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    work = [event for event in events if event["ph"] == "X"]
    assert 2 <= len(work) <= 40
    counted = [event["args"] for event in events if event["name"] == "examples done"]
    assert counted == [{"examples": 5}] * len(work)
    assert {(event["name"], event["pid"], event["args"]["what"]) for event in work} == {
        ("decode", os.getpid(), "a.jpg")
    }
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {os.getpid(): "evaltools", 77: "gpu, worker 0"}
    assert list(tmp_path.iterdir()) == [], "nothing is left in the run folder"


@pytest.mark.parametrize("ends", [False, True])
def test_an_answer_is_read_as_far_as_it_is_and_finished_by_a_run_that_ends(ends: bool, tmp_path: Path) -> None:
    with CaptureAnswers(tmp_path, lambda: NAMED) as answers, CaptureRequest(tmp_path, 500.0) as request:
        answers.add([SPAN], 5)
        (unfinished,) = tmp_path.iterdir()
        while not unfinished.read_text():
            answers.add([SPAN] * 100, 5)
        if ends:
            answers.__exit__(None, None, None)
        text = request.answer(0.0)
    assert text is not None
    assert SPAN.stage in {event["name"] for event in (json.loads(text)["traceEvents"] if ends else events_in(text))}


def test_without_a_run_there_is_no_answer_and_the_request_is_taken_back(tmp_path: Path) -> None:
    with CaptureRequest(tmp_path, 0.1) as request:
        assert request.answer(0.1) is None
        assert [path.name for path in tmp_path.iterdir()] == [REQUEST_NAME]
    assert list(tmp_path.iterdir()) == []


ASKED = '{"answer": "capture-0123456789abcdef0123456789abcdef.json", "seconds": 5}'
UNFINISHED = "capture-0123456789abcdef0123456789abcdef.json.part"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "[]",
        '{"answer": "../../elsewhere.json", "seconds": 1}',
        ASKED.replace("5}", "1e9}"),
        ASKED.replace("5}", '"soon"}'),
        ASKED.replace("5}", "9" * 400 + "}"),
        ASKED.replace("5}", "1" + " " * 1024 + "}"),
        ASKED,
    ],
)
def test_a_request_that_is_none_or_was_left_behind_is_taken_away_and_not_answered(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    folder.mkdir(parents=True)
    (folder / REQUEST_NAME).write_text(text)
    if text == ASKED:
        os.utime(folder / REQUEST_NAME, (0, 0))
    with CaptureAnswers(folder, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    left = [REQUEST_NAME] if len(text) > 1024 else []
    assert [path.name for path in tmp_path.rglob("*.json*")] == left, "what is too long for one is not read"


def test_a_pipe_in_place_of_a_request_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / REQUEST_NAME)
    with CaptureAnswers(tmp_path, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    assert [path.name for path in tmp_path.iterdir()] == [REQUEST_NAME]


def test_an_answer_is_not_written_to_what_is_there_already(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    unfinished = tmp_path / "run" / UNFINISHED
    unfinished.parent.mkdir()
    for put in (os.mkfifo, lambda path: path.symlink_to(victim), lambda path: path.symlink_to(tmp_path / "none")):
        put(unfinished)
        (unfinished.parent / REQUEST_NAME).write_text(ASKED)
        with CaptureAnswers(unfinished.parent, lambda: NAMED) as answers:
            answers.add([SPAN], 5)
        assert list(unfinished.parent.iterdir()) == [unfinished]
        unfinished.unlink()
    assert victim.read_text() == "precious"
    assert not (tmp_path / "none").exists()


def test_a_run_looks_at_most_five_times_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with CaptureAnswers(tmp_path, lambda: NAMED) as answers:
        monkeypatch.setattr(answers, "_look", lambda _folder, moment: looks.append(moment))
        for _ in range(100):
            answers.add([SPAN], 5)
            now[0] += 0.01
    assert len(looks) == 5
