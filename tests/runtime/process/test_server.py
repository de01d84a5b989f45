"""The server of children of a command: a copy of it where it has one thread and little memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests import tiny_models

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no copies of a process elsewhere")

_BEGIN = """
from evaltools.cli.main import set_up_process
set_up_process()
import os, signal, threading
from pathlib import Path
from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.process.server import _servers, start_server

def server():
    (found,) = _servers.values()
    return found.process_id

def is_copy():
    return Path(f"/proc/{server()}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes()

def open_and_close():
    open_isolated(read_model(Path("model.tflite")), Configuration("one")).close()
"""


def said_by(folder: Path, lines: str) -> list[str]:
    (folder / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + lines], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_it_is_a_copy_of_the_command_and_says_nothing_a_second_time(tmp_path: Path) -> None:
    lines = "print('once'); start_server(); first = server(); open_and_close(); print(is_copy(), server() == first)"
    assert said_by(tmp_path, lines) == ["once", "True True"]


@pytest.mark.parametrize(
    "has",
    [
        pytest.param("threading.Thread(target=threading.Event().wait, daemon=True).start()", id="threads"),
        pytest.param("data = bytearray(b'x' * (64 << 20))", id="much memory"),
    ],
)
def test_no_copy_is_made_of_a_process_that_has(has: str, tmp_path: Path) -> None:
    assert said_by(tmp_path, f"{has}; start_server(); open_and_close(); print(is_copy())") == ["False"]


def test_it_has_no_files_of_the_command_open_and_ends_with_it(tmp_path: Path) -> None:
    lines = (
        "file = open('open', 'w'); start_server(); open_and_close(); "
        "held = [os.path.realpath(each.path) for each in os.scandir(f'/proc/{server()}/fd')]; "
        "print(os.path.realpath('open') in held); print(server())"
    )
    is_held, server = said_by(tmp_path, lines)
    assert is_held == "False"
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(server)).wait(timeout=60)


def test_where_it_is_killed_the_next_child_starts_another(tmp_path: Path) -> None:
    lines = (
        "start_server(); open_and_close(); first = server(); os.kill(first, signal.SIGKILL); "
        "open_and_close(); open_and_close(); print(server() == first)"
    )
    assert said_by(tmp_path, lines) == ["False"]
