"""Runs as a phone's CPU: real QEMU, real ARM64 runtimes, delegates that are compiled for ARM64."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import evaltools as et
from evaltools.arm64.box import users_box
from evaltools.datasets import sample
from tests.cli.evaluate.sample_runs import imagenet, run, start
from tests.cli.evaluate.test_own_task import ONE_FUNCTION
from tests.command import Completed
from tests.example_delegate import build_delegate

COMPILER = "aarch64-linux-gnu-gcc"
FOLDER = users_box().folder
"""As it was before the tests took this user's cache away."""

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(
        "EVALTOOLS_EXPECT_ARM64" not in os.environ and not users_box().is_complete,
        reason="ARM64 is not installed here: evaltools doctor --install=arm64",
    ),
]
needs_compiler = pytest.mark.skipif(
    "EVALTOOLS_EXPECT_ARM64" not in os.environ and shutil.which(COMPILER) is None,
    reason="needs a compiler for ARM64: gcc-aarch64-linux-gnu",
)


def at(*places: str) -> list[str]:
    return [f"--at={place}" for place in places]


def evaltools(*words: str) -> Completed:
    return run(words, environment={"EVALTOOLS_ARM64_FOLDER": str(FOLDER)})


def rows_of(file: Path) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(file.read_text())["rows"]}


def int8(*words: str) -> list[str]:
    model = sample.model_file("int8")
    return [word.replace(str(sample.model_file("float32")), str(model)) for word in imagenet(*words, pictures=12)]


CORES = ("arm64:max", "arm64:cortex-a53")
BUILTIN, XNNPACK = "--config=builtin: kernels=builtin", "--config=xnnpack: use_xnnpack=true"


def diff(model: str, *words: str) -> list[str]:
    return ["diff", str(sample.model_file(model)), "--num_runs=4", *words]


def coco(*words: str) -> list[str]:
    return [
        "coco", str(sample.detection_model_file("int8")), f"--images={sample.detection_images_dir()}",
        f"--ground_truth_annotations={sample.detection_annotations_file()}",
        f"--model_output_labels={sample.detection_labels_file()}", "--num_images=4", *words,
    ]  # fmt: skip


def figures_at_each_core(words: list[str], figure: str, file: Path) -> dict[str, list[float]]:
    """The figure of each configuration at each of the cores."""
    done = evaltools(*words, *at(*CORES), f"--output={file}")
    assert done.code == 0, done.err
    rows, names = rows_of(file), [word.partition("=")[2].partition(":")[0] for word in words if "--config=" in word]
    found = {name: [rows[f"{name}@{place}"] for place in CORES] for name in names}
    for own in found.values():
        assert all("latency_ms" not in row["figures"] for row in own)
        assert [row["runtime"]["emulator"].partition(", ")[2] for row in own] == ["max", "cortex-a53"]
    return {name: [row["figures"][figure]["value"] for row in own] for name, own in found.items()}


@pytest.mark.parametrize(
    ("words", "figure", "recorded"),
    [
        (int8(BUILTIN, XNNPACK), "top1", {"builtin": 11 / 12, "xnnpack": 11 / 12}),
        (coco(BUILTIN, XNNPACK), "ap", {"builtin": 0.4699257, "xnnpack": 0.4699257}),
        (diff("int8", "--seed=3", BUILTIN, XNNPACK), "avg_error", {"builtin": 0, "xnnpack": 0.375}),
    ],
    ids=["imagenet", "coco", "diff"],
)
def test_quantised_models_give_what_is_recorded_the_same_on_each_core(
    words: list[str], figure: str, recorded: dict[str, float], tmp_path: Path
) -> None:
    """Kernels of integers round at other places on x86 than on ARM64, and on all cores of ARM64 at the same."""
    found = figures_at_each_core(words, figure, tmp_path / "result.json")
    assert found == {name: [pytest.approx(value, abs=1e-6)] * 2 for name, value in recorded.items()}


def test_float_models_differ_by_rounding_and_fp16_is_computed_only_where_the_core_can(tmp_path: Path) -> None:
    """XNNPACK in fp16 has instructions that cortex-a53 lacks: that is a crash, not a figure."""
    file, fp16 = tmp_path / "result.json", "--config=fp16: use_xnnpack=true xnnpack_force_fp16=true"
    done = evaltools(*diff("float32", BUILTIN, XNNPACK, fp16), *at(*CORES), f"--output={file}")
    assert done.code == 3, done.err
    assert "fp16@arm64:cortex-a53: crashed" in done.err
    assert "INFO: Reference run latency: none, not measured here" in done.out
    errors = {
        name: row["figures"]["relative_rms"]["value"]
        for name, row in rows_of(file).items()
        if "@" in name and "relative_rms" in row["figures"]
    }
    assert 1e-4 < errors.pop("fp16@arm64:max") < 1e-2
    assert set(errors) == {f"{name}@{place}" for name in ("builtin", "xnnpack") for place in CORES}
    assert all(error < 5e-6 for error in errors.values()), errors


@needs_compiler
def test_delegates_for_arm64_are_judged_as_those_for_this_computer(tmp_path: Path) -> None:
    """One that ends its process is not measured, and no other has fewer figures for it."""
    library, file = build_delegate("rounding_delegate", tmp_path, compilers=(COMPILER,)), tmp_path / "result.json"
    own = f"external_delegate_path={library} use_xnnpack=false"
    hostile = f"--config=hostile: {own} external_delegate_options=fail:abort"
    done = evaltools(*diff("float32", f"--config=rounding: {own}", hostile), *at(*CORES), f"--output={file}")
    assert done.code == 3, done.err
    rows = rows_of(file)
    for place in CORES:
        assert rows[f"rounding@{place}"]["verdicts"][0]["kind"] == "bf16"
        assert rows[f"rounding@{place}"]["delegates"][0]["nodes"] > 0
        assert rows[f"hostile@{place}"]["status"] == "not measured"
    assert f"use_xnnpack=false --at={CORES[0]} looks for the operator" in done.err


def test_a_task_of_ones_own_has_limits_at_a_core(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ONE_FUNCTION)
    files = [str(sample.model_file("int8")), f"--images={sample.images_dir()}"]
    words = shlex.join(["run", "own.py:surest", *files, "--at=arm64:cortex-a53"])
    (tmp_path / "gates.toml").write_text(
        f"""\
[runs.a53]
command = "{words} --config='xnnpack: use_xnnpack=true'"
[[gates]]
run = "a53"
configuration = "xnnpack"
limits = ["sure >= 1 %", "sure >= 100 %"]
"""
    )
    done = run(["gate", "--gates=gates.toml"], tmp_path, {"EVALTOOLS_ARM64_FOLDER": str(FOLDER)})
    assert done.code == 1, done.err
    assert "sure >= 100 %" in done.out + done.err


def test_python_runs_a_model_at_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTOOLS_ARM64_FOLDER", str(FOLDER))
    found = et.diff(sample.model_file("int8"), tests={"builtin": "kernels=builtin"}, at="arm64:cortex-a53", num_runs=3)
    row = found["builtin"]
    assert row.verdict is not None
    assert row.verdict.kind == "identical"


@needs_compiler
def test_a_search_at_a_core_names_the_operator(tmp_path: Path) -> None:
    library = build_delegate("faulty_delegate", tmp_path, compilers=(COMPILER,))
    file = tmp_path / "result.json"
    words = ["locate", str(sample.model_file("float32")), f"--external_delegate_path={library}", "--num_runs=2"]
    options = "--external_delegate_options=fault:scale"
    done = evaltools(*words, options, "--operators=14-18", *at("arm64:max"), f"--output={file}")
    assert done.code == 0, done.err
    assert "confirmed" in done.out


def test_a_killed_emulator_is_a_crash_and_a_killed_place_goes_on(tmp_path: Path) -> None:
    run_dir, file = tmp_path / "run", tmp_path / "result.json"
    words = [*int8("--use_xnnpack=true", *at("arm64:max"), f"--run_dir={run_dir}", f"--output={file}")]
    with start(words, environment={"EVALTOOLS_ARM64_FOLDER": str(FOLDER)}) as process:
        place = emulated_below(process.pid)
        os.kill(place, signal.SIGKILL)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 3, errors
    assert f"evaltools resume {run_dir} goes on" in errors
    assert "Traceback" not in errors
    done = evaltools("resume", str(run_dir), f"--output={file}")
    assert done.code == 0, done.err
    assert rows_of(file)["test"]["figures"]["examples"]["value"] == 12


def emulated_below(process: int) -> int:
    """The first process below another one in which QEMU runs a program, rather than being asked for its version."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for each in psutil.Process(process).children(recursive=True):
            with suppress(psutil.Error):
                if "qemu" in each.cmdline()[0] and "-L" in each.cmdline():
                    return each.pid
        time.sleep(0.05)
    raise AssertionError("no process of QEMU was seen")
