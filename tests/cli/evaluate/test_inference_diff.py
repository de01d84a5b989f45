"""``evaltools inference-diff`` end to end: lines, files, inputs, models, delegates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.proto import message_class
from tests import tiny_models
from tests.command import Completed, evaltools, evaltools_here, one_test
from tests.interpreters import make_interpreter
from tests.interpreters import run as invoke

FAST = ("--noise_floor_runs=0", "--warmup_runs=0", "--num_runs=3")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "classifier.tflite"
    path.write_bytes(tiny_models.classifier())
    return path


def diff(model: Path, *flags: str) -> Completed:
    return evaltools_here("inference-diff", f"--model_file={model}", *one_test(*flags))


def saved(folder: Path, part: str = "inputs") -> list[npt.NDArray[Any]]:
    """The first array of each run in a folder of saved outputs."""
    return [np.load(file)["arr_0"] for file in sorted(folder.glob(f"{part}/*.npz"))]


def test_stdout_holds_the_native_lines_with_errors_as_computed_by_hand(classifier: Path, tmp_path: Path) -> None:
    flags = ("--num_runs=4", "--verbose", f"--save_outputs={tmp_path / 'saved'}")
    completed = evaltools("inference-diff", f"--model_file={classifier}", *one_test(*flags))
    assert completed.code == 0, completed.err
    found, base = (saved(tmp_path / "saved", part) for part in ("outputs-1-test", "outputs-0-reference"))
    errors = [np.abs(one - other).ravel() for one, other in zip(found, base, strict=True)]
    means = [np.cumsum(error, dtype=np.float32)[-1] / np.float32(12) for error in errors]
    number = r"[0-9.e+-]+"
    expected = [
        "INFO: Num evaluation runs: 4",
        rf"INFO: Reference run latency: avg={number}\(us\), std_dev=[0-9]+\(us\)",
        rf"INFO: Test run latency: avg={number}\(us\), std_dev=[0-9]+\(us\)",
        re.escape(f"INFO: OutputDiff[0]: avg_error={np.mean(means, dtype=np.float64):g}, std_dev=") + number,
    ]
    lines = completed.out.splitlines()
    assert len(lines) == 4
    for pattern, line in zip(expected, lines, strict=True):
        assert re.fullmatch(pattern, line), line
    assert "equivalent: scores: " in completed.err
    assert "test: repeatable, 4 runs gave the same outputs a second time" in completed.err


def test_saved_outputs_are_those_of_the_plain_interpreter(classifier: Path, tmp_path: Path) -> None:
    assert diff(classifier, *FAST, "--runtime=litert", f"--save_outputs={tmp_path / 's'}").code == 0
    interpreter = make_interpreter("ai_edge_litert", classifier.read_bytes())
    for inputs, outputs in zip(saved(tmp_path / "s"), saved(tmp_path / "s", "outputs-0-reference"), strict=True):
        np.testing.assert_array_equal(outputs, invoke(interpreter, [inputs]))


def test_a_result_is_not_written_among_saved_outputs(classifier: Path, tmp_path: Path) -> None:
    folder, output = tmp_path / "s", tmp_path / "s" / "result.json"
    completed = evaltools_here("diff", str(classifier), *FAST, f"--save_outputs={folder}", f"--output={output}")
    assert f"--output_file_path={output} is in the folder of --save_outputs; put it elsewhere" in completed.err
    assert (completed.code, output.exists()) == (2, False)


def test_native_protobufs_have_the_figures_of_each_configuration(classifier: Path, tmp_path: Path) -> None:
    output = tmp_path / "metrics.pb"
    configs = ("--config=slow: kernels=reference", "--config=same: kernels=builtin")
    completed = diff(classifier, *FAST, *configs, "--compat=native", f"--output_file_path={output}")
    lines = completed.out.splitlines()
    assert [line for line in lines if "Configuration" in line] == [
        "INFO: Configuration: slow",
        "INFO: Configuration: same",
    ]
    for path, position in ((output, 4), (tmp_path / "metrics.same.pb", 9)):
        message = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
        metrics = message.process_metrics.inference_profiler_metrics
        (error,) = metrics.output_errors
        assert message.num_runs == 3
        assert lines[position] == f"INFO: OutputDiff[0]: avg_error={error.avg_value:g}, std_dev={error.std_deviation:g}"
        assert error.min_value <= error.avg_value <= error.max_value
        test = metrics.test_latency
        assert lines[position - 1] == (
            f"INFO: Test run latency: avg={test.avg_us:g}(us), std_dev={test.std_deviation_us}(us)"
        )
        assert test.avg_us * 9 == pytest.approx(test.sum_us), "three runs of three invocations"
        assert metrics.reference_latency.max_us >= metrics.reference_latency.min_us > 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for pictures, one for whole numbers, and one with an input of NaN."""
    made = tmp_path_factory.mktemp("models")
    (made / "model.tflite").write_bytes(tiny_models.classifier())
    (made / "whole.tflite").write_bytes(tiny_models.add_chain(dtype="int8"))
    (made / "add.tflite").write_bytes(tiny_models.add_chain())
    np.save(made / "nan.npy", np.full((1, 8, 8, 3), np.nan, np.float32))
    (made / "text.npy").write_text("no array")
    return made


def test_a_broken_limit_is_exit_code_1_and_named(folder: Path) -> None:
    kept = diff(folder / "model.tflite", *FAST, "--max_avg_error=0.1", "--min_snr_db=scores=60")
    assert (kept.code, "LIMIT" in kept.err) == (0, False)
    broken = diff(folder / "model.tflite", *FAST, "--max_avg_error=0.1", "--min_snr_db=0=900")
    assert broken.code == 1
    assert "test: LIMIT BROKEN --min_snr_db=0=900: scores has 1" in broken.err
    assert "INFO: OutputDiff[0]" in broken.out


def test_a_configuration_that_is_not_measured_outweighs_a_broken_limit(folder: Path) -> None:
    completed = diff(
        folder / "model.tflite", *FAST, "--min_snr_db=900", "--kernels=reference", "--config=nnapi: use_nnapi=true"
    )
    assert completed.code == 3
    assert "nnapi: not measured: the NNAPI delegate cannot be created" in completed.err
    assert "Configuration: nnapi" not in completed.out


def test_numbers_that_are_none_are_exit_code_4(folder: Path) -> None:
    completed = diff(folder / "add.tflite", *FAST, "--verbose", f"--input_files={folder / 'nan.npy'}")
    assert completed.code == 4
    assert completed.out.splitlines()[-1] == "INFO: OutputDiff[0]: avg_error=nan, std_dev=nan"
    assert "the test has 576 NaN and the reference has 576 NaN of 576" in completed.err


def test_a_result_overwrites_nothing_that_is_read(folder: Path, tmp_path: Path) -> None:
    array, saved = tmp_path / "in=put.npy", tmp_path / "saved"
    np.save(array, np.ones((1, 8, 8, 3), np.float32))
    assert diff(folder / "add.tflite", *FAST, f"--save_outputs={saved}").code == 0
    load = ["--noise_floor_runs=0", "--warmup_runs=0", f"--load_reference={saved}"]
    for flags, target in (
        ([*FAST, f"--input_files=input={array}"], array),
        ([*FAST, f"--input_files={tmp_path}"], array),
        (load, saved / "manifest.json"),
        (load, saved / "inputs" / "00000.npz"),
        (FAST, folder / "add.tflite"),
    ):
        before = target.read_bytes()
        given = [f"--model_file={folder / 'add.tflite'}", *flags, f"--output_file_path={target}"]
        completed = evaltools_here("diff", *given)
        assert (completed.code, target.read_bytes() == before) == (2, True), completed.err
        assert "would overwrite an input of this run" in completed.err


def test_of_several_external_delegates_only_the_one_that_cannot_be_created_is_left_out(
    folder: Path, rounding_delegate: Path, tmp_path: Path
) -> None:
    flags = [
        f"--{flag}"
        for options in ("max_nodes:1", "fail:create", "precision:bf16")
        for flag in (f"external_delegate_path={rounding_delegate}", f"external_delegate_options={options}")
    ]
    refused = diff(folder / "model.tflite", *FAST, *flags)
    assert (refused.code, refused.out) == (3, "")
    assert "refused to be created" in refused.err
    result = tmp_path / "r.json"
    allowed = diff(folder / "model.tflite", *FAST, *flags, "--allow_fallback=true", f"--output_file_path={result}")
    assert allowed.code == 0, allowed.err
    (test,) = [entry for entry in json.loads(result.read_text())["rows"] if entry["role"] == "test"]
    nodes = {entry["name"]: entry["nodes"] for entry in test["delegates"]}
    assert (nodes["EXTERNAL"], nodes["EXTERNAL#2"]) == (1, None)
    assert nodes["EXTERNAL#3"] > 0
    assert "EXTERNAL 1 of" in allowed.err
    assert "EXTERNAL#2 not created" in allowed.err
