"""``evaltools capture``: a run of the command line, what is refused, and the files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltools.engine.journal import JOURNAL_NAME
from tests import tiny_models
from tests.cli.evaluate.sample_runs import XNNPACK, imagenet, start
from tests.command import evaltools_here
from tests.tasks.own import task_files
from tests.tasks.own.task_files import write_task, write_values

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing: --run_dir=.... See evaltools capture --help"),
        (["run", "--secs=0"], "--secs=0: give a number of seconds above 0, up to 600"),
        (["run"], "run is not a run folder: it has no journal.sqlite3; give the folder of a --run_dir"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = evaltools_here("capture", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert list(tmp_path.iterdir()) == [], "no folder is made for nothing"


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
        done = evaltools_here("capture", str(run), "--secs=1.5", f"--output={tmp_path / 'captured'}")
        process.communicate(timeout=120)
    assert (done.code, process.returncode) == (0, 0), done.err
    assert "of a run: " in done.out
    assert "trace.json: open it at https://ui.perfetto.dev" in done.err
    summary = json.loads((tmp_path / "captured" / "summary.json").read_text())
    assert 0 < summary["examples_per_second"] < 1 / 0.03
    assert max(summary["stage_seconds"], key=summary["stage_seconds"].get) == "prepare"
    names = [use["name"] for use in summary["processes"]]
    assert names[0] == "evaltools"
    assert {"reference, worker 0", "test, worker 0"} <= set(names)
    trace = json.loads((tmp_path / "captured" / "trace.json").read_text())["traceEvents"]
    assert {"prepare", "inference", "resident memory", "processor", "threads"} <= {event["name"] for event in trace}
    execution = json.loads(output.read_text())["execution"]
    memory = {each["name"]: each for each in execution["memory"]}
    assert set(memory) == {"evaltools", "reference, worker 0", "test, worker 0", "inputs, worker 0"}
    assert memory["test, worker 0"]["configuration"] == "test"
    assert all(len(each["mb"]) == len(each["seconds"]) >= 4 for each in memory.values())
    (worker,) = execution["worker_seconds"]
    assert worker["prepare"] == pytest.approx(execution["stage_seconds"]["prepare"])
    assert worker["prepare"] >= 300 * 0.03
    own = execution["inference_seconds"]
    assert sum(sum(each.values()) for each in own.values()) == pytest.approx(worker["inference"], rel=0.01)


@pytest.mark.once
def test_a_finished_run_is_refused_and_an_interrupted_capture_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert evaltools_here(*imagenet(XNNPACK, pictures=10), f"--run_dir={run}").code == 0
    before = sorted(path.name for path in run.iterdir())
    done = evaltools_here("capture", str(run))
    assert done.code == 2
    assert f"no process here works on the run in {run}: it has ended or was interrupted" in done.err
    assert sorted(path.name for path in run.iterdir()) == before


@pytest.fixture
def hanging_up_ends() -> Iterator[None]:
    """SIGHUP ends what is started here, also where the tests run behind nohup, under which evaltools ignores it too."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hanging_up_ends")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_capture_that_is_ended_takes_its_request_back(number: signal.Signals, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-m", "tests.capture.imitated_run", str(run), "0", "0", "{}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as imitated:
        assert imitated.stdout is not None
        assert imitated.stdout.readline() == "ready\n"
        with start(["capture", str(run), "--secs=60", f"--output={tmp_path / 'captured'}"]) as capture:
            while capture.poll() is None and not (run / "capture-request.json").exists():
                time.sleep(0.02)
            capture.send_signal(number)
            capture.communicate(timeout=60)
        imitated.communicate("")
    assert capture.returncode == 130
    assert list(run.glob("capture*")) == []
