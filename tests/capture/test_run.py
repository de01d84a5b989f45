"""Captures of a program that does what a run does, compared with what it knows of itself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from evaltools.capture.run import capture_run
from evaltools.capture.running import process_of_run
from evaltools.commands.device_run import parse
from evaltools.engine.run_folder import RunIdentity, request_facts
from evaltools.errors import UsageError
from evaltools.request.plain import to_plain
from tests.report.files.test_benchmark_trace import violations

ROOT = Path(__file__).resolve().parents[2]
Begin = Callable[..., subprocess.Popen[str]]


def ended(process: subprocess.Popen[str]) -> int:
    """End it; the number of examples that it has finished."""
    out, _ = process.communicate("")
    return int(out.split()[-1])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts the program in the folder ``tmp_path / "run"``; it has finished some examples then."""
    started = []

    def start(answers: bool = True, child: bool = True, **facts: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.capture.imitated_run", str(tmp_path / "run")]
        words = [
            str(int(answers)),
            str(int(child)),
            json.dumps({name.replace("_", " "): facts[name] for name in facts}),
        ]
        pipe = subprocess.PIPE
        process = subprocess.Popen([*command, *words], stdin=pipe, stdout=pipe, text=True, cwd=ROOT)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_run_that_answers_is_seen_in_whole(begin: Begin, tmp_path: Path) -> None:
    process = begin()
    (child,) = psutil.Process(process.pid).children()
    captured = capture_run(tmp_path / "run", 1.2)
    done = ended(process)
    found = captured.found
    assert found.notes == []
    assert found.examples_done is not None
    assert 0 < found.examples_done <= done
    assert found.examples_per_second is not None
    assert 0 < found.examples_per_second <= 50
    shares = found.stage_seconds["inference"] / sum(found.stage_seconds.values())
    assert shares == pytest.approx(0.75, abs=0.02)
    by_number = {use.process_id: use for use in found.processes}
    assert set(by_number) == {process.pid, child.pid}
    assert by_number[child.pid].name == "gpu, worker 0"
    assert by_number[child.pid].mean_memory_mb >= 50
    events: list[dict[str, Any]] = captured.events
    assert violations([event for event in events if event["ph"] != "M" or event["name"] != "thread_name"]) == []
    work = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in work} == {process.pid}
    memory = [event for event in events if event["name"] == "resident memory" and event["pid"] == child.pid]
    assert len(memory) >= 3
    assert sorted(path.name for path in (tmp_path / "run").iterdir() if "journal" not in path.name) == []


@pytest.mark.once
def test_a_run_that_does_not_answer_is_looked_at_from_outside(begin: Begin, tmp_path: Path) -> None:
    process = begin(answers=False, child=False)
    captured = capture_run(tmp_path / "run", 0.6)
    ended(process)
    found = captured.found
    assert (found.stage_seconds, [use.process_id for use in found.processes]) == ({}, [process.pid])
    assert found.examples_per_second is None
    assert found.examples_done
    (note,) = found.notes
    assert note.startswith("the run did not say what it works on: ")
    assert not (tmp_path / "run" / "capture-request.json").exists()


def test_of_a_run_on_devices_the_processes_of_this_computer_are_seen(begin: Begin, tmp_path: Path) -> None:
    asked = parse("diff", ["--model_file=a.tflite", "--serials=R5,R6", "--device_folder=/data/x"])
    process = begin(answers=False, child=False, **request_facts(to_plain(asked), RunIdentity({})))
    captured = capture_run(tmp_path / "run", 0.6)
    ended(process)
    found = captured.found
    (own,) = found.processes
    assert own.process_id == process.pid
    assert (found.examples_done, found.examples_per_second) == (None, None)
    assert any("only the processes of this computer are seen" in note for note in found.notes)
    assert violations(list(captured.events)) == []
    assert [path.name for path in (tmp_path / "run").glob("capture*")] == []


def test_of_the_run_of_somebody_else_nothing_that_it_names_is_run(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adb, task, seen = tmp_path / "adb", tmp_path / "gift.py", tmp_path / "seen"
    adb.write_text(f"#!/bin/sh\ntouch {seen}\n")
    adb.chmod(0o755)
    task.write_text(f"open({str(seen)!r}, 'w')")
    plain = to_plain(parse("diff", ["--model_file=a.tflite", "--serials=R5", f"--adb={adb}"]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    facts = request_facts({**plain, "task": f"{task}:task"}, RunIdentity({}))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    process = begin(answers=False, child=False, **facts)
    found = capture_run(tmp_path / "run", 0.3).found
    ended(process)
    assert [use.process_id for use in found.processes] == [process.pid]
    assert not seen.exists()


def test_a_process_of_another_user_is_not_the_run(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(child=False)
    monkeypatch.setattr("os.getuid", lambda: 12345)
    with pytest.raises(UsageError, match="no process here works on the run"):
        process_of_run(tmp_path / "run")


@pytest.mark.once
def test_a_run_that_ends_meanwhile_is_said_to(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = begin(answers=False, child=False)

    def found_and_told_to_end(folder: Path) -> psutil.Process:
        root = process_of_run(folder)
        assert process.stdin is not None
        process.stdin.close()
        return root

    monkeypatch.setattr("evaltools.capture.run.process_of_run", found_and_told_to_end)
    found = capture_run(tmp_path / "run", 60.0).found
    assert found.seconds < 60
    assert any(note.startswith("the run ended after ") for note in found.notes)
    process.wait()


def test_where_no_run_goes_on_it_is_said_what_to_do(begin: Begin, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a run folder: it has no journal.sqlite3"):
        process_of_run(tmp_path)
    process = begin(child=False)
    assert process_of_run(tmp_path / "run").pid == process.pid
    ended(process)
    with pytest.raises(UsageError, match="no process here works on the run in .*run: it has ended or was interrupted"):
        capture_run(tmp_path / "run", 1.0)
