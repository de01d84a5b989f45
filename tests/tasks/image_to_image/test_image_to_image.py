"""Pictures of pictures: SSIM window by window, PSNR, and figures of a model done again in NumPy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from evaltools.errors import TaskError
from evaltools.preprocess import decode_image
from evaltools.tasks.framework.tensors import Quantisation
from evaltools.tasks.image_to_image.quality import agree, picture, psnr, score, ssim
from tests.tasks.declared import SAMPLE, outputs_of, run_sample

FOLDER = SAMPLE / "noise"
Floats = npt.NDArray[np.float64]


def windows(found: Floats, expected: Floats) -> float:
    """SSIM as its authors write it, for each window by itself."""
    weights = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    weights = np.outer(weights, weights) / weights.sum() ** 2
    values = []
    for row in range(found.shape[0] - 10):
        for column in range(found.shape[1] - 10):
            for channel in range(found.shape[2]):
                one, other = (side[row : row + 11, column : column + 11, channel] for side in (found, expected))
                means = (weights * one).sum(), (weights * other).sum()
                variances = (weights * (one - means[0]) ** 2).sum(), (weights * (other - means[1]) ** 2).sum()
                together = (weights * (one - means[0]) * (other - means[1])).sum()
                above = (2 * means[0] * means[1] + 2.55**2) * (2 * together + 7.65**2)
                values.append(above / ((means[0] ** 2 + means[1] ** 2 + 2.55**2) * (sum(variances) + 7.65**2)))
    return float(np.mean(values))


def test_structural_similarity_is_that_of_each_window() -> None:
    chance = np.random.default_rng(4)
    one = chance.uniform(0, 255, (16, 14, 3))
    other = np.clip(one + chance.normal(0, 40, one.shape), 0, 255)
    assert ssim(one, other) == pytest.approx(windows(one, other), rel=1e-9)
    assert ssim(one, one) == pytest.approx(1.0)


def test_the_sample_has_the_figures_of_a_mean_over_nine_pixels() -> None:
    result = run_sample("image_to_image", num_images=3)
    expected = []
    for path in sorted((FOLDER / "images").iterdir())[:3]:
        padded = np.pad(decode_image(path).astype(np.float64), ((1, 1), (1, 1), (0, 0)), constant_values=np.nan)
        smooth = np.nanmean(
            [padded[row : row + 48, column : column + 48] for row in range(3) for column in range(3)], 0
        )
        target = np.asarray(Image.open(FOLDER / "targets" / f"{path.stem}.png"), np.float64)
        expected.append((10 * math.log10(255**2 / np.mean((smooth - target) ** 2)), windows(smooth, target)))
    for entry in result:
        assert (entry.psnr, entry.ssim) == pytest.approx(np.mean(expected, axis=0), rel=1e-5)
    assert result["reference"].figures["error_to_reference"] == 0


def test_equal_pictures_have_100_db() -> None:
    assert psnr(np.zeros((3, 3, 3)), np.zeros((3, 3, 3))) == 100


def test_values_are_those_of_black_and_white() -> None:
    ends = np.array([[[[-1.0], [1.0]]]], np.float32)
    assert picture(outputs_of(ends), "native").ravel().tolist() == [0, 255]
    assert picture(outputs_of(ends), "unit").ravel().tolist() == [0, 255]
    quantised = outputs_of(np.array([[[[0], [255]]]], np.uint8), Quantisation(1 / 255, 0))
    assert picture(quantised, "unit").ravel() == pytest.approx([0, 255], rel=1e-6)


def test_targets_of_another_size_are_resized_and_made_grey(tmp_path: Path) -> None:
    Image.new("RGB", (24, 24), (0, 255, 0)).save(tmp_path / "green.png")
    grey = outputs_of(np.full((1, 12, 12, 1), 0.587, np.float32))
    assert score("unit", grey, tmp_path / "green.png")["psnr"] > 90


def test_the_error_to_the_reference_is_a_share_of_black_to_white() -> None:
    black, white = (outputs_of(np.full((1, 12, 12, 3), value, np.float32)) for value in (0, 1))
    assert agree("unit", white, black, None)["error_to_reference"] == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((1, 5), np.float32), r"is a picture, but float32\[1, 5\]"),
        (np.full((1, 12, 12, 1), np.nan, np.float32), "144 of 144 values of the picture are not finite"),
        (np.zeros((1, 8, 8, 3), np.float32), "SSIM needs more than 10 each"),
    ],
)
def test_outputs_that_are_no_pictures_are_told(values: npt.NDArray[Any], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        agree("unit", outputs_of(values), outputs_of(values), None)
