"""Crop and resize against a scalar re-computation of the definition, one float32 operation at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import ceil, floor

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.preprocess import central_crop_box, legacy_bilinear, resize
from evaltools.preprocess.resize import KernelResize, resizing_by_kernel


def scalar_bilinear(image: npt.NDArray[np.uint8], height: int, width: int) -> npt.NDArray[np.float32]:
    """The definition, written as the loops of the reference kernel."""
    one = np.float32(1)
    rows_in, columns_in, channels = image.shape
    result = np.empty((height, width, channels), np.float32)
    for i in range(height):
        y = np.float32(i) * (np.float32(rows_in) / np.float32(height))
        y0, y1 = max(floor(y), 0), min(ceil(y), rows_in - 1)
        dy = y - np.float32(y0)
        for j in range(width):
            x = np.float32(j) * (np.float32(columns_in) / np.float32(width))
            x0, x1 = max(floor(x), 0), min(ceil(x), columns_in - 1)
            dx = x - np.float32(x0)
            for c in range(channels):
                top_left, bottom_left = np.float32(image[y0, x0, c]), np.float32(image[y1, x0, c])
                top_right, bottom_right = np.float32(image[y0, x1, c]), np.float32(image[y1, x1, c])
                total = top_left * (one - dy) * (one - dx) + bottom_left * dy * (one - dx)
                total = total + top_right * (one - dy) * dx
                result[i, j, c] = total + bottom_right * dy * dx
    return result


@pytest.mark.parametrize(
    ("size_in", "size_out"),
    [((7, 9), (5, 4)), ((5, 4), (7, 9)), ((1, 1), (3, 3)), ((33, 17), (8, 31)), ((6, 6), (6, 6))],
)
def test_equals_the_definition_bit_for_bit(size_in: tuple[int, int], size_out: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*size_in, 3), np.uint8)
    assert np.array_equal(legacy_bilinear(image, *size_out), scalar_bilinear(image, *size_out))


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [
        (375, 500, (24, 86, 328, 328)),  # 375 * .875 = 328.125; (375 - 328) / 2 = 23.5, away from zero
        (500, 333, (105, 21, 291, 291)),
        (100, 100, (6, 6, 88, 88)),  # 87.5 rounds to 88, where half-to-even rounding gives 88 too
        (4, 4, (0, 0, 4, 4)),  # 3.5 rounds to 4; Python's round(3.5) is 4 as well
        (12, 20, (1, 5, 11, 11)),  # 10.5 rounds to 11, where half-to-even rounding gives 10
        (1, 1, (0, 0, 1, 1)),
    ],
)
def test_crop_rounds_half_away_from_zero(height: int, width: int, box: tuple[int, int, int, int]) -> None:
    assert tuple(central_crop_box(height, width, 0.875)) == box


def test_threads_that_share_the_kernel_take_turns() -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    kernel = KernelResize(24, 24)
    images = [np.random.default_rng(seed).integers(0, 256, (40 + seed, 30, 3), np.uint8) for seed in range(4)]
    expected = [kernel(image).copy() for image in images]

    def resize(turn: int) -> bool:
        return np.array_equal(kernel(images[turn % 4]), expected[turn % 4])

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(resize, range(400)))


def test_where_the_kernel_has_no_memory_for_a_picture_it_is_resized_without_and_the_next_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    small, large = (np.random.default_rng(rows).integers(0, 256, (rows, 9, 3), np.uint8) for rows in (7, 11))
    with resizing_by_kernel():
        assert np.array_equal(legacy_bilinear(small, 5, 4), scalar_bilinear(small, 5, 4))
        kernel = resize._kernel(5, 4)
        assert kernel is not None
        with monkeypatch.context() as full:
            full.setattr(kernel._interpreter, "allocate_tensors", no_memory)
            assert np.array_equal(legacy_bilinear(large, 5, 4), scalar_bilinear(large, 5, 4))
        assert np.array_equal(legacy_bilinear(small, 5, 4), scalar_bilinear(small, 5, 4))


def no_memory() -> None:
    raise RuntimeError
