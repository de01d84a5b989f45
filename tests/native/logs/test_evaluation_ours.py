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
    require_agreement,
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
    """What is read of a command's stdout, which is printed again, and of its protobuf, which agrees with it."""
    output = folder / "out.pb"
    completed = evaltools(*words, "--compat=native", "--workers=1", f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    log, figures = parse_evaluation_log(completed.out), read_evaluation_proto(output.read_bytes())
    assert log.is_complete
    assert "".join(f"{line}\n" for line in rendered(log)) == completed.out
    require_agreement(figures, log)
    return log, figures


def test_imagenet(tmp_path: Path) -> None:
    log, figures = run(tmp_path, *IMAGENET)
    assert isinstance(figures, ClassifierFigures)
    assert (log.task, log.runs, log.topk[1], log.topk[5]) == ("imagenet", 200, 0.905, 0.99)
    assert figures.accuracies[0] == pytest.approx(0.905)
    assert figures.inference.count == 200


def test_coco(tmp_path: Path) -> None:
    log, figures = run(tmp_path, *COCO, TRUTH)
    assert isinstance(figures, DetectorFigures)
    assert (log.task, log.runs, len(log.pictures)) == ("coco", 60, 60)
    assert [picture.name for picture in log.pictures] == sorted(
        path.name for path in sample.detection_images_dir().iterdir()
    )
    assert {len(picture.detections) for picture in log.pictures} == {10}
    assert len(figures.precisions) == 10


def test_coco_without_a_ground_truth(tmp_path: Path) -> None:
    log, figures = run(tmp_path, *COCO, "--num_images=2")
    assert isinstance(figures, DetectorFigures)
    assert (log.without_truth, log.overall_map, log.precisions) == (True, 0.0, {})
    assert (figures.overall, figures.precisions) == (None, ())


def test_inference_diff(tmp_path: Path) -> None:
    log, figures = run(tmp_path, *DIFF)
    assert isinstance(figures, DiffFigures)
    assert (log.task, log.runs, len(log.differences)) == ("inference_diff", 6, 4)
    assert figures.test.count == figures.reference.count == 18
