"""The outer command: help, version, speed of start-up, unknown commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from evaltools.commands.names import command_names
from evaltools.engine.execution import available_cores
from tests.command import evaltools


def test_help_lists_every_command_and_exit_code() -> None:
    completed = evaltools("--help")
    assert completed.code == 0
    for name in command_names():
        assert f"\n  {name} " in completed.out
    assert "\n  130  interrupted" in completed.out


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in command_names())])
def test_help_imports_neither_numpy_nor_a_runtime(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom evaltools.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as stop:\n    assert stop.code == 0\n"
        "heavy = {'numpy', 'PIL', 'rich', 'google.protobuf', 'ai_edge_litert', 'tflite_runtime'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    completed = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert completed.stderr.strip() == "[]"
    assert "usage: evaltools" in completed.stdout


def test_version() -> None:
    assert evaltools("--version").out.startswith("evaltools 0.")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.skipif(available_cores() < 2, reason="NumPy starts no more threads than there are processors")
@pytest.mark.parametrize(
    ("said", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2), ({"OPENBLAS_NUM_THREADS": "2"}, 2)]
)
def test_numpy_starts_threads_only_where_the_user_says_so(said: dict[str, str], threads: int) -> None:
    script = """
import os
from evaltools.cli.main import set_up_process
set_up_process()
import numpy
numpy.ones((400, 400)) @ numpy.ones((400, 400))
print(len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | said
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == threads


def test_an_unknown_command_is_refused_with_the_nearest() -> None:
    completed = evaltools("imagnet")
    assert completed.code == 2
    assert "'imagnet' is no command. Did you mean imagenet?" in completed.err


def test_nothing_typed_shows_the_help() -> None:
    completed = evaltools()
    assert completed.code == 2
    assert "usage: evaltools COMMAND" in completed.out


def test_delegates_lists_each_with_its_switch() -> None:
    completed = evaltools("delegates")
    assert completed.code == 0
    assert "NNAPI            --use_nnapi" in completed.out
    assert "not from Python here" in completed.out
    assert "XNNPACK          --use_xnnpack                    --runtime=" in completed.out
    assert "`gpu_precision_loss_allowed`" in evaltools("delegates", "--flags").out


@pytest.mark.parametrize("arguments", ["--help", "--version", "delegates", "delegates --flags", "imagenet --bad"])
@pytest.mark.parametrize("ending", ["| true", "2>&1 | true"])
def test_a_reader_that_has_seen_enough_is_no_error(arguments: str, ending: str) -> None:
    script = f"{shlex.quote(sys.executable)} -m evaltools.cli.main {arguments} {ending}"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in completed.stderr


def test_help_that_cannot_be_printed_is_an_error() -> None:
    script = f"{shlex.quote(sys.executable)} -m evaltools.cli.main --help > /dev/full"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert completed.returncode == 5
    assert "Traceback" not in completed.stderr


def test_control_characters_in_messages_are_shown_not_sent() -> None:
    completed = evaltools("a\x1b[31mb\nc")
    assert "\x1b" not in completed.err
