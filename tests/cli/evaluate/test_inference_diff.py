"""``evaltools inference-diff`` end to end: lines, files, inputs, models, delegates."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
import pytest

from evaltools.proto import message_class
from evaltools.result_file import read_result
from evaltools.tasks.inference_diff.result import InferenceDiff
from tests import tiny_models
from tests.command import Completed, evaltools, evaltools_here
from tests.interpreters import make_interpreter
from tests.interpreters import run as invoke

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "datasets" / "sample"
FAST = ("--noise_floor_runs=0", "--warmup_runs=0", "--num_runs=3")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "classifier.tflite"
    path.write_bytes(tiny_models.classifier())
    return path


def diff(model: Path, *flags: str) -> Completed:
    return evaltools_here("inference-diff", f"--model_file={model}", *flags)


def error_lines(completed: Completed) -> list[str]:
    assert completed.code in (0, 3), completed.err
    return [line for line in completed.out.splitlines() if "OutputDiff" in line]


def saved(folder: Path, part: str = "inputs") -> list[npt.NDArray[Any]]:
    """The first array of each run in a folder of saved outputs."""
    return [np.load(file)["arr_0"] for file in sorted(folder.glob(f"{part}/*.npz"))]


def details(output: Path) -> InferenceDiff:
    part: InferenceDiff = read_result(output).part
    return part


def test_stdout_holds_the_native_lines_with_errors_as_computed_by_hand(classifier: Path, tmp_path: Path) -> None:
    flags = ("--num_runs=4", f"--save_outputs={tmp_path / 'saved'}")
    completed = evaltools("inference-diff", f"--model_file={classifier}", *flags)
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
    assert "test: equivalent: scores: " in completed.err
    assert "test: repeatable, 4 runs gave the same outputs a second time" in completed.err


def test_saved_outputs_are_those_of_the_plain_interpreter(classifier: Path, tmp_path: Path) -> None:
    assert diff(classifier, *FAST, "--runtime=litert", f"--save_outputs={tmp_path / 's'}").code == 0
    interpreter = make_interpreter("ai_edge_litert", classifier.read_bytes())
    for inputs, outputs in zip(saved(tmp_path / "s"), saved(tmp_path / "s", "outputs-0-reference"), strict=True):
        np.testing.assert_array_equal(outputs, invoke(interpreter, [inputs]))


def test_the_json_result_fits_the_schema_and_names_what_ran(classifier: Path, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = ("--num_runs=3", "--noise_floor_runs=2", f"--output_file_path={output}")
    assert diff(classifier, *flags, "--kernels=reference", "--config", "gone: use_nnapi=true").code == 3
    schema = json.loads((ROOT / "evaltools" / "result" / "result.schema.json").read_text())
    jsonschema.validate(json.loads(output.read_text()), schema)
    result = read_result(output)
    statuses = [(entry.name, entry.role, entry.status) for entry in result.configurations]
    assert statuses == [
        ("reference", "reference", "measured"),
        ("test", "test", "measured"),
        ("gone", "test", "not measured"),
    ]
    assert (result.task, result.environment.command[:2]) == ("inference_diff", ["evaltools", "inference-diff"])
    assert [entry.verdict.kind for entry in result.configurations if entry.verdict] == ["equivalent", "not measured"]
    assert (details(output).yardstick_runs, details(output).num_runs) == (3, 3), "more for two configurations"


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


def test_inputs_from_files_and_pictures(tmp_path: Path) -> None:
    model, output = tmp_path / "two.tflite", tmp_path / "result.json"
    model.write_bytes(tiny_models.two_inputs())
    np.save(tmp_path / "left.npy", np.arange(2 * 192, dtype=np.float32).reshape(2, 8, 8, 3))
    np.save(tmp_path / "right.npy", np.full((1, 8, 8, 3), 7, np.float32))
    files = [f"--input_files={name}={tmp_path / name}.npy" for name in ("left", "right")]
    flags = (*files, "--noise_floor_runs=0", f"--output_file_path={output}", f"--save_outputs={tmp_path / 's'}")
    assert diff(model, *flags).code == 0
    assert details(output).num_runs == 2
    assert [entry.source for entry in details(output).inputs] == ["files, 2 examples", "files, 1 example"]
    sums = np.array(saved(tmp_path / "s", "outputs-1-test")).ravel()
    np.testing.assert_array_equal(sums, np.arange(384) + 7)
    pictures = (f"--input_images={SAMPLE / 'images'}", "--normalization=unit", f"--output_file_path={output}")
    assert diff(SAMPLE / "models" / "float32.tflite", *FAST, *pictures).code == 0
    assert details(output).inputs[0].source.endswith("images, values 0..1 (normalization mean=0;std=255)")


def test_a_saved_reference_of_another_run(classifier: Path, tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    assert diff(classifier, *FAST, f"--save_outputs={folder}").code == 0
    loaded = diff(classifier, "--noise_floor_runs=0", "--warmup_runs=0", f"--load_reference={folder}")
    assert error_lines(loaded) == error_lines(diff(classifier, *FAST))
    assert "INFO: Num evaluation runs: 3\nINFO: Reference run latency: avg=0(us), std_dev=0(us)\n" in loaded.out
