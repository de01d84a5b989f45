"""A command that a signal ends, at any time: one exit code, and nothing is left behind."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path

import pytest

from tests.cli.evaluate.sample_runs import imagenet, left_after, needs_proc, processes_of, start

pytestmark = [pytest.mark.once, needs_proc]
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

ENDED_AT = """
import importlib, os, sys, threading, time
from evaltools.cli import entry
number, moment, words = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
def end():
    os.kill(os.getpid(), number)
def before_call(place, name, count):
    owner, called = place, getattr(place, name)
    left = iter(range(count - 1, -1, -1))
    def ending(*arguments, **more):
        if next(left, None) == 0:
            end()
        return called(*arguments, **more)
    setattr(owner, name, ending)
def child_has_children():
    import psutil, subprocess
    start = subprocess.Popen
    def starting(words, **more):
        process = start(words, **more)
        if "evaltools.cli.runs.handed_over" in words:
            threading.Thread(target=end_with_children, args=(psutil.Process(process.pid),)).start()
        return process
    def end_with_children(process):
        while process.is_running() and len(process.children(recursive=True)) < 3:
            time.sleep(0.01)
        end()
    subprocess.Popen = starting
if moment == "before":
    before_call(importlib.import_module("evaltools.cli.main"), "set_up_process", 1)
elif moment == "pass":
    before_call(importlib.import_module("evaltools.engine.journal").Journal, "add", 2)
elif moment == "after":
    before_call(importlib.import_module("evaltools.cli.evaluated"), "write_report", 1)
elif moment == "child":
    child_has_children()
sys.argv[1:] = words
code = entry.main()
if moment == "end":
    end()
sys.exit(code)
"""
EVERY_MOMENT = [(moment, signal.SIGTERM) for moment in ("before", "pass", "after", "child", "end")]
OTHERS = [
    *((moment, each) for moment in ("pass", "child") for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)),
    ("pass", signal.SIGKILL),
]


@pytest.mark.parametrize(("moment", "number"), EVERY_MOMENT + OTHERS)
def test_a_signal_ends_a_command_with_one_code_and_nothing_left(
    moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    words = imagenet("--output_file_path=r.json", pictures=10)
    if moment == "child":
        command = json.dumps(shlex.join(imagenet(pictures=10)))
        (tmp_path / "gates.toml").write_text(f"[runs.a]\ncommand = {command}\n[[gates]]\nlimits = ['top1 >= 10 %']\n")
        words = ["gate", "--gates=gates.toml"]
    with start(
        [str(int(number)), moment, *words],
        str(tmp_path),
        cwd=tmp_path,
        environment={"TMPDIR": str(temporary)},
        program=("-c", ENDED_AT),
    ) as process:
        _, err = process.communicate(timeout=120)
    is_killed = number == signal.SIGKILL
    assert process.returncode == (0 if moment == "end" else -9 if is_killed else 130), err
    assert "Traceback" not in err
    assert (left_after if is_killed else processes_of)(str(tmp_path)) == []
    assert list(temporary.iterdir()) == []
    if not is_killed and moment in ("pass", "after"):
        assert json.loads((tmp_path / "r.json").read_text())["rows"]
