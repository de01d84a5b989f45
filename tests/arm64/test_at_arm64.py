"""Runs as a phone's CPU: real QEMU, real ARM64 runtimes, delegates that are compiled for ARM64."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from evaltools.arm64.box import users_box
from evaltools.datasets import sample
from tests.cli.evaluate.sample_runs import imagenet, run, start
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
    return [word.replace(str(sample.model_file("float32")), str(model)) for word in imagenet(*words, pictures=6)]


def test_three_cores_answer_the_same_question_in_one_table(tmp_path: Path) -> None:
    """Integer kernels of this model give the same on both; fp16 is computed only where the core can."""
    file = tmp_path / "result.json"
    done = evaltools(*int8(*at("here", "arm64:cortex-a53", "arm64:max"), "--use_xnnpack=true", f"--output={file}"))
    assert done.code == 0, done.err
    rows = rows_of(file)
    tests = {name: row for name, row in rows.items() if row["role"] == "test"}
    assert set(tests) >= {"test@here", "test@arm64:cortex-a53", "test@arm64:max"}
    assert len({row["figures"]["top1"]["value"] for row in tests.values()}) == 1
    assert tests["test@arm64:max"]["runtime"]["emulator"].endswith(", max")
    assert tests["test@arm64:cortex-a53"]["runtime"]["emulator"].endswith(", cortex-a53")
    assert "latency_ms" in tests["test@here"]["figures"]
    assert all("latency_ms" not in row["figures"] for name, row in tests.items() if "arm64" in name)
    assert "emulated" in done.err


def test_a_detector_of_integers_gives_the_same_on_every_core_and_nearly_that_of_this_computer(tmp_path: Path) -> None:
    """Builtin kernels for ARM64 and x86 round at other places; each is exact in itself."""
    file = tmp_path / "result.json"
    words = [
        "coco", str(sample.detection_model_file("int8")), f"--images={sample.detection_images_dir()}",
        f"--ground_truth_annotations={sample.detection_annotations_file()}",
        f"--model_output_labels={sample.detection_labels_file()}", "--num_images=4", "--kernels=builtin",
        *at("arm64:max", "arm64:cortex-a53", "here"), f"--output={file}",
    ]  # fmt: skip
    done = evaltools(*words)
    assert done.code == 0, done.err
    rows = rows_of(file)
    newest, oldest, here = (
        rows[f"test@{place}"]["figures"]["ap"]["value"] for place in ("arm64:max", "arm64:cortex-a53", "here")
    )
    assert newest == oldest
    assert newest == pytest.approx(here, abs=0.1)


@needs_compiler
@pytest.mark.parametrize(
    ("options", "code", "kinds"),
    [
        ("", 0, ("bf16",)),
        ("fail:abort", 3, ("not measured",)),
    ],
)
def test_a_delegate_for_arm64_is_judged_as_one_for_this_computer(
    tmp_path: Path, options: str, code: int, kinds: tuple[str, ...]
) -> None:
    library = build_delegate("rounding_delegate", tmp_path, compilers=(COMPILER,))
    file = tmp_path / "result.json"
    words = ["diff", str(sample.model_file("float32")), "--num_runs=3", f"--external_delegate_path={library}"]
    more = [f"--external_delegate_options={options}"] if options else []
    done = evaltools(*words, *more, *at("arm64:cortex-a76"), f"--output={file}")
    assert done.code == code, done.err
    row = rows_of(file)["test"]
    assert (row["verdicts"][0]["kind"] if row["verdicts"] else row["status"]) in kinds
    if not options:
        assert row["delegates"][0]["nodes"] > 0
        assert f"--external_delegate_path={library} --at=arm64:cortex-a76 looks for the operator" in done.err


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
    assert rows_of(file)["test"]["figures"]["examples"]["value"] == 6


def emulated_below(process: int) -> int:
    """The first process of QEMU below another one."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for each in psutil.Process(process).children(recursive=True):
            with suppress(psutil.Error):
                if "qemu" in each.cmdline()[0]:
                    return each.pid
        time.sleep(0.05)
    raise AssertionError("no process of QEMU was seen")
