"""The outer command: help, version, speed of start-up, unknown commands."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evaltools import exit_codes
from evaltools.cli import entry
from evaltools.cli.main import main
from evaltools.commands.names import command_names
from evaltools.engine.execution import available_cores
from tests.command import evaltools, evaltools_here
from tests.evaluation_set import make_evaluation_set

MOST_LOADED = 184
"""How many files of evaltools a run may load, so that it starts fast and its way through them can be followed."""


def test_help_imports_neither_numpy_nor_a_runtime() -> None:
    """That of every command, one after the other in one process."""
    script = (
        "import sys\nfrom evaltools.cli.main import main\n"
        "for words in (['--help'], *([*name.split(), '--help'] for name in sys.argv[1:])):\n"
        "    try:\n        main(words)\n    except SystemExit as stop:\n        assert stop.code == 0, words\n"
        "heavy = {'numpy', 'PIL', 'rich', 'google.protobuf', 'ai_edge_litert', 'tflite_runtime'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    names = [*command_names(), "device run", "device run coco"]
    command = [sys.executable, "-c", script, *names]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stderr.strip() == "[]"
    assert completed.stdout.count("usage: evaltools") == 1 + len(names)


def test_a_run_loads_only_what_it_needs(tmp_path: Path) -> None:
    """No task that was not asked for, no search, no chart of figures, no other flag's parser; and few files in all."""
    script = (
        "import sys\nfrom evaltools.cli.main import main\nassert main(sys.argv[1:]) == 0\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] == 'evaltools'), file=sys.stderr)"
    )
    words = make_evaluation_set(tmp_path, count=20).flags("--kernels=default", "--quiet")
    completed = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    loaded = completed.stderr.splitlines()[-1].split()
    tasks = {name.split(".")[2] for name in loaded if name.startswith("evaltools.tasks.")}
    assert tasks <= {"imagenet", "framework"}
    rooms = (
        "locate",
        "suite",
        "device",
        "benchmark",
        "report.page.figures",
        "report.page.make",
        "request.help",
        "request.sweep",
    )
    assert [name for name in loaded if name.removeprefix("evaltools.").startswith(rooms)] == []
    assert len(loaded) <= MOST_LOADED


def test_ctrl_c_while_modules_are_imported_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("evaltools.cli.main.main", interrupted)
    assert entry.main() == exit_codes.INTERRUPTED
    assert capsys.readouterr().err == "evaltools: interrupted before anything was done\n"


def test_alone_it_names_three_commands_that_need_a_model_alone() -> None:
    alone = evaltools_here()
    assert (alone.code, len(alone.out.splitlines())) == (exit_codes.USAGE, 5)
    of_model = evaltools_here("my model.tflite")
    assert of_model.code == exit_codes.USAGE
    for command in ("inspect", "diff", "benchmark"):
        assert f"evaltools {command} MODEL.tflite" in alone.out
        assert f"evaltools {command} 'my model.tflite'" in of_model.err


def test_help_is_one_screen_and_names_every_command() -> None:
    lines = evaltools_here("--help").out.splitlines()
    listed = {line.split()[0] for line in lines if line.startswith("  ")}
    assert len(lines) <= 40
    assert set(command_names()) - listed <= {"inference-diff"}


def test_a_diff_closes_every_file_that_it_opens() -> None:
    model = "datasets/sample/models/float32.tflite"
    words = ("diff", model, "--use_xnnpack", "--num_runs=2", "--noise_floor_runs=0")
    done = evaltools(*words, environment={"PYTHONDEVMODE": "1", "PYTHONWARNINGS": "always::ResourceWarning"})
    assert (done.code, "ResourceWarning" in done.err) == (exit_codes.OK, False), done.err


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
@pytest.mark.skipif(available_cores() < 2, reason="NumPy starts no more threads than there are processors")
@pytest.mark.parametrize(("given", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "2"}, 2)])
def test_numpy_starts_threads_only_where_the_user_says_so(given: dict[str, str], threads: int) -> None:
    script = """
import os
from evaltools.cli.main import set_up_process
set_up_process()
import numpy
numpy.ones((400, 400)) @ numpy.ones((400, 400))
print(len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | given
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) == threads


def test_help_that_cannot_be_printed_is_an_error() -> None:
    script = f"{shlex.quote(sys.executable)} -m evaltools.cli.main --help > /dev/full"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert completed.returncode == 5
    assert "Traceback" not in completed.stderr


def test_control_characters_in_messages_are_shown_not_sent() -> None:
    completed = evaltools_here("a\x1b[31mb\nc")
    assert "\x1b" not in completed.err


def test_a_folder_that_was_deleted_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = evaltools_here("diff", "model.tflite")
    assert (done.code, done.err) == (
        exit_codes.USAGE,
        "evaltools: the current folder is not there any more; change to one that is\n",
    )
    assert evaltools_here("--version").code == exit_codes.OK


@pytest.mark.parametrize("error", [StopIteration("x"), RuntimeError("two\nlines")])
def test_a_fault_of_our_own_is_a_sentence_with_an_exit_code_of_its_own(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(_arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr("evaltools.cli.main._dispatch", faulty)
    assert main(["doctor"]) == exit_codes.FAULT
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert f"evaltools: {type(error).__name__}:" in said
    assert "This is a fault of evaltools. The same command with --debug shows where" in said


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("9 GB"),
        OSError(errno.ENOMEM, "no memory"),
        ImportError("libx.so: failed to map segment from shared object"),
    ],
)
def test_a_lack_of_memory_is_no_fault_of_ours(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hungry(_arguments: list[str]) -> int:
        raise error

    monkeypatch.setattr("evaltools.cli.main._dispatch", hungry)
    assert main(["doctor"]) == exit_codes.NOT_MEASURED
    said = capsys.readouterr().err
    assert f"evaltools: there is too little memory ({error}); free some, or allow more (ulimit -v)" in said
    assert "fault" not in said
