"""The answer of a run to whoever asks what it does now."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from evaltools.engine import trace as module
from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.sampling import NamedProcess
from evaltools.engine.steps import Span
from evaltools.engine.trace import REQUEST_NAME, TRACE_NAME, CaptureAnswers, capture
from evaltools.errors import UsageError

SPAN = Span("decode", 5_000, 1_500, 0, "a.jpg")
NAMED = [NamedProcess(os.getpid(), "evaltools"), NamedProcess(77, "gpu, worker 0", "gpu")]


def test_a_run_writes_its_work_while_it_is_asked_for_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_NAME).touch()
    end = threading.Event()

    def work(answers: CaptureAnswers) -> None:
        while not end.wait(0.02):
            answers.add([SPAN], 5)

    with CaptureAnswers(tmp_path, lambda: NAMED) as answers:
        run = threading.Thread(target=work, args=(answers,))
        run.start()
        try:
            text = capture(tmp_path, 0.3)
        finally:
            end.set()
            run.join()
    events: list[dict[str, Any]] = json.loads(text)["traceEvents"]
    done = [event for event in events if event["ph"] == "X"]
    assert 2 <= len(done) <= 40
    assert {(event["name"], event["pid"], event["args"]["what"]) for event in done} == {
        ("decode", os.getpid(), "a.jpg")
    }
    assert [event["args"] for event in events if event["name"] == "examples done"] == [{"examples": 5}] * len(done)
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {os.getpid(): "evaltools", 77: "gpu, worker 0"}
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL_NAME]


def test_a_run_that_ends_meanwhile_leaves_a_whole_trace(tmp_path: Path) -> None:
    (tmp_path / REQUEST_NAME).write_text("500")
    with CaptureAnswers(tmp_path, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    assert {"decode"} < {event["name"] for event in json.loads((tmp_path / TRACE_NAME).read_text())["traceEvents"]}
    assert [path.name for path in tmp_path.iterdir()] == [TRACE_NAME]


def test_without_a_run_the_request_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    with pytest.raises(UsageError, match="is not a run folder: it has no journal"):
        capture(tmp_path, 0.1)
    (tmp_path / JOURNAL_NAME).touch()
    with pytest.raises(UsageError, match="no run answers in .*: it has ended, or loads its models still"):
        capture(tmp_path, 0.1)
    assert [path.name for path in tmp_path.iterdir()] == [JOURNAL_NAME]


@pytest.mark.parametrize("text", ["", "soon", "nan", "-1", "1e9", "9" * 100])
def test_what_is_no_number_of_seconds_is_not_answered(text: str, tmp_path: Path) -> None:
    (tmp_path / REQUEST_NAME).write_text(text)
    with CaptureAnswers(tmp_path, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    assert not (tmp_path / TRACE_NAME).exists()


def test_neither_a_pipe_is_read_nor_a_link_written_through(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("precious")
    folder.mkdir()
    os.mkfifo(folder / REQUEST_NAME)
    with CaptureAnswers(folder, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    (folder / REQUEST_NAME).unlink()
    (folder / REQUEST_NAME).write_text("5")
    for name in (TRACE_NAME, "capture.part"):
        (folder / name).symlink_to(victim)
    with CaptureAnswers(folder, lambda: NAMED) as answers:
        answers.add([SPAN], 5)
    assert victim.read_text() == "precious"
    assert "traceEvents" in (folder / TRACE_NAME).read_text()
