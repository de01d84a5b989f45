"""The shortest number of a float32."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.native_numbers import shortest


def test_every_float32_is_written_with_the_digits_that_numpy_prints() -> None:
    bits = np.random.default_rng(7).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    for value in values[np.isfinite(values)]:
        assert repr(shortest(float(value))) == repr(float(str(value)))


@pytest.mark.parametrize("around", [0, 1 << 23, 1 << 24, 1 << 25, -(1 << 24)])
def test_whole_numbers_have_as_few_digits(around: int) -> None:
    for value in np.arange(around - 300, around + 300).astype(np.float32):
        assert shortest(float(value)) == float(str(value))


@pytest.mark.parametrize("value", [0.1, 1e300, -1e300, float(np.finfo(np.float32).max) * (1 + 1e-12), math.inf])
def test_what_is_no_float32_stays_as_it_is(value: float) -> None:
    assert shortest(value) == value


def test_nan_stays_nan() -> None:
    assert math.isnan(shortest(math.nan))
