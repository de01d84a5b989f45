"""``--native_binary`` on this computer: a program that is started for each run gives the figures of the interpreter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, ProgramEnded
from evaltools.model import read_model
from evaltools.runtime.registry import open_session
from tests import locate_models
from tests.benchmark_model import write_benchmark_model
from tests.command import Completed, evaltools_here

SAMPLE = Path(__file__).resolve().parents[3] / "datasets" / "sample"
FLOAT = SAMPLE / "models" / "float32.tflite"
IMAGENET = (
    "imagenet", f"{FLOAT}", f"--images={SAMPLE / 'images'}", f"--ground_truth={SAMPLE / 'ground_truth.txt'}",
    f"--labels={SAMPLE / 'labels.txt'}", "--num_images=12", "--bootstrap_resamples=0",
)[:-1]  # fmt: skip
DETECTION = SAMPLE / "detection"
COCO = (
    "coco", f"{DETECTION / 'models' / 'float32.tflite'}", f"--images={DETECTION / 'images'}",
    f"--ground_truth={DETECTION / 'instances.json'}", "--num_images=4", "--bootstrap_resamples=0",
)  # fmt: skip
DIFF = ("diff", f"{FLOAT}", "--num_runs=4", "--noise_floor_runs=0")
PLANTED = (("net", 0, 0.5), ("net", 6, 0.5), ("quantized net", 3, 40))
"""Models, the operator that a delegate gets wrong, and by how much."""


def row_of(result: Path, name: str = "test") -> dict[str, Any]:
    rows = json.loads(result.read_text())["rows"]
    return next(row for row in rows if row["name"] == name)


def figures(row: dict[str, Any]) -> dict[str, Any]:
    """All figures but times and sizes."""
    kept = {name: each for name, each in row["figures"].items() if each.get("unit") not in ("ms", "us", "MB")}
    return {name: each["value"] for name, each in kept.items() if not name.startswith("latency")}


def test_every_task_gives_the_figures_of_the_desk(tmp_path: Path) -> None:
    binary = write_benchmark_model(tmp_path / "program")
    few = [word.replace("--num_images=12", "--num_images=4") for word in IMAGENET]
    for task, words in {"imagenet": few, "coco": COCO, "diff": DIFF}.items():
        config = f"native: native_binary={binary} use_xnnpack=false"
        own = (f"--output_file_path={tmp_path / task}.json", "--config", config, "--config", "here: use_xnnpack=false")
        done = evaltools_here(*words, *own)
        assert done.code == 0, done.err
        native, here = (row_of(tmp_path / f"{task}.json", name) for name in ("native", "here"))
        left_out = {"load_ms", "crashes", "peak_memory_kb"}
        same = {name: value for name, value in figures(here).items() if name in figures(native)}
        assert {name: value for name, value in figures(native).items() if name in same} == same, task
        assert set(figures(here)) - set(figures(native)) <= left_out | {"delegated_nodes"}
        assert native["runtime"]["package"] == "benchmark_model"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    return write_benchmark_model(tmp_path / "program")


def block_of(binary: Path, faults: str, count: int = 4, flags: str = "") -> list[Any]:
    session = open_session(read_model(FLOAT), Configuration.from_text("c", f"native_binary={binary} {flags}"))
    (binary.parent / "faults").write_text(faults)
    (binary.parent / "count").write_text("0")
    inputs = [[np.full(spec.shape, 0.1 * number, spec.dtype) for spec in session.inputs] for number in range(count)]
    return list(session.run_block(inputs, 3))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("faults", "kind", "words"),
    [
        ("die 2", ProgramEnded, r"the program died \(SIGSEGV\).*the driver lost its context"),
        ("fail 2", InferenceError, "ended with exit code 1.*Node number 3"),
        ("short 2", InferenceError, r"the program wrote 47 bytes of outputs, and the model's outputs have 48 bytes"),
    ],
)
def test_a_start_that_goes_wrong_costs_its_own_run(
    faults: str, kind: type[Exception], words: str, faulty: Path
) -> None:
    outcomes = block_of(faulty, faults)
    wrong = [outcomes[1], outcomes[3]]
    assert all(type(each) is kind for each in wrong)
    with pytest.raises(kind, match=words):
        raise wrong[0]
    assert all(len(each.invokes_us) == 3 for each in (outcomes[0], outcomes[2]))


def test_a_start_that_hangs_is_ended_and_those_behind_it_are_done(
    faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.runtime.native.session._LEAST_LIMIT_S", 8.0)
    monkeypatch.setattr("evaltools.runtime.native.session._TIMES_AS_LONG", 8)
    outcomes = block_of(faulty, "hang 2", 3)
    assert [isinstance(each, ProgramEnded) for each in outcomes] == [False, True, False]
    assert "did not end in time" in str(outcomes[1])


@pytest.mark.parametrize(
    ("leaves_out", "flags", "words"),
    [
        ("", "use_gpu=true", "GPU was asked for, but the log says .GPU acceleration is unsupported on this platform"),
        ("input_layer_value_files output_filepath", "", "the program reads no files of inputs, as LiteRT's own"),
        ("gpu_precision_loss_allowed", "use_gpu=true gpu_precision_loss_allowed=false", "does not know --gpu_prec"),
    ],
)
def test_what_is_not_proven_is_not_measured(leaves_out: str, flags: str, words: str, tmp_path: Path) -> None:
    binary = write_benchmark_model(tmp_path / "program", leaves_out=leaves_out)
    with pytest.raises(ConfigurationUnavailable, match=words):
        open_session(read_model(FLOAT), Configuration.from_text("c", f"native_binary={binary} {flags}"))


def located(name: str, place: int, amount: float, folder: Path, library: Path, *words: str) -> Completed:
    """A search in a model for the operator that the program's GPU gets wrong."""
    model = folder / "model.tflite"
    model.write_bytes(locate_models.net() if name == "net" else locate_models.quantized_net())
    options = f"tensor:{locate_models.NET_TENSORS[place]};fault:step;amount:{amount}"
    binary = write_benchmark_model(folder / "program", library, options)
    return evaltools_here(
        "locate", f"{model}", f"--native_binary={binary}", "--use_gpu", "--num_inputs=1", "--num_runs=1",
        "--part_secs=0", *words,
    )  # fmt: skip


@pytest.mark.once
@pytest.mark.parametrize(("name", "place", "amount"), PLANTED[1:])
def test_locate_names_the_planted_operator(
    name: str, place: int, amount: float, tmp_path: Path, faulty_delegate: Path
) -> None:
    done = located(name, place, amount, tmp_path, faulty_delegate)
    assert done.code == 0, done.err
    assert done.out.startswith(f"operator at fault: #{place} {locate_models.NET_OPERATORS[place]}"), done.out
    assert "benchmark_model is started 30 to 30 times for 10 parts" in done.err
