"""``evaltools imagenet`` end to end: figures, kinds of models and pictures."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaltools.result_file import read_result
from tests.command import evaltools, evaltools_here
from tests.evaluation_set import EvaluationSet, make_evaluation_set


def test_the_native_lines_are_all_that_stdout_holds(evaluation: EvaluationSet) -> None:
    from statsmodels.stats.proportion import proportion_confint

    completed = evaltools(*evaluation.flags("--use_xnnpack=false"))
    assert completed.code == 0, completed.err
    lines = completed.out.splitlines()
    assert lines[0] == "INFO: Num evaluation runs: 30"
    assert lines[1].startswith("INFO: Preprocessing latency: avg=")
    assert lines[1].endswith("(us), std_dev=0(us)")
    assert lines[2].startswith("INFO: Inference latency: avg=")
    assert lines[3] == "INFO: Top-1 Accuracy: 0.8"
    assert [line.split(" Accuracy")[0] for line in lines[3:]] == [f"INFO: Top-{k}" for k in range(1, 11)]
    assert "reference" in completed.err
    low, high = proportion_confint(24, 30, method="wilson")
    assert f"80.00 ±{50 * (high - low):.2f} %" in completed.err
    # Other examples can differ all the same: 1 - 0.05^(1/30) = 0.095 of them.
    identical = "identical: all 30 answers are bit for bit the reference's; at most 9.5 % of such examples can differ"
    assert f"test: top-1 {identical}" in completed.err
    assert "100.0 %" in completed.err


def test_the_labels_are_those_beside_the_model(evaluation: EvaluationSet) -> None:
    given = [flag for flag in evaluation.flags("--use_xnnpack=false") if not flag.startswith("--model_output_labels")]
    completed = evaltools_here(*given)
    assert completed.code == 0, completed.err
    assert "INFO: Top-1 Accuracy: 0.8" in completed.out
    assert evaluation.labels == evaluation.model.parent / "labels.txt"
    assert f"found with the model: --model_output_labels={evaluation.labels}" in completed.err


def test_a_delegate_that_cannot_run_prints_no_accuracy(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    completed = evaltools_here(*evaluation.flags("--use_nnapi=true", f"--output_file_path={output}"))
    assert completed.code == 3
    assert completed.out == ""
    assert "not measured: the NNAPI delegate cannot be created" in completed.err
    result = read_result(output)
    assert [entry.status for entry in result.configurations] == ["not measured", "not measured"]
    assert not result.complete


def test_fallback_is_measured_when_allowed_and_named(evaluation: EvaluationSet) -> None:
    completed = evaltools_here(*evaluation.flags("--use_nnapi=true", "--allow_fallback=true"))
    assert completed.code == 0
    assert "Top-1 Accuracy: 0.8" in completed.out
    assert "FALLBACK: the NNAPI delegate cannot be created" in completed.err


def test_denylist_then_num_images(copied: EvaluationSet) -> None:
    """Numbers 1..6 are the pictures with wrong labels; without them all answers are right."""
    denylist = copied.folder / "deny.txt"
    denylist.write_text("".join(f"{number}\n" for number in range(1, 7)))
    completed = evaltools_here(
        *copied.flags("--use_xnnpack=false", f"--denylist_file_path={denylist}", "--num_images=10")
    )
    assert "Num evaluation runs: 10\n" in completed.out
    assert "Top-1 Accuracy: 1\n" in completed.out


def test_windows_line_ends_match_unless_native(copied: EvaluationSet) -> None:
    copied.labels.write_bytes(b"\xef\xbb\xbf" + copied.labels.read_bytes().replace(b"\n", b"\r\n"))
    assert "Top-1 Accuracy: 0.8\n" in evaltools_here(*copied.flags("--use_xnnpack=false")).out
    assert "Top-1 Accuracy: 0\n" in evaltools_here(*copied.flags("--use_xnnpack=false", "--compat=native")).out


@pytest.mark.parametrize(
    "types",
    [
        {"output_rank": 4},
        {"input_dtype": "int16", "output_dtype": "int16"},
        {"input_dtype": "uint8", "output_dtype": "float32"},
        {"input_dtype": "int8", "output_dtype": "int8"},
    ],
)
def test_every_type_and_output_rank_is_evaluated(tmp_path: Path, types: dict[str, object]) -> None:
    evaluation = make_evaluation_set(tmp_path, 30, 6, **types)
    completed = evaltools_here(*evaluation.flags("--use_xnnpack=false", "--reference=none"))
    assert completed.code == 0, completed.err
    assert "Top-1 Accuracy: 0.8\n" in completed.out


def test_native_compatibility_reads_the_output_with_the_inputs_type(tmp_path: Path) -> None:
    evaluation = make_evaluation_set(tmp_path / "a", 30, 0, input_dtype="uint8", output_dtype="float32")
    native = evaltools_here(*evaluation.flags("--use_xnnpack=false", "--compat=native"))
    assert native.code == 0
    assert "Top-1 Accuracy: 1\n" not in native.out
    other = make_evaluation_set(tmp_path / "b", 30, 0, input_dtype="float32", output_dtype="uint8")
    refused = evaltools_here(*other.flags("--compat=native"))
    assert refused.code == 2
    assert "reads beyond its end" in refused.err


@pytest.mark.once
def test_a_run_imports_nothing_that_only_pages_baselines_or_other_tasks_need(evaluation: EvaluationSet) -> None:
    """So that a short run is short: each of these takes as long to import as some pictures to evaluate."""
    completed = evaltools(*evaluation.flags("--num_images=2"), environment={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in completed.err.splitlines() if line.startswith("import")}
    assert "evaltools.tasks.imagenet.result" in imported
    unneeded = {"report.page.make", "report.files.plot", "gates.baseline", "result.benchmark", "result.locate"}
    unneeded |= {"metrics.output_difference", "tasks.coco.result"}
    assert not {f"evaltools.{name}" for name in unneeded} & imported


def test_labels_may_come_from_a_pipe(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [flag for flag in evaluation.flags("--use_xnnpack=false") if "ground_truth_labels" not in flag]
    command = shlex.join([sys.executable, "-m", "evaltools.cli.main", *flags, f"--output_file_path={output}"])
    script = f"{command} --ground_truth_labels=<(cat {evaluation.truths})"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    expected = hashlib.sha256(evaluation.truths.read_bytes()).hexdigest()
    assert read_result(output).part.data.ground_truth_sha256 == expected


def test_raw_pictures_of_the_models_size_are_neither_cropped_nor_resized(copied: EvaluationSet) -> None:
    """A picture of 16x16 pixels in one colour looks the same cropped and whole, so both kinds get the same answer."""
    chance = np.random.default_rng(3)
    for path in copied.images.iterdir():
        colour = chance.integers(0, 256, 3, np.uint8)
        picture = np.broadcast_to(colour, (16, 16, 3))
        Image.fromarray(np.ascontiguousarray(picture)).save(path)
        path.with_name(f"{path.stem}_raw.rgb8").write_bytes(picture.tobytes())
    truths = copied.truths.read_text().splitlines()
    copied.truths.write_text("".join(f"{truth}\n{truth}\n" for truth in truths))
    output = copied.folder / "result.json"
    flags = ["--use_xnnpack=false", "--reference=none", "--label_check=false", "--record_examples"]
    completed = evaltools_here(*copied.flags(*flags, f"--output_file_path={output}"))
    assert completed.code == 0, completed.err
    examples = read_result(output).part.examples
    assert [entry.example for entry in examples[:2]] == ["000.png", "000_raw.rgb8"]
    for decoded, raw in zip(examples[::2], examples[1::2], strict=True):
        assert decoded.answers["test"].scores == raw.answers["test"].scores
