"""Runs of the command on the embedded sample that are disturbed or divided, and what stays of them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltools.datasets import sample
from evaltools.engine.journal import read_journal
from tests.command import Completed, evaltools_here, one_test

PICTURES = 40
XNNPACK = "--use_xnnpack=true"
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="needs /proc to see which processes are there"
)
_MARK = "EVALTOOLS_TEST_RUN"
_SECONDS_TO_LEAVE = 60.0
_INTERRUPTED_AT_WORK = """
import os, signal, sys
from evaltools.cli.shared import progress
from evaltools.cli.main import main
from evaltools.engine.run import Workers
turns = Workers.turns
def interrupted(self, signals):
    for number, turn in enumerate(turns(self, signals)):
        if number == 3:
            os.killpg(0, signal.SIGINT)
        yield turn
Workers.turns = interrupted
progress._SECONDS_BETWEEN_OBJECTS = 0.0
sys.exit(main(sys.argv[1:]))
"""


def imagenet(*more: str, pictures: int = PICTURES) -> list[str]:
    """The command that evaluates the float classifier of the sample, with flags; the labels are known to fit."""
    return [
        "imagenet",
        f"--model_file={sample.model_file('float32')}",
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--ground_truth_labels={sample.ground_truth_file()}",
        f"--model_output_labels={sample.labels_file()}",
        f"--num_images={pictures}",
        "--label_check=false",
        *one_test(*more),
    ]


def coco(*more: str, pictures: int = 20) -> list[str]:
    """The command that evaluates the float detector of the sample."""
    return [
        "coco",
        f"--model_file={sample.detection_model_file('float32')}",
        f"--ground_truth_images_path={sample.detection_images_dir()}",
        f"--ground_truth_annotations={sample.detection_annotations_file()}",
        f"--model_output_labels={sample.detection_labels_file()}",
        f"--num_images={pictures}",
        *one_test(*more),
    ]


def inference_diff(*more: str, runs: int = 20) -> list[str]:
    """The command that compares outputs of the float classifier."""
    return [
        "inference-diff",
        f"--model_file={sample.model_file('float32')}",
        f"--num_runs={runs}",
        "--noise_floor_runs=3",
        *one_test(*more),
    ]


def start(
    arguments: Sequence[str],
    mark: str = "",
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
    program: Sequence[str] = ("-m", "evaltools.cli.main"),
    own_group: bool = False,
) -> subprocess.Popen[str]:
    """Start ``evaltools``; ``mark`` is what :func:`processes_of` finds it and its children by.

    ``program`` is what Python runs, where a test changes something before the command begins. ``own_group``: it and its
    children can be interrupted together, as Ctrl-C in a terminal does.
    """

    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, _MARK: mark, **(environment or {})},
        start_new_session=own_group,
    )


def run(
    arguments: Sequence[str],
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
) -> Completed:
    """Run ``evaltools`` to its end."""
    with start(arguments, "", cwd, environment) as process:
        out, err = process.communicate(timeout=300)
    return Completed(process.returncode, out, err)


def run_interrupted(arguments: Sequence[str]) -> Completed:
    """Run ``evaltools`` with one worker, and with Ctrl-C when three turns are written down and the fourth is under way.

    As from a terminal it reaches every process. Progress in JSON is told after every example.
    """
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT_WORK, *arguments, "--workers=1"],
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
    )
    return Completed(done.returncode, done.stdout, done.stderr)


def figures_of(arguments: Sequence[str], output: Path, code: int = 0, **how: Any) -> Any:
    """Run a command that must end with this exit code; what :func:`figures` finds in its result."""
    return _figures_after(run([*arguments, f"--output_file_path={output}"], **how), output, code)


def figures_here(arguments: Sequence[str], output: Path, code: int = 0) -> Any:
    """The same of a command that is run in this process."""
    return _figures_after(evaltools_here(*arguments, f"--output_file_path={output}"), output, code)


def _figures_after(completed: Completed, output: Path, code: int) -> Any:
    assert completed.code == code, completed.err
    assert "Traceback" not in completed.err
    return figures(output)


def figures(output: Path) -> Any:
    """A JSON result without times and run conditions: all that must be the same however a run was carried out."""
    found = json.loads(output.read_text())
    found["notes"] = [note for note in found.get("notes", []) if not note["text"].startswith("the machine was busy")]
    untimed = [each for each in found["blocks"] if each["title"] != "Times with reading"]
    found["blocks"] = [each for each in untimed if each["place"] not in ("speed", "run")]
    return _without_times(found)


def _without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_times(entry) for entry in value]
    if isinstance(value, dict):
        kept = {name: _without_times(entry) for name, entry in value.items() if not _is_condition(name)}
        return {name: entry for name, entry in kept.items() if entry != {}}
    return value


def _is_condition(name: str) -> bool:
    return name in _CONDITIONS or "latency" in name or name.endswith("_us")


_CONDITIONS = {
    "crashes", "device_run", "drift", "environment", "load", "load_ms", "messages", "peak_memory_mb", "series", "times"
}  # fmt: skip


def processes_of(mark: str) -> list[str]:
    """The command lines of the processes of a run that :func:`start` was given this mark for."""
    wanted = f"{_MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(f"{folder.name}: {(folder / 'cmdline').read_bytes().decode().replace(chr(0), ' ')}")
        except OSError:
            continue
    return found


def below(process: int) -> dict[int, str]:
    """The command line of every process that a process has started, or those have."""
    parents, lines = {}, {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            number = int(folder.name)
            parents[number] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            lines[number] = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
    found: set[int] = {process}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {number: lines[number] for number in found - {process} if number in lines}


def left_after(mark: str) -> list[str]:
    """Those that have not left after some seconds."""
    deadline = time.monotonic() + _SECONDS_TO_LEAVE
    while (found := processes_of(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def journal_rows(folder: Path) -> dict[tuple[int, str], bytes]:
    """Every record of a run folder by example and configuration; nothing of it may be damaged.

    Each example in it must have all configurations, or those that were not given up before.
    """
    journal = read_journal(folder)
    assert journal.damage == []
    return {
        (example, name): journal.content_of(kept)
        for name, own in journal.records.items()
        for example, kept in own.items()
    }
