"""From pixels to input values, by input type and normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.preprocess import ImageToTensor, Normalization, Quantization, parse_normalization

ALL_VALUES = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
RAMP = np.array([[[0, 0, 0], [51, 51, 51]]], np.uint8)


def unscaled(dtype: str, **options: object) -> npt.NDArray[Any]:
    to_tensor = ImageToTensor(16, 16, np.dtype(dtype), crop_fraction=None, **options)  # type: ignore[arg-type]
    return to_tensor(ALL_VALUES, already_sized=True)[0, :, :, 0].ravel()


def test_native_float_multiplies_by_the_float32_reciprocal() -> None:
    expected = [(np.float32(value) - np.float32(127.5)) * np.float32(1 / 127.5) for value in range(256)]
    assert unscaled("float32").tolist() == expected


def test_native_integers_keep_the_pixel_value() -> None:
    assert unscaled("uint8").tolist() == list(range(256))
    assert unscaled("int8").tolist() == list(range(-128, 128))


def test_interpolated_int8_truncates_after_the_subtraction() -> None:
    """Halfway between 0 and 51 lies 25.5: uint8 gives 25, int8 gives trunc(-102.5) = -102 and not 25 - 128."""
    as_uint8 = ImageToTensor(1, 4, np.dtype("uint8"), crop_fraction=None)(RAMP)
    as_int8 = ImageToTensor(1, 4, np.dtype("int8"), crop_fraction=None)(RAMP)
    assert as_uint8[0, 0, :, 0].tolist() == [0, 25, 51, 51]
    assert as_int8[0, 0, :, 0].tolist() == [-128, -102, -77, -77]


def test_float16_is_the_float_rule_then_a_cast() -> None:
    assert np.array_equal(unscaled("float16"), unscaled("float32").astype(np.float16))


def test_int16_goes_through_real_values() -> None:
    values = unscaled("int16", quantization=Quantization(1 / 32768, 0))
    assert values[0] == -32768
    assert values[255] == 32767


def test_a_stated_normalisation_on_an_integer_input_is_quantised() -> None:
    options = {"normalization": parse_normalization("unit"), "quantization": Quantization(1 / 255, -128)}
    assert unscaled("int8", **options).tolist() == list(range(-128, 128))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [("unit", 0.0, 1.0), ("none", 0.0, 255.0), ("native", -1.0, 1.0), ("mean=55;std=200", -0.275, 1.0)],
)
def test_stated_normalisation_of_floats(text: str, first: float, last: float) -> None:
    values = unscaled("float32", normalization=parse_normalization(text))
    assert values[0] == pytest.approx(first)
    assert values[255] == pytest.approx(last)


def test_per_channel_values_apply_in_rgb_order() -> None:
    normalization = parse_normalization("mean=1,2,3;std=1,2,4")
    assert normalization.apply(np.full((1, 3), 11, np.float32)).tolist() == [[10.0, 4.5, 2.0]]


@pytest.mark.parametrize(
    "text",
    ["", "minus", "mean=1", "mean=1;std=0", "mean=1,2;std=1", "mean=x;std=1", "mean=inf;std=1", "mean=1e300;std=1"],
)
def test_a_normalisation_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="normalization"):
        parse_normalization(text)


def test_blue_may_come_first_after_a_normalisation_in_rgb_order() -> None:
    image = np.arange(2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 3)
    normalization = Normalization((1.0, 2.0, 3.0), (1.0, 2.0, 4.0))
    in_order = ImageToTensor(2, 2, np.dtype("float32"), normalization, crop_fraction=None)
    turned = replace(in_order, blue_first=True)(image)
    np.testing.assert_array_equal(turned, in_order(image)[..., ::-1])
    assert turned.flags.c_contiguous
    planes = replace(in_order, blue_first=True, channels_first=True)(image)
    np.testing.assert_array_equal(planes[0], [turned[0, ..., channel] for channel in range(3)])
    assert planes.flags.c_contiguous
