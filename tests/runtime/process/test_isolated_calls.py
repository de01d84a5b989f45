"""Calls of functions in the child of a session: what they return, and what becomes of the session."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.errors import InferenceError, SessionEnded
from evaltools.runtime import Session, TimedSession, open_session
from tests import tiny_models
from tests.runtime.openers import doubling, isolated, model_of


def process_and_sum(session: Session, numbers: list[int]) -> tuple[int, int]:
    return os.getpid(), sum(numbers) + len(session.inputs)


def failing(_session: Session) -> None:
    raise InferenceError("node 7 failed")


def dying(_session: Session) -> None:
    print("last words", flush=True)
    os._exit(7)


def sleeping(_session: Session, seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def test_a_call_runs_in_the_child_and_the_session_goes_on() -> None:
    session = isolated(doubling)
    process, total = session.call(process_and_sum, [1, 2, 3])
    assert process != os.getpid()
    assert total == 6 + len(session.inputs)
    with pytest.raises(InferenceError, match="^node 7 failed$"):
        session.call(failing)
    assert session.run([np.ones((2, 3), np.float32)]).outputs[0].flat[0] == 2
    assert session.call(process_and_sum, [])[0] == process
    session.close()


def test_a_child_that_dies_during_a_call_is_said_to_have_died() -> None:
    session = isolated(doubling)
    with pytest.raises(SessionEnded, match=r"died during a call \(exit code 7\); it printed last: last words"):
        session.call(dying)
    with pytest.raises(SessionEnded, match="died during a call"):
        session.call(sleeping, 0.0)
    session.close()


@pytest.mark.usefixtures("time_out_of_runs")
def test_a_call_may_take_as_long_as_it_says() -> None:
    session = isolated(doubling, timeout_s=1.0)
    assert session.call(sleeping, 1.3, timeout_s=5.0) == "slept"
    with pytest.raises(SessionEnded, match=r"no answer within 1 s during a call; it was ended"):
        session.call(sleeping, 60.0)
    session.close()


@pytest.mark.parametrize("runtime", ["litert", "tflite_runtime", "compiled"])
def test_a_session_knows_what_its_opening_took(runtime: str, tmp_path: Path) -> None:
    package = "tflite_runtime" if runtime == "tflite_runtime" else "ai_edge_litert"
    pytest.importorskip(package, reason=f"{package} is not installed")
    begun = time.perf_counter_ns()
    session = open_session(
        model_of(tiny_models.classifier(), tmp_path), Configuration.from_text("c", f"runtime={runtime}")
    )
    elapsed_us = (time.perf_counter_ns() - begun) // 1000
    assert isinstance(session, TimedSession)
    opening = session.opening
    assert opening.total_us > 0
    assert opening.import_us + opening.total_us <= elapsed_us
    parts = (opening.load_us, opening.delegates_us, opening.allocate_us)
    if runtime == "compiled":
        assert parts == (None, None, None)
    else:
        assert sum(part for part in parts if part is not None) == opening.total_us
        assert None not in parts
    session.close()


def test_a_long_wait_is_told_before_it_ends(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("evaltools.runtime.process.child._LONG_S", 0.1)
    session = isolated(doubling, timeout_s=60.0)
    assert session.call(sleeping, 0.5) == "slept"
    assert "no answer for 0.1 s during a call; the process is ended after 60 s" in caplog.text
    session.close()
