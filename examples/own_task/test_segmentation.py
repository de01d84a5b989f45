from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from segmentation import UNLABELLED, mean_iou, segmentation


def test_mean_iou_is_that_of_the_classes_in_either() -> None:
    truth = np.array([[0, 0, 1], [1, 1, UNLABELLED]])
    found = np.array([[0, 1, 1], [1, 2, 2]])
    assert mean_iou(found, truth) == pytest.approx((1 / 2 + 2 / 4 + 0) / 3)
    assert mean_iou(truth, truth) == 1.0


def test_masks_belong_to_the_pictures_of_their_names(tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "images" / "cat.png")
    Image.fromarray(np.array([[1, 1], [0, 0]], np.uint8)).save(tmp_path / "masks" / "cat.png")
    task = segmentation(images=tmp_path / "images", masks=tmp_path / "masks")
    [example] = task.examples
    assert example.id == "cat.png"
    scores = np.zeros((1, 2, 2, 3), np.float32)
    scores[0, 0, :, 1] = 1.0
    assert task.score([scores], example.target) == {"iou": 1.0}
