"""The numbers of the native generator, against the same recipe written one number at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from evaltools.datasets.gaussian import GaussianInputs, NormalStream

SIZES = (1, 7, 4999, 2, 0, 30_001)
"""Odd sizes, together several blocks of numbers that are computed at once."""


def engine(state: int) -> Iterator[int]:
    """``std::minstd_rand0``."""
    while True:
        state = state * 16807 % 2147483647
        yield state


def normals(seed: int = 1) -> Iterator[float]:
    """``std::normal_distribution<double>(0.5, 1.0f / 3)`` of libstdc++, redrawn outside 0 <= r < 1."""
    draws = engine(seed)

    def canonical() -> float:
        low, high = next(draws) - 1, next(draws) - 1
        number = (low + high * 2147483646.0) / 2147483646.0**2
        return number if number < 1 else math.nextafter(1, 0)

    third = single(1 / 3)
    while True:
        first, second = 2 * canonical() - 1, 2 * canonical() - 1
        square = first * first + second * second
        if square > 1 or square == 0:
            continue
        scale = math.sqrt(-2 * math.log(square) / square)
        for number in (second * scale * third + 0.5, first * scale * third + 0.5):
            if 0 <= number < 1:
                yield number


def single(number: float) -> float:
    """The nearest float32."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def expected(count: int, low: float, high: float, seed: int = 1) -> list[float]:
    """``low + (high - low) * float(r)``, every step rounded to float32."""
    numbers = normals(seed)
    return [single(low + single(single(high - low) * single(next(numbers)))) for _ in range(count)]


@pytest.mark.parametrize("seed", [1, 2, 123456789, 2147483646])
def test_the_stream_is_that_of_libstdcxx(seed: int) -> None:
    stream, plain = NormalStream(seed), normals(seed)
    taken = np.concatenate([stream.take(size) for size in SIZES])
    assert len(taken) == sum(SIZES)
    np.testing.assert_allclose(taken, [next(plain) for _ in range(len(taken))], rtol=0, atol=1e-14)


@pytest.mark.parametrize("seed", [0, 2147483647])
def test_a_seed_that_the_engine_does_not_take_is_1(seed: int) -> None:
    assert NormalStream(seed).take(5).tolist() == NormalStream(1).take(5).tolist()


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("float32", -1, 1), ("float32", -0.3, 7.7), ("uint8", 0, 255), ("int8", -128, 127)]
)
def test_values_are_those_of_the_native_tool(dtype: str, low: float, high: float) -> None:
    inputs = GaussianInputs()
    values = np.concatenate([inputs.values(dtype, size, low, high) for size in SIZES]).tolist()
    wanted = expected(sum(SIZES), single(low), single(high))
    assert values == (wanted if dtype == "float32" else [math.trunc(value) for value in wanted])


@pytest.mark.parametrize(
    ("dtype", "low", "high", "first"),
    [
        ("uint8", 0, 255, [117, 35, 185, 36, 130, 190, 130, 82]),
        ("int8", -128, 127, [-10, -92, 57, -91, 2, 62, 2, -45]),
    ],
)
def test_the_first_values_recorded_from_the_native_tool(dtype: str, low: float, high: float, first: list[int]) -> None:
    assert GaussianInputs().values(dtype, 8, low, high).tolist() == first


def test_every_type_has_a_stream_of_its_own_but_float16_and_bool() -> None:
    inputs, plain = GaussianInputs(), list(zip(range(30), normals(), strict=False))
    numbers = [single(number) for _, number in plain]
    assert inputs.values("float32", 4, 0, 1).tolist() == numbers[:4]
    assert inputs.values("float64", 4, 0, 1).tolist() == numbers[:4]
    assert inputs.values("float16", 4, 0, 1).tolist() == np.array(numbers[4:8], np.float16).tolist()
    assert inputs.values("float32", 2, 0, 1).tolist() == numbers[8:10]
    assert inputs.values("uint8", 4, 0, 200).tolist() == [int(200 * number) for number in numbers[:4]]
    assert inputs.values("bool", 6, 0, 1).tolist() == [number >= 0.5 for number in numbers[4:10]]
    assert inputs.values("int32", 3, 0, 100).tolist() == [int(100 * number) for number in numbers[:3]]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_numbers_beyond_a_type_become_its_limits(dtype: str) -> None:
    """int64 and uint64 hold less than the next float64, so there the limit is the last one below."""
    limits = np.iinfo(dtype)
    values = GaussianInputs().values(dtype, 1000, -1e20, 1e20).tolist()
    assert min(values) == limits.min
    assert limits.max - max(values) == {"int64": 1023, "uint64": 2047}.get(dtype, 0)


def test_a_number_that_float32_rounds_up_to_1_gives_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = GaussianInputs()
    monkeypatch.setattr(inputs, "numbers", lambda _dtype, count: np.ones(count, np.float32))
    assert inputs.whole("int32", 2, 0, 9).tolist() == [9, 9]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_whole_numbers_over_a_full_range_stay_within_it(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = GaussianInputs().whole(dtype, 3000, int(limits.min), int(limits.max)).tolist()
    middle, reach = (limits.min + limits.max) / 2, (limits.max - limits.min) / 2
    assert min(values) < middle - 0.98 * reach
    assert max(values) > middle + 0.98 * reach


def test_words_have_3_to_8_small_letters() -> None:
    words = GaussianInputs().words(2000).tolist()
    assert {len(word) for word in words} == {3, 4, 5, 6, 7, 8}
    assert all(isinstance(word, bytes) and word.isalpha() and word.islower() for word in words)
    assert len({letter for word in words for letter in word}) == 26
    assert GaussianInputs().words(0).shape == (0,)
