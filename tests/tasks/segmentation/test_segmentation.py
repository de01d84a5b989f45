"""Segmentation: figures compared with a confusion matrix, kinds of masks and of outputs."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import evaltools as et
from evaltools.errors import DataError, TaskError, UsageError
from evaltools.preprocess import decode_image
from evaltools.tasks.framework.tensors import Quantisation, TaskTensor
from evaltools.tasks.segmentation import segmentation
from evaltools.tasks.segmentation.pixels import agree, classes_of, draw, labelled_overlaps, mean_iou, read_mask
from tests.tasks.declared import SAMPLE, outputs_of, run_sample

FOLDER = SAMPLE / "segmentation"
COLOURS = np.array([[60.37] * 3, [220.11, 60.37, 60.37], [60.37, 220.11, 60.37], [60.37, 60.37, 220.11]])
CLASSES = 4


@pytest.fixture(scope="module")
def result() -> et.Result:
    return run_sample("segmentation")


def doubled(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Twice as high and wide, bilinear: three quarters of the nearest pixel, a quarter of the next one."""
    for axis in (0, 1):
        padded = np.concatenate([scores.take([0], axis), scores, scores.take([-1], axis)], axis)
        before, own, after = (padded.take(range(start, start + scores.shape[axis]), axis) for start in range(3))
        both = np.stack([0.25 * before + 0.75 * own, 0.75 * own + 0.25 * after], axis + 1)
        scores = both.reshape(*scores.shape[:axis], 2 * scores.shape[axis], *scores.shape[axis + 1 :])
    return scores


def confusion() -> npt.NDArray[np.int64]:
    """Counts by true and found class, with the model done again in NumPy: mean colours, the nearest of the classes."""
    matrix = np.zeros((CLASSES, CLASSES), np.int64)
    for path in sorted((FOLDER / "images").iterdir()):
        pixels = decode_image(path).astype(np.float64)
        means = pixels.reshape(24, 2, 24, 2, 3).mean((1, 3))
        distances = ((means[..., np.newaxis, :] - COLOURS) ** 2).sum(-1)
        found = doubled(-distances).argmax(-1)
        truth = np.asarray(Image.open(FOLDER / "masks" / f"{path.stem}.png"))
        np.add.at(matrix, (truth[truth != 255], found[truth != 255]), 1)
    return matrix


def test_figures_are_those_of_a_confusion_matrix(result: et.Result) -> None:
    matrix = confusion()
    right, either = np.diag(matrix), matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    for entry in result:
        assert entry.miou == pytest.approx((right / either).mean(), rel=1e-9)
        assert entry.pixel_accuracy == pytest.approx(right.sum() / matrix.sum(), rel=1e-9)
    assert 0.5 < result["xnnpack"].miou < 1


def test_without_masks_there_is_the_agreement_with_the_reference_alone() -> None:
    result = run_sample("segmentation", masks=None, num_images=2)
    assert result["xnnpack"].same_pixels > 0.99
    assert "miou" not in result["xnnpack"].figures


def test_limits_are_known_before_anything_runs(result: et.Result) -> None:
    report = et.gate(result, ["miou >= 50 %", "miou drop <= 1 point", "same_pixels >= 99 %"])
    assert report.verdict == "pass"
    with pytest.raises(UsageError, match="no such figure"):
        et.gate(result, ["moiu >= 0.5"])


def test_values_of_masks_are_read_as_the_data_sets_have_them(tmp_path: Path) -> None:
    path = tmp_path / "mask.png"
    image = Image.fromarray(np.array([[0, 1, 255]], np.uint8), "P")
    image.putpalette([*range(256)] * 3)
    image.save(path)
    assert read_mask(path, "voc").tolist() == [[0, 1, -1]]
    assert read_mask(path, "ade").tolist() == [[-1, 0, 254]]


def test_a_mask_of_colours_is_refused(tmp_path: Path) -> None:
    Image.new("RGB", (2, 2)).save(tmp_path / "mask.png")
    with pytest.raises(TaskError, match="the mask is RGB; a pixel's value is its class"):
        read_mask(tmp_path / "mask.png", "voc")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(TaskError, match="the mask is not a readable PNG picture"):
        read_mask(tmp_path / "broken.png", "voc")


def test_outputs_are_scores_or_a_mask_or_classes() -> None:
    scores = np.array([[[[0.1, 0.9], [0.8, 0.2]]]], np.float32)
    assert classes_of(outputs_of(scores)).tolist() == [[1, 0]]
    quantised = (scores * 100).astype(np.uint8)
    assert classes_of(outputs_of(quantised, Quantisation(0.01, 0))).tolist() == [[1, 0]]
    assert classes_of(outputs_of(scores[..., :1])).tolist() == [[0, 1]]
    assert classes_of(outputs_of(np.array([[[7, 300]]], np.int64)), (2, 4)).tolist() == [[7, 7, 300, 300]] * 2


def test_classes_may_be_planes_where_the_input_is() -> None:
    scores = np.random.default_rng(0).random((1, 4, 8, 8), np.float32)
    planes = (TaskTensor("picture", (1, 3, 16, 32), np.dtype("float32")),)
    expected = classes_of(outputs_of(scores))
    assert np.array_equal(classes_of(outputs_of(scores, inputs=planes)), expected)
    assert np.array_equal(classes_of(outputs_of(scores.transpose(0, 3, 1, 2), inputs=planes)), expected)


def test_masks_of_another_size_are_compared_in_that_of_the_reference() -> None:
    small, large = (outputs_of(np.array([[classes]], np.int64)) for classes in ([7, 300], [7, 7, 300, 7]))
    assert agree(small, large, None)["same_pixels"] == 0.75
    assert agree(large, small, None)["same_pixels"] == 0.5, "the nearest pixels are the second and the fourth"


def test_outputs_that_are_none_of_these_are_told() -> None:
    with pytest.raises(TaskError, match=r"no output of the model has the classes of pixels, but float32\[1, 5\]"):
        classes_of(outputs_of(np.zeros((1, 5), np.float32)))
    with pytest.raises(TaskError, match="1 of 4 scores of pixels are no finite numbers"):
        classes_of(outputs_of(np.array([[[[0.1, math.nan], [0.8, 0.2]]]], np.float32)))


def test_a_class_that_is_found_nowhere_and_nowhere_true_does_not_count() -> None:
    pairs = [([5, 5], [5, -1]), ([0, 5], [0, 0])]
    rows = [labelled_overlaps(np.array([found]), np.array([truth])) for found, truth in pairs]
    assert mean_iou(rows) == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert math.isnan(mean_iou([labelled_overlaps(np.array([1]), np.array([-1]))]))


def test_a_picture_without_a_mask_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no file of that stem for 01.jpg"):
        segmentation(images=FOLDER / "images", masks=tmp_path)


def colours(png: bytes) -> list[list[tuple[int, ...]]]:
    with Image.open(io.BytesIO(png)) as opened:
        return [list(map(tuple, row)) for row in np.asarray(opened.convert("RGB")).tolist()]


def test_masks_are_drawn_in_the_colours_of_pascal_voc_with_the_pixels_that_changed(tmp_path: Path) -> None:
    Image.new("RGB", (4, 2)).save(tmp_path / "a.png")
    Image.fromarray(np.array([[0, 15], [255, 15]], np.uint8)).save(tmp_path / "mask.png")
    example = et.Example("a", tmp_path / "a.png", tmp_path / "mask.png")
    one, other = (outputs_of(np.array([classes], np.int32)) for classes in ([[0, 14], [0, 0]], [[0, 14], [0, 3]]))
    assert draw("voc", 1, one, one, example) is None
    drawing = draw("voc", 1, other, one, example)
    assert drawing is not None
    assert (drawing.changed, drawing.picture) == (0.25, str(tmp_path / "a.png"))
    black, white, red = (0, 0, 0), (255, 255, 255), (255, 70, 70)
    first, fourth, fifteenth = (128, 0, 0), (0, 0, 128), (192, 128, 128)
    assert {panel.name: [row[::2] for row in colours(panel.png)] for panel in drawing.panels} == {
        "truth": [[black, fifteenth], [white, fifteenth]],
        "reference": [[first, fifteenth], [first, first]],
        "test": [[first, fifteenth], [first, fourth]],
        "changed": [[black, black], [black, red]],
    }


def test_a_single_changed_pixel_of_a_large_mask_is_seen(tmp_path: Path) -> None:
    Image.new("RGB", (500, 500)).save(tmp_path / "a.png")
    one, other = (np.zeros((1, 500, 500), np.int32) for _ in range(2))
    other[0, 321, 123] = 1
    drawing = draw("voc", 0, outputs_of(other), outputs_of(one), et.Example("a", tmp_path / "a.png"))
    assert drawing is not None
    reds = [
        (place, row.index((255, 70, 70)))
        for place, row in enumerate(colours(drawing.panels[-1].png))
        if (255, 70, 70) in row
    ]
    assert reds == [(321 * 128 // 500, 123 * 128 // 500)]
