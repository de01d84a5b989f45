"""``evaltools suite``: what goes wrong with one model costs no other, and a killed suite goes on where it was."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import evaltools as et
from evaltools.datasets import sample
from evaltools.report.screen.rows import ModelRow
from evaltools.report.screen.table import word_of
from evaltools.result.result import ALL, Row
from tests.command import Completed, evaltools_here
from tests.limits import limits_in

pytestmark = pytest.mark.once
QUICK = "--job=diff: diff --num_runs=2 --noise_floor_runs=1"
TESTS = ("--config=xnnpack: use_xnnpack=true", "--config=builtin: kernels=builtin")
FOUND = {
    "broken all": "failed",
    "float32 xnnpack": "equivalent", "float32 builtin": "identical",
    "int8 xnnpack": "equivalent", "int8 builtin": "identical",
}  # fmt: skip
"""The verdicts on :func:`models` of an undisturbed suite."""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models that run, one that is none."""
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("float32", "int8"):
        shutil.copy(sample.model_file(name), folder)
    (folder / "broken.tflite").write_bytes(b"no model at all")
    return folder


def found(file: Path) -> dict[str, str]:
    """What became of every configuration, by model."""
    rows = rows_in(file)
    return {
        f"{row.facts['model']} {'all' if row.name == ALL else row.name}": word_of(ModelRow("", rows.result, row.entry))
        for row in rows
        if row.entry.role == "test"
    }


def rows_in(file: Path) -> et.Result:
    return et.load(file)


def states(suite: et.Result) -> list[str]:
    """What became of each job."""
    return [row.entry.texts.get("state", "done") for row in suite if row.entry.role == "test"]


def test_a_model_that_is_none_costs_its_own_entry(models: Path, tmp_path: Path) -> None:
    output, page = tmp_path / "s.json", tmp_path / "s.md"
    done = evaltools_here("suite", str(models), QUICK, *TESTS, f"--output={output}", f"--report={page}")
    assert done.code == 3
    assert found(output) == FOUND
    (failed,) = [row for row in json.loads(output.read_text())["rows"] if row.get("status") == "not measured"]
    assert failed["texts"]["state"] == "failed"
    assert failed["reason"].startswith(f"{models}/broken.tflite")
    assert failed["reason"] in done.out
    assert "runs: 3 of 3" in done.err
    assert "| broken | all | **failed** |" in page.read_text()


def test_a_delegate_that_crashes_or_hangs_costs_its_own_configuration(
    models: Path, tmp_path: Path, rounding_delegate: Path
) -> None:
    def own(name: str) -> str:
        return f"--config={name}: external_delegate_path={rounding_delegate} external_delegate_options=fail:{name}"

    output = tmp_path / "s.json"
    job = "--job=diff: diff --num_runs=2 --noise_floor_runs=1 --example_timeout=5 --max_crashes=1"
    model = str(models / "float32.tflite")
    done = evaltools_here("suite", model, job, own("abort"), own("hang"), TESTS[0], f"--output={output}")
    assert done.code == 3
    assert found(output) == {
        "float32 abort": "not measured", "float32 hang": "not measured", "float32 xnnpack": "equivalent",
    }  # fmt: skip
    suite = rows_in(output)
    assert "SIGABRT" in str(suite["abort"].reason)
    assert "no answer within 5 s" in str(suite["hang"].reason)


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "evaltools.cli.main", *words]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def finished(run: Path) -> list[Path]:
    return list(run.glob("entries/*/result.json"))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_a_suite_that_is_killed_twice_goes_on_and_measures_nothing_twice(models: Path, tmp_path: Path) -> None:
    words = ("suite", "models", QUICK, *TESTS, "--run_dir=run")
    run = tmp_path / "run"
    first = start(tmp_path, *words)
    wait_for(lambda: list(run.glob("entries/int8*")))
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_for(lambda: not left(run))
    kept = {path: path.stat().st_mtime_ns for path in finished(run)}
    second = start(tmp_path, "resume", "run")
    wait_for(lambda: left(run) or second.poll() is not None)
    second.send_signal(signal.SIGKILL)
    second.wait()
    wait_for(lambda: not left(run))
    done = evaltools_here("resume", "run", "--output=s.json", cwd=tmp_path)
    assert done.code == 3, done.err
    assert found(tmp_path / "s.json") == FOUND
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    again = evaltools_here(*words, "--output=again.json", cwd=tmp_path)
    assert "runs: 3 of 3" in again.err
    assert rows_in(tmp_path / "again.json").result.rows == rows_in(tmp_path / "s.json").result.rows


def left(run: Path) -> list[str]:
    """The processes that carry an entry of the run out."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            commands.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return [command for command in commands if str(run / "entries") in command]


def test_another_suite_does_not_go_on_in_its_folder(models: Path, tmp_path: Path) -> None:
    model = models / "int8.tflite"
    words = ("suite", str(model), QUICK, TESTS[1], f"--run_dir={tmp_path / 'run'}")
    assert evaltools_here(*words).code == 0
    other = evaltools_here(*words, TESTS[0])
    assert other.code == 2
    assert "holds another run" in other.err
    shutil.copy(sample.model_file("float32"), model)
    changed = evaltools_here(*words)
    assert changed.code == 2
    assert "the model int8 was" in changed.err
    merged = evaltools_here("merge", str(tmp_path / "run"))
    assert (merged.code, "a suite, which has no shards" in merged.err) == (2, True)


def test_a_suite_whose_data_changed_is_another_one(tmp_path: Path) -> None:
    truths = tmp_path / "truths.txt"
    shutil.copy(sample.ground_truth_file(), truths)
    data = (f"--images={sample.images_dir()}", f"--ground_truth={truths}", f"--labels={sample.labels_file()}")
    job = f"--job=top1: imagenet {shlex.join(data)} --num_images=2"
    words = ("suite", str(sample.model_file("int8")), job, f"--run_dir={tmp_path / 'run'}")
    assert evaltools_here(*words).code == 0
    lines = truths.read_text().splitlines()
    truths.write_text("\n".join([*lines[1:], lines[0]]))
    changed = evaltools_here(*words)
    assert (changed.code, "what --ground_truth_labels of the job top1 names was" in changed.err) == (2, True)


def test_a_gate_finds_what_is_worse_than_in_an_earlier_suite(models: Path, tmp_path: Path) -> None:
    broken, good = str(models / "broken.tflite"), str(models / "float32.tflite")
    fp16 = "--config=xnnpack: use_xnnpack=true xnnpack_force_fp16=true"

    def measured(name: str, *words: str) -> Path:
        evaltools_here("suite", *words, QUICK, f"--output={tmp_path / name}.json")
        return tmp_path / f"{name}.json"

    def gate(now: Path, before: Path) -> tuple[Completed, dict[str, str]]:
        """What it printed, and its verdicts but those on times, of which two runs are chance."""
        done = evaltools_here("gate", str(now), f"--against={before}", f"--json={tmp_path / 'o.json'}")
        found = {each["limit"]: each["verdict"] for each in limits_in(tmp_path / "o.json")}
        return done, {limit: verdict for limit, verdict in found.items() if "slowdown" not in limit}

    before, nothing = measured("before", broken, good, TESTS[0]), measured("nothing", broken, TESTS[0])
    same, verdicts = gate(measured("same", broken, good, TESTS[0]), before)
    assert set(verdicts.values()) == {"pass"}, same.out
    assert "same/broken/diff: it was measured in neither" in same.out
    worse, verdicts = gate(measured("worse", broken, good, fp16), before)
    assert (worse.code, verdicts["verdict no worse than equivalent"]) == (1, "fail")
    assert "xnnpack: --use_xnnpack=true then, --use_xnnpack=true --xnnpack_force_fp16=true now" in worse.out
    lost, verdicts = gate(nothing, before)
    assert (lost.code, verdicts) == (3, {"measured again": "not measured"})
    never, _ = gate(measured("never", broken, TESTS[0]), nothing)
    assert (never.code, "nothing was measured in both" in never.out) == (3, True)


def test_a_file_with_a_task_and_a_benchmark(models: Path, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(f'''
models = ["models/[fi]*.tflite"]
[configurations]
xnnpack = "use_xnnpack=true"
[jobs.accuracy]
command = """imagenet --images='{sample.images_dir()}' --ground_truth='{sample.ground_truth_file()}' --num_images=5
  --labels='{sample.labels_file()}' --label_check=false"""
[jobs.time]
command = "benchmark --num_runs=3 --min_secs=0.01 --warmup_min_secs=0 --rounds=2"
models = ["int8*"]
''')  # fmt: skip
    result = et.suite(tmp_path / "suite.toml").result
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in result.rows:
        rows.setdefault((result.model_names[row.model], row.job), []).append(row)
    assert set(rows) == {("float32", "accuracy"), ("int8", "accuracy"), ("int8", "time")}
    assert [row.role for row in rows["int8", "accuracy"]] == ["reference", "test"]
    assert all(row.value("top1") is not None and row.value("latency_ms") for row in rows["int8", "accuracy"])
    (timed,) = rows["int8", "time"]
    assert timed.value("latency_ms")
    assert [each.name for each in timed.delegates] == ["XNNPACK"]


def test_from_python_also_of_a_model_that_is_deleted_meanwhile(models: Path, tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        counts.append((done, total))
        if done == total:
            (models / "int8.tflite").unlink()

    suite = et.suite(
        [models / "broken.tflite", models / "int8.tflite"],
        tests={"builtin": et.Configuration(kernels="builtin")},
        jobs={"diff": "diff --num_runs=2 --noise_floor_runs=1"},
        progress=progress,
    )
    assert counts == [(0, 2), (1, 2), (2, 2)]
    assert states(suite) == ["failed", "done"]
    assert "int8, diff, builtin: identical" in repr(suite)
    suite.save(tmp_path / "s.json")
    assert rows_in(tmp_path / "s.json").result.rows == suite.result.rows
    assert suite["int8, diff, builtin"].entry.verdict == suite["builtin"].entry.verdict
    assert len(suite.to_dataframe()) == 3
    assert "<td>identical</td>" in suite._repr_html_()
    assert any("broken" in warning for warning in suite.warnings)
    with pytest.raises(et.UsageError, match="Did you mean run_dir"):
        et.suite(models, run_dirs="x")  # type: ignore[call-arg]


def test_an_interrupted_suite_tells_what_is_done(models: Path, tmp_path: Path) -> None:
    words = ("suite", "models", QUICK, *TESTS, "--run_dir=run", "--output=s.json")
    running = start(tmp_path, *words)
    wait_for(lambda: finished(tmp_path / "run"))
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(60) == 130
    ended = states(rows_in(tmp_path / "s.json"))
    assert "skipped" in ended
    assert ended[0] == "failed"
