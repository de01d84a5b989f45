"""``evaltools capture``: a run of the command line, what is refused, and the files."""

from __future__ import annotations

import json
import re
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.trace import REQUEST_NAME
from evaltools.result.section import Chart, Number, Table
from evaltools.result_file import read_result
from tests import tiny_models
from tests.cli.evaluate.sample_runs import start
from tests.command import evaltools_here
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task, write_values

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.once
def test_a_run_is_captured_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    content = task_files.BRIGHTNESS.replace(
        "    def prepare(value, tensors):", "    def prepare(value, tensors):\n        import time; time.sleep(0.03)"
    )
    task = f"{write_task(tmp_path, content)}:brightness"
    options = [
        f"--model_file={tmp_path / 'model.tflite'}",
        f"--values={write_values(tmp_path, 300)}",
        "--workers=1",
        "--kernels=default",
    ]
    run, output = tmp_path / "run", tmp_path / "result.json"
    with start(["run", task, *options, f"--run_dir={run}", f"--output={output}"]) as process:
        while process.poll() is None and not (run / JOURNAL_NAME).exists():
            time.sleep(0.05)
        time.sleep(3)
        done = evaltools_here("capture", str(run), "--secs=1.5", f"--output={tmp_path / 'trace.json'}")
        process.communicate(timeout=120)
    assert (done.code, done.out, process.returncode) == (0, "", 0), done.err
    assert "trace.json: open it at https://ui.perfetto.dev" in done.err
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"prepare", "inference", "examples done"} <= {event["name"] for event in trace}
    names = {event["args"]["name"] for event in trace if event["name"] == "process_name"}
    assert {"evaltools", "reference, worker 0", "test, worker 0"} <= names
    (went,) = (section.blocks for section in read_result(output).blocks if section.title == "Where the time goes")
    memory = next(each for each in went if isinstance(each, Chart) and each.caption == "Memory of each process")
    points = Counter(mark.of for mark in memory.marks)
    assert set(points) == {"evaltools", "reference, worker 0", "test, worker 0", "inputs, worker 0"}
    assert min(points.values()) >= 4
    work = next(each.text for each in went if isinstance(each, Chart) and each.caption == "What took the time")
    seconds = {name: float(spent) for name, spent in re.findall(r"(\w+) ([\d.e-]+) s\b", work)}
    assert seconds["prepare"] >= 300 * 0.03
    (inference,) = (each for each in went if isinstance(each, Table))
    parts = [cell.value for row in inference.rows for cell in row if isinstance(cell, Number) and cell.value]
    assert sum(parts) == pytest.approx(seconds["inference"], rel=0.02)


def test_a_capture_that_is_ended_takes_its_request_back(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / JOURNAL_NAME).touch()
    with start(["capture", str(run), "--secs=60", f"--output={tmp_path / 'trace.json'}"]) as capture:
        while capture.poll() is None and not (run / REQUEST_NAME).exists():
            time.sleep(0.02)
        capture.send_signal(signal.SIGTERM)
        capture.communicate(timeout=60)
    assert capture.returncode == 130
    assert list(run.glob("capture*")) == []
