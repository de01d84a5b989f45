"""The readers of native evaluations against what evaltools itself prints and writes on the embedded sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.native.logs.evaluation import NativeEvaluationLog, parse_evaluation_log
from evaltools.native.logs.evaluation_proto import read_evaluation_proto
from evaltools.native.logs.run import (
    ClassifierFigures,
    DetectorFigures,
    DiffFigures,
    NativeFigures,
)
from tests.command import evaltools
from tests.native.logs.native_eval_rendering import rendered

IMAGENET = (
    "imagenet",
    f"--model_file={sample.model_file('int8')}",
    f"--ground_truth_images_path={sample.images_dir()}",
    f"--ground_truth_labels={sample.ground_truth_file()}",
    f"--model_output_labels={sample.labels_file()}",
    "--reference=none",
)
COCO = (
    "coco",
    f"--model_file={sample.detection_model_file('float32')}",
    f"--ground_truth_images_path={sample.detection_images_dir()}",
    f"--model_output_labels={sample.detection_labels_file()}",
    "--reference=none",
    "--debug_mode=true",
)
TRUTH = f"--ground_truth_annotations={sample.detection_annotations_file()}"
DIFF = (
    "inference-diff",
    f"--model_file={sample.detection_model_file('int8')}",
    "--num_runs=6",
    "--kernels=builtin",
)


def run(folder: Path, *words: str) -> tuple[NativeEvaluationLog, NativeFigures]:
    """What is read of a command's stdout and of its protobuf, which give the same lines again."""
    output = folder / "out.pb"
    completed = evaltools(*words, "--compat=native", "--workers=1", f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    log, figures = parse_evaluation_log(completed.out), read_evaluation_proto(output.read_bytes())
    assert "".join(f"{line}\n" for line in rendered(figures, log.pictures)) == completed.out
    return log, figures


def test_imagenet(tmp_path: Path) -> None:
    _, figures = run(tmp_path, *IMAGENET)
    assert isinstance(figures, ClassifierFigures)
    assert figures.accuracies[0] == pytest.approx(0.905)
    assert figures.inference.count == 200


def test_coco(tmp_path: Path) -> None:
    log, figures = run(tmp_path, *COCO, TRUTH)
    assert isinstance(figures, DetectorFigures)
    assert (figures.runs, len(log.pictures)) == (60, 60)
    assert [picture.name for picture in log.pictures] == sorted(
        path.name for path in sample.detection_images_dir().iterdir()
    )
    assert {len(picture.detections) for picture in log.pictures} == {10}
    assert len(figures.precisions) == 10


def test_coco_without_a_ground_truth(tmp_path: Path) -> None:
    _, figures = run(tmp_path, *COCO, "--num_images=2")
    assert isinstance(figures, DetectorFigures)
    assert (figures.overall, figures.precisions) == (None, ())


def test_inference_diff(tmp_path: Path) -> None:
    _, figures = run(tmp_path, *DIFF)
    assert isinstance(figures, DiffFigures)
    assert (figures.runs, len(figures.differences)) == (6, 4)
    assert figures.test.count == figures.reference.count == 18
