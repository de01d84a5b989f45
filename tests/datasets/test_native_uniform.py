"""Uniform numbers, against a C++ program built with GCC's libstdc++ and values recorded from the native tool."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaltools.datasets.native_uniform import REAL_TYPES, NativeUniform

CPP = r"""
#include <complex>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <random>
#include <string>

#if defined(__GLIBCXX__) && _GLIBCXX_RELEASE >= 11
void print(double number) { std::printf("%a ", number); }
void print(std::complex<float> number) { std::printf("%a %a ", number.real(), number.imag()); }
void print(int64_t number) { std::printf("%lld ", static_cast<long long>(number)); }

template <typename T, typename Shown, typename Distribution>
void draw(std::mt19937& engine, long count, Distribution distribution) {
  for (long index = 0; index < count; ++index) {
    print(static_cast<Shown>(static_cast<T>(distribution(engine))));
  }
}

int main() {
  std::mt19937 engine;
  std::string type;
  long count;
  long long low, high;
  while (std::cin >> type >> count >> low >> high) {
    if (type == "float32") {
      draw<float, double>(engine, count, std::uniform_real_distribution<float>(low / 2.0f, high / 2.0f));
    } else if (type == "float64") {
      draw<double, double>(engine, count, std::uniform_real_distribution<double>(low / 2.0f, high / 2.0f));
    } else if (type == "complex64") {
      std::uniform_real_distribution<float> distribution(low / 2.0f, high / 2.0f);
      for (long index = 0; index < count; ++index) {
        print(static_cast<std::complex<float>>(distribution(engine), distribution(engine)));
      }
    } else if (type == "int8") {
      draw<int8_t, int64_t>(engine, count, std::uniform_int_distribution<int32_t>(low, high));
    } else if (type == "uint8") {
      draw<uint8_t, int64_t>(engine, count, std::uniform_int_distribution<uint32_t>(low, high));
    } else if (type == "bool") {
      draw<bool, int64_t>(engine, count, std::uniform_int_distribution<uint32_t>(low, high));
    } else if (type == "int16") {
      draw<int16_t, int64_t>(engine, count, std::uniform_int_distribution<int16_t>(low, high));
    } else if (type == "uint16") {
      draw<uint16_t, int64_t>(engine, count, std::uniform_int_distribution<uint16_t>(low, high));
    } else if (type == "int32") {
      draw<int32_t, int64_t>(engine, count, std::uniform_int_distribution<int32_t>(low, high));
    } else if (type == "uint32") {
      draw<uint32_t, int64_t>(engine, count, std::uniform_int_distribution<uint32_t>(low, high));
    } else {
      draw<int64_t, int64_t>(engine, count, std::uniform_int_distribution<int64_t>(low, high));
    }
    std::printf("\n");
  }
}
#else
int main() { return 77; }
#endif
"""
"""Reads lines TYPE COUNT LOW HIGH (real limits doubled) and draws from one engine, as the native tool does."""

Call = tuple[str, int, int, int]
Drawer = Callable[[list[Call]], list[list[float]]]
DEFAULTS: list[Call] = [
    ("float32", 1000, -1, 1), ("int16", 10, 0, 0), ("uint8", 999, 0, 254), ("bool", 501, 0, 1), ("int8", 10, -127, 127),
    ("uint16", 3, 0, 0), ("float64", 501, -1, 1), ("int64", 77, 0, 99), ("uint32", 5, 0, 99), ("complex64", 7, -1, 1),
    ("int32", 1000, 0, 99), ("float32", 3, -1, 1),
]  # fmt: skip
RANGES: list[Call] = [
    ("int8", 3000, -128, 127), ("int8", 2000, -5, -2), ("uint8", 2000, 254, 255), ("int16", 3000, -32768, 32767),
    ("int16", 2000, -300, 7), ("uint16", 2000, 0, 65535), ("uint16", 2000, 1000, 1002), ("int32", 2000, -7, 7),
    ("int32", 2000, -(2**31), 2**31 - 1), ("int32", 2000, -(2**31), 0), ("int32", 3000, -1, 2**31 - 1),
    ("uint32", 2000, 0, 2**31), ("uint32", 3000, 0, 3 * 2**30), ("int64", 2000, -3, 10**6),
    ("int64", 2000, -(2**31), 2**31 - 1), ("int64", 3000, -(2**31), 0), ("int64", 2000, -(2**40), -(2**40) + 9),
    ("int64", 2000, 2**63 - 5, 2**63 - 1), ("float32", 3000, 0, 20), ("float32", 3000, -7, 1), ("float64", 3000, -7, 1),
    ("complex64", 3000, -7, 1), ("float32", 20, 6, 6), ("float32", 3000, -(10**6), 10**6 + 1),
]  # fmt: skip
"""Limits of types, negative ones, ranges for which up to half of all draws are passed over, and 2**32 numbers."""


@pytest.fixture(scope="module")
def libstdcxx(tmp_path_factory: pytest.TempPathFactory) -> Drawer:
    """What libstdc++ draws from one engine, call after call."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ here, which the numbers are compared with")
    folder: Path = tmp_path_factory.mktemp("libstdcxx")
    (folder / "draw.cc").write_text(CPP)
    build = ["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-o", str(folder / "draw"), str(folder / "draw.cc")]
    subprocess.run(build, check=True)

    def draw(calls: list[Call]) -> list[list[float]]:
        lines = "".join(" ".join(map(str, call)) + "\n" for call in calls)
        done = subprocess.run([str(folder / "draw")], input=lines, stdout=subprocess.PIPE, text=True)
        if done.returncode == 77:
            pytest.skip("g++ is not GCC 11 or newer with libstdc++, which the numbers are compared with")
        assert done.returncode == 0
        return [
            [float.fromhex(word) if "x" in word else int(word) for word in line.split()]
            for line in done.stdout.splitlines()
        ]

    return draw


def drawn(engine: NativeUniform, call: Call) -> list[float]:
    """The same call here, with complex numbers as pairs."""
    dtype, count, low, high = call
    if dtype not in REAL_TYPES:
        values = engine.integers(dtype, count, low, high)
        assert values.dtype == dtype
        return [int(value) for value in values.tolist()]
    reals = engine.reals(dtype, count, low / 2, high / 2)
    assert reals.dtype == dtype
    return [float(value) for value in (reals.view(np.float32) if dtype == "complex64" else reals).tolist()]


@pytest.mark.parametrize("calls", [DEFAULTS, RANGES], ids=["the native tool's ranges", "other ranges"])
def test_one_engine_gives_what_libstdcxx_draws_call_after_call(libstdcxx: Drawer, calls: list[Call]) -> None:
    engine = NativeUniform()
    for call, wanted in zip(calls, libstdcxx(calls), strict=True):
        assert drawn(engine, call) == wanted, call


def test_the_engine_meets_the_number_that_the_standard_states() -> None:
    """ISO C++: the 10000th draw of a ``mt19937`` with its default seed is 4123659995."""
    assert NativeUniform().integers("uint32", 10_000, 0, 2**32 - 1)[-1] == 4123659995


@pytest.mark.parametrize(
    ("dtype", "low", "high", "recorded"),
    [
        ("uint8", 0, 254, [207, 34, 230, 212]),
        ("int8", -127, 127, [80, -93, 103, 85]),
        ("int32", 0, 99, [81, 13, 90, 83]),
    ],
)
def test_whole_numbers_recorded_from_the_native_tool(dtype: str, low: int, high: int, recorded: list[int]) -> None:
    assert NativeUniform().integers(dtype, 4, low, high).tolist() == recorded


def test_real_numbers_recorded_from_the_native_tool() -> None:
    recorded = [0.31472367, -0.364522994, 0.405791938, 0.335008562]
    assert NativeUniform().reals("float32", 4, -0.5, 0.5).tolist() == np.array(recorded, np.float32).tolist()


def test_numbers_do_not_depend_on_how_many_are_asked_for_at_once() -> None:
    whole, parts = NativeUniform(), NativeUniform()
    wanted = whole.integers("int32", 1000, -(2**31), 0).tolist()
    assert [int(parts.integers("int32", 1, -(2**31), 0)[0]) for _ in range(1000)] == wanted
    assert parts.reals("float32", 5, 0, 1).tolist() == whole.reals("float32", 5, 0, 1).tolist()


@pytest.mark.parametrize(
    ("number", "bits"),
    [(0.5, 0x3F00), (0.50390625, 0x3F01), (0.501953125, 0x3F00), (0.505859375, 0x3F02), (0.5019532, 0x3F01)],
)
def test_bfloat16_takes_the_even_of_two_neighbours_that_are_as_near(number: float, bits: int) -> None:
    """Between 0.5 and 1 neighbours are 2**-8 apart; the third number and the fourth lie in the middle."""
    assert NativeUniform().reals("bfloat16", 3, number, number).tolist() == [bits] * 3


def test_a_draw_that_float32_rounds_up_to_1_stays_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """``2**32 - 1`` is not a float32; the number before 1 is ``1 - 2**-24``."""
    engine = NativeUniform()
    monkeypatch.setattr(engine, "_draw", lambda count: np.full(count, 2**32 - 1, np.uint64))
    assert engine.reals("float32", 1, -0.5, 0.5).tolist() == [0.5 - 2.0**-24]
    assert engine.reals("float64", 1, -0.5, 0.5).tolist() == [0.5 - 2.0**-53]


@pytest.mark.parametrize(
    ("dtype", "low", "high", "words"),
    [
        ("int32", 1, 0, "1..0 is not a range of int32"),
        ("uint8", -1, 0, "-1..0 is not a range of uint8"),
        ("bool", 0, 2, "0..2 is not a range of bool"),
        ("int64", 0, 2**32, "0..4294967296 is not a range of int64"),
        ("uint64", 0, 9, "uint64 is none of int8"),
        ("float32", 0, 9, "float32 is none of int8"),
    ],
)
def test_ranges_and_types_that_cannot_be_drawn_are_refused(dtype: str, low: int, high: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        NativeUniform().integers(dtype, 3, low, high)
