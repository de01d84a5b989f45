"""Sessions in child processes that fail, hang, are closed or interrupted, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from evaltools.configuration import Configuration
from evaltools.delegates.external import EXTERNAL
from evaltools.errors import (
    ConfigurationUnavailable,
    EvaltoolsError,
    InferenceError,
    SessionEnded,
)
from evaltools.runtime import open_session
from evaltools.runtime.process.isolated import IsolatedSession, open_isolated
from evaltools.runtime.process.restarting import RestartingSession
from evaltools.runtime.session import Array
from tests import tiny_models
from tests.processes import children_of, left_beside, line_of, servers, supervisors
from tests.runtime.openers import (
    aborting,
    doubling,
    ending_at_three,
    isolated,
    leaving,
    model_of,
    never_opened,
    refusing,
    surprising,
    unwinding,
    waiting,
    with_helper,
)


@pytest.fixture
def others() -> set[int]:
    """The processes that other tests may have left, to know those that a test starts."""
    return supervisors()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all files of a session lie."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("opener", "cause"),
    [
        (aborting, r"\(SIGABRT\)$"),
        (leaving, r"\(exit code 7\); it printed last: out of luck$"),
        (unwinding, r"\(exit code 7\); it printed last: ERROR: no memory left for tensor 7 \.\.\. .* of the compiler$"),
        (surprising, r"\(exit code 1\); it printed last: .*KeyError: 'surprise'$"),
    ],
)
def test_a_child_that_dies_while_loading_makes_its_delegate_unavailable(
    opener: Any, cause: str, others: set[int]
) -> None:
    with pytest.raises(ConfigurationUnavailable, match=f"died while the model was loaded {cause}") as caught:
        isolated(opener, "external_delegate_path=x")
    assert caught.value.delegate == EXTERNAL.name
    assert left_beside(others) == set()


def failing(rounding_delegate: Path, folder: Path, fail: str, timeout_s: float = 60.0) -> IsolatedSession:
    text = f"external_delegate_path={rounding_delegate} external_delegate_options=fail:{fail}"
    return isolated(open_session, text, timeout_s, model_of(tiny_models.add_chain(), folder))


@pytest.mark.parametrize(
    ("fail", "timeout_s", "message", "later"),
    [
        ("invoke", 60.0, "invoke fails, as option fail asks", "invoke fails"),
        ("abort", 60.0, r"died during a run \(SIGABRT\)", r"died during a run \(SIGABRT\)"),
        ("hang", 2.0, "no answer within 2 s during a run.*; it was ended", "no answer within 2 s"),
    ],
)
@pytest.mark.usefixtures("time_out_of_runs")
def test_a_delegate_that_fails_while_running_fails_that_run_and_the_next(
    rounding_delegate: Path, tmp_path: Path, fail: str, timeout_s: float, message: str, later: str, others: set[int]
) -> None:
    session = failing(rounding_delegate, tmp_path, fail, timeout_s)
    inputs: Sequence[Array] = [np.zeros((1, 8, 8, 3), np.float32)]
    for expected in (message, later):
        with pytest.raises(InferenceError, match=expected):
            session.run(inputs)
    found = session.run_block([inputs, inputs])
    assert [isinstance(entry, InferenceError) for entry in found] == [True, True]
    assert [isinstance(entry, SessionEnded) for entry in found] == [fail != "invoke"] * 2
    session.close()
    assert left_beside(others) == set()


@pytest.mark.parametrize("opener", [doubling, aborting, refusing])
def test_no_process_and_no_file_is_left(folder: Path, opener: Any, others: set[int]) -> None:
    try:
        session = isolated(opener, "external_delegate_path=UsageError")
    except EvaltoolsError:
        assert opener is not doubling
    else:
        assert list(folder.iterdir()) == [], "no file has a name"
        assert len(supervisors() - others) == 1
        session.run([np.ones((2, 3), np.float32)])
        session.close()
    assert left_beside(others) == set()
    assert list(folder.iterdir()) == []


def test_where_the_supervisor_is_killed_no_process_of_its_child_is_left(others: set[int]) -> None:
    session = isolated(with_helper)
    (supervisor,) = supervisors() - others
    helper = psutil.Process(int(session.printed()))
    os.kill(supervisor, signal.SIGKILL)
    assert session.ended(20.0) is not None
    session.close()
    deadline = time.monotonic() + 20
    while line_of(helper) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert line_of(helper) == ""


def test_without_memory_the_configuration_is_unavailable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate" if hasattr(os, "posix_fallocate") else "truncate", full)
    with pytest.raises(ConfigurationUnavailable, match="^no memory for its inputs and outputs: No space left"):
        isolated(doubling)
    assert list(folder.iterdir()) == []


def until_it_printed(session: IsolatedSession, text: str) -> None:
    deadline = time.monotonic() + 30
    while " ".join(session.printed().split()) != text:
        assert time.monotonic() < deadline, f"{text!r} was not printed"
        time.sleep(0.01)


def once_begun(session: IsolatedSession, act: Callable[[], None]) -> None:
    """Do something as soon as the child says that its run has begun."""

    def watch() -> None:
        until_it_printed(session, "begun")
        act()

    threading.Thread(target=watch, daemon=True).start()


def test_ctrl_c_reaches_the_child_and_is_ignored_there(tmp_path: Path, others: set[int]) -> None:
    answer = tmp_path / "answer"
    session = isolated(waiting, f"external_delegate_path={answer}")
    (supervisor,) = supervisors() - others
    (child,) = children_of(supervisor)

    def interrupt() -> None:
        for process in (supervisor, child, servers()[0].pid):
            os.kill(process, signal.SIGINT)
        answer.touch()

    once_begun(session, interrupt)
    assert session.run([np.array([3.0])]).outputs[0].tolist() == [3.0]
    session.close()


def test_after_ctrl_c_the_late_answer_is_not_taken_for_that_of_another_run(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    session = isolated(waiting, f"external_delegate_path={answer}")
    once_begun(session, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        session.run([np.array([3.0])])
    answer.touch()
    until_it_printed(session, "begun finished")
    with pytest.raises(InferenceError, match="interrupted"):
        session.run([np.array([4.0])])
    session.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a process that keeps the interpreter's lock")
def test_a_run_that_keeps_the_lock_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = "from tests.runtime.openers import isolated, keeping_the_lock\nisolated(keeping_the_lock).run([])"
    number = tmp_path / "process"
    environment = {**os.environ, "EVALTOOLS_TEST_PROCESS": str(number)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment)
    deadline = time.monotonic() + 120
    while not number.exists() or not number.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int(number.read_text())
    time.sleep(0.5)
    assert is_running(child)
    parent.kill()
    parent.wait()
    while is_running(child):
        assert time.monotonic() < deadline, "the child goes on without its parent"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """A process that has ended, but that nobody has waited for, does not run."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_time_out_names_the_flag_that_sets_it(tmp_path: Path) -> None:
    model, asked = model_of(tiny_models.add_chain(), tmp_path), Configuration.from_text("x", "use_gpu=true")
    with pytest.raises(ConfigurationUnavailable) as caught:
        open_isolated(model, asked, 0.5, never_opened, "--example_timeout")
    assert "0.5 s" in str(caught.value)
    assert "--example_timeout=SECONDS allows more" in str(caught.value)


def test_what_takes_far_longer_than_before_hangs_and_after_a_hang_less_time_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evaltools.runtime.process.child.LEAST_LIMIT_S", 0.5)

    def opened() -> IsolatedSession:
        return isolated(ending_at_three, "external_delegate_path=hang", 30.0)

    def seconds_given() -> float:
        outcome = session.run_block([[np.full((2, 3), 3, np.float32)]])[0]
        assert isinstance(outcome, SessionEnded)
        assert outcome.hung
        return float(str(outcome).removeprefix("no answer within ").partition(" s ")[0])

    session = RestartingSession(opened(), opened)
    session.run([np.full((2, 3), 1, np.float32)])
    assert 0.5 <= seconds_given() < 30
    assert seconds_given() == 3
    assert session.crashes.count == 2
    session.close()
