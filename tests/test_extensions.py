"""Delegates, runtimes and metrics of another package, installed beside evaltools, in whole commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.known_tasks import built_in_tasks
from evaltools.metrics.metric import Metric
from tests import tiny_models

ROOT = Path(__file__).resolve().parent.parent
DELEGATE = """
from evaltools.delegates import LITERT, TFLITE_RUNTIME, Delegate, Library
from evaltools.parameter import NotNative, Parameter

def _library(values):
    return Library({library!r}, {{"precision": str(values["{flag}_precision"])}})

ROUNDING = Delegate(
    name="ROUNDING",
    key="{flag}",
    enabled_by="use_{flag}",
    parameters=(
        Parameter("use_{flag}", "Round.", default=False, not_native=NotNative("made in a test")),
        Parameter(
            "{flag}_precision", "To what.", default="fp16", choices=("fp16", "bf16"), not_native=NotNative("made up")
        ),
    ),
    works_in="this test",
    runtimes={{LITERT: {{}}, TFLITE_RUNTIME: {{}}}},
    library=_library,
)
"""
RUNTIME = """
from msgspec.structs import replace
from evaltools.runtime import litert

class Twin:
    name = "twin"

    def open(self, model, configuration):
        return litert.RUNTIME.open(model, replace(configuration, runtime="litert"))

TWIN = Twin()
"""
METRICS = """
from evaltools.metrics.metric import Metric

def _fails(result, configuration):
    raise ValueError("no such luck")

SPEED = Metric("examples_per_watt", "made in a test", read=lambda result, configuration: 7.0, better="higher")
FAILS = Metric("unlucky", "made in a test", read=_fails)
TAKEN = Metric("top1", "made in a test", read=lambda result, configuration: 1.0)
"""


def install(folder: Path, modules: dict[str, str], entries: dict[str, list[str]]) -> dict[str, str]:
    """A package of modules with entry points; the environment in which it is installed."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    described = folder / "plugged-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    groups = [f"[evaltools.{group}]\n" + "\n".join(lines) for group, lines in entries.items()]
    (described / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def evaltools_with(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evaltools.cli.main", *words]
    folder = environment["PYTHONPATH"].split(os.pathsep)[0]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.classifier())
    return path


def few_runs(model: Path) -> tuple[str, ...]:
    return (f"--model_file={model}", "--num_runs=2", "--noise_floor_runs=0")


def test_a_delegate_of_another_package_is_one_of_ours(tmp_path: Path, model: Path, rounding_delegate: Path) -> None:
    text = DELEGATE.format(library=str(rounding_delegate), flag="rounding")
    environment = install(tmp_path, {"plugged": text}, {"delegates": ["rounding = plugged:ROUNDING"]})
    result = tmp_path / "result.json"
    flags = (f"--model_file={model}", "--num_runs=4", "--noise_floor_runs=2", f"--output_file_path={result}")
    told = evaltools_with(environment, "diff", *flags, "--use_rounding=true", "--rounding_precision=bf16")
    assert told.returncode == 0, told.stderr
    assert "within expected precision of bf16" in told.stderr
    (test,) = [entry for entry in json.loads(result.read_text())["rows"] if entry["role"] == "test"]
    assert test["flags"] == ["--use_rounding=true", "--rounding_precision=bf16"]
    assert "ROUNDING" in evaltools_with(environment, "delegates").stdout
    assert "--rounding_precision" in evaltools_with(environment, "diff", "--help=all").stdout
    there = evaltools_with(environment, "device", "run", "diff", *flags, "--use_rounding=true", "--serials=none")
    assert there.returncode == 2
    assert "--use_rounding comes from another package, which is not on devices" in there.stderr


def test_a_library_that_is_gone_is_not_measured(tmp_path: Path, model: Path) -> None:
    text = DELEGATE.format(library="/nowhere/gone.so", flag="rounding")
    environment = install(tmp_path, {"plugged": text}, {"delegates": ["rounding = plugged:ROUNDING"]})
    told = evaltools_with(environment, "diff", *few_runs(model), "--use_rounding=true")
    assert told.returncode == 3
    assert "the ROUNDING delegate: its library /nowhere/gone.so: no such file" in told.stderr


def test_a_runtime_of_another_package_is_asked_for_by_name(tmp_path: Path, model: Path) -> None:
    environment = install(tmp_path, {"plugged": RUNTIME}, {"runtimes": ["twin = plugged:TWIN"]})
    told = evaltools_with(environment, "diff", *few_runs(model), "--runtime=twin")
    assert told.returncode == 0, told.stderr
    assert "test: " in told.stderr


def test_metrics_of_another_package_are_figures_and_limits(tmp_path: Path, model: Path) -> None:
    entries = ["speed = plugged:SPEED", "fails = plugged:FAILS", "taken = plugged:TAKEN"]
    environment = install(tmp_path, {"plugged": METRICS}, {"metrics": entries})
    result, limits = tmp_path / "result.json", tmp_path / "gates.toml"
    flags = (*few_runs(model), f"--output_file_path={result}", "--use_xnnpack=true")
    told = evaltools_with(environment, "diff", *flags)
    assert told.returncode == 0, told.stderr
    assert "test: the metric unlucky failed: ValueError: no such luck" in told.stderr
    figures = [entry["figures"] for entry in json.loads(result.read_text())["rows"]]
    assert [found["examples_per_watt"]["value"] for found in figures] == [7.0, 7.0]
    assert [found["unlucky"].get("value") for found in figures] == [None, None]
    limits.write_text('[[gates]]\ntask = "inference_diff"\nlimits = ["examples_per_watt >= 8"]\n')
    judged = evaltools_with(environment, "gate", str(result), f"--gates={limits}")
    assert judged.returncode == 1, judged.stderr
    assert "examples_per_watt" in judged.stdout + judged.stderr


BROKEN = {
    "raises = raising:IT": ("1/0", "cannot be loaded: ZeroDivisionError: division by zero"),
    "ends = ending:IT": ("import sys; sys.exit(3)", "cannot be loaded: SystemExit: 3"),
    "number = numbered:IT": ("IT = 5", "is a int and no Delegate"),
    "taken = taking:ROUNDING": (
        DELEGATE.format(library="x", flag="gpu"),
        "takes names of another delegate or flag: gpu",
    ),
}


@pytest.mark.once
def test_extensions_that_cannot_be_used_cost_themselves_and_doctor_says_why(tmp_path: Path, model: Path) -> None:
    modules = {entry.partition(" = ")[2].partition(":")[0]: text for entry, (text, _) in BROKEN.items()}
    entries = {"runtimes": ["twin = plugged:TWIN", "worn = raising:IT"], "delegates": list(BROKEN)}
    environment = install(tmp_path, {"plugged": RUNTIME, **modules}, entries)
    told = evaltools_with(environment, "diff", *few_runs(model))
    assert told.returncode == 0, told.stderr
    listed = evaltools_with(environment, "doctor").stdout.partition("from other packages\n")[2]
    assert "yes  twin" in listed
    assert "runtime of the package plugged" in listed
    assert "no   worn" in listed
    for entry, (_, problem) in BROKEN.items():
        assert f"no   {entry.partition(' ')[0]}" in listed
        assert problem in " ".join(listed.split())


SMALL_TASK = """
import evaltools as et

@et.task
def bright(number: int = 3) -> et.Task:
    'How bright.'
"""
UNUSABLE_TASKS = {
    "gone = nosuchmodule:t": "cannot be loaded: ModuleNotFoundError: No module named 'nosuchmodule'",
    "count = plugged:COUNT": "is a int and no task; put @evaltools.task above a function",
    "coco = plugged:bright": "has the name of a task of evaltools",
}


def test_a_task_that_cannot_be_used_costs_itself_and_says_why(tmp_path: Path, model: Path) -> None:
    environment = install(tmp_path, {"plugged": SMALL_TASK + "COUNT = 5\n"}, {"tasks": list(UNUSABLE_TASKS)})
    result, limits = tmp_path / "result.json", tmp_path / "gates.toml"
    flags = (*few_runs(model), f"--output_file_path={result}", "--use_xnnpack=true")
    told = evaltools_with(environment, "diff", *flags)
    assert told.returncode == 0, told.stderr
    limits.write_text('[[gates]]\ntask = "inference_diff"\nlimits = ["max_error <= 1"]\n')
    assert evaltools_with(environment, "gate", str(result), f"--gates={limits}").returncode == 0
    listed = evaltools_with(environment, "--help")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.count("cannot be used: evaltools.tasks: ") == len(UNUSABLE_TASKS) - 1
    assert "gone" not in evaltools_with(environment, "device", "run", "--help").stdout
    for entry, problem in UNUSABLE_TASKS.items():
        name, _, place = entry.partition(" = ")
        if name != "coco":
            told = evaltools_with(environment, name, str(model))
            assert told.returncode == 2
            assert f"evaltools.tasks: {name} ({place}) of the package plugged {problem}" in told.stderr


def test_a_task_with_a_dash_in_its_name_is_a_command(tmp_path: Path, model: Path) -> None:
    environment = install(tmp_path, {"plugged": SMALL_TASK}, {"tasks": ["my-task = plugged:bright"]})
    told = evaltools_with(environment, "my-task", "--help")
    assert told.returncode == 0, told.stderr
    assert "--number" in told.stdout


def test_a_metric_is_the_same_in_every_task_that_has_one_of_its_name() -> None:
    """So it makes no difference which of the tasks is asked first."""
    by_name: dict[str, list[Metric]] = {}
    for task in built_in_tasks().values():
        for metric in task.metrics:
            by_name.setdefault(metric.name, []).append(metric)
    shared = [own for own in by_name.values() if len(own) > 1]
    assert shared
    for first, *others in shared:
        for metric in others:
            assert replace(metric, read=first.read) == first
            assert metric.is_of_own_task  # such metrics read nothing; a result has their values
