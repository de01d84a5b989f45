"""Uniform random inputs, equal to those of the native benchmark tool (built with GCC's libstdc++)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Uint64s = npt.NDArray[np.uint64]

NATIVE_SEED: Final = 5489
REAL_TYPES: Final = ("float32", "float64", "complex64", "float16", "bfloat16")
WHOLE_TYPES: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
_DRAWS: Final = 1 << 32
_LOW_HALF: Final = np.uint64(_DRAWS - 1)
_HALF_BITS: Final = np.uint64(32)


class NativeUniform:
    """One ``std::mt19937``, the values of which become numbers one after the other, whatever their type.

    Whole numbers are those of ``std::uniform_int_distribution`` of GCC 11 and newer, real ones those of
    ``std::uniform_real_distribution``. The native tool has one engine per process and seeds it with the default.
    Sources: libstdc++ ``bits/uniform_int_dist.h`` and ``bits/random.tcc``.
    """

    def __init__(self, seed: int = NATIVE_SEED) -> None:
        self._engine: Any = np.random.RandomState(seed)  # its stubs differ between versions of NumPy

    def integers(self, dtype: str, count: int, low: int, high: int) -> Array:
        """``count`` numbers from ``low`` to ``high``, both reached, as ``dtype``, one of :data:`WHOLE_TYPES`.

        A number is ``low + floor(draw * range / 2**32)`` with ``range = high - low + 1``. Draws of which
        ``draw * range mod 2**32`` is below ``2**32 mod range`` are passed over, so that all numbers are equally likely.
        Source: D. Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29 (2019). This holds for 64-bit
        types, too, as long as the range is at most ``2**32``; larger ones raise :class:`ValueError`, as does a range
        that is empty or leaves the type. One number takes one draw or more, in a range of one number, too.

        >>> NativeUniform().integers("uint8", 4, 0, 254).tolist()
        [207, 34, 230, 212]
        >>> NativeUniform().integers("int8", 4, -127, 127).tolist()
        [80, -93, 103, 85]
        """
        smallest, largest = whole_limits(dtype)
        if not smallest <= low <= high <= largest or high - low >= _DRAWS:
            raise ValueError(f"{low}..{high} is not a range of {dtype} with at most 2**32 numbers")
        numbers: Array = (self._below(high - low + 1, count).astype(np.int64) + low).astype(dtype)
        return numbers

    def reals(self, dtype: str, count: int, low: float, high: float) -> Array:
        """``count`` numbers from ``low`` up to, but without, ``high`` as ``dtype``, one of :data:`REAL_TYPES`.

        ``low + (high - low) * draw / 2**32`` in float32, then rounded to a shorter type; float64 takes two draws, the
        first for the lower bits. Rounding can reach ``high``. bfloat16, which NumPy lacks, comes as its bits in uint16.
        complex64 takes two numbers, of which the second is the real part; the imaginary part is 0, for so does
        ``static_cast<std::complex<float>>(distribution(), distribution())``.

        >>> [round(number, 6) for number in NativeUniform().reals("float32", 4, -0.5, 0.5).tolist()]
        [0.314724, -0.364523, 0.405792, 0.335009]
        """
        if dtype not in REAL_TYPES:
            raise ValueError(f"{dtype} is none of {', '.join(REAL_TYPES)}")
        if dtype == "complex64":
            return self.reals("float32", 2 * count, low, high)[1::2].astype(dtype)
        bounds = np.array([low, high], np.float32)
        if dtype == "float64":
            lower, upper = self._draw(2 * count).astype(np.float64).reshape(-1, 2).T
            return _scaled((lower + upper * _DRAWS) / float(_DRAWS) ** 2, bounds.astype(np.float64))
        single = _scaled(self._draw(count).astype(np.float32) / np.float32(_DRAWS), bounds)
        return _bfloat16_bits(single) if dtype == "bfloat16" else single.astype(dtype, copy=False)

    def _below(self, size: int, count: int) -> Uint64s:
        """Numbers below ``size``. What is missing after some were passed over comes from the draws that follow."""
        least = np.uint64(_DRAWS % size)
        parts: list[Uint64s] = []
        missing = count
        while missing:
            products = self._draw(missing) * np.uint64(size)
            accepted = products[(products & _LOW_HALF) >= least] >> _HALF_BITS
            parts.append(accepted)
            missing -= len(accepted)
        return np.concatenate(parts) if parts else np.empty(0, np.uint64)

    def _draw(self, count: int) -> Uint64s:
        """The engine's next values, from 0 to ``2**32 - 1``."""
        drawn: Uint64s = self._engine.randint(0, _DRAWS, count, np.uint32).astype(np.uint64)
        return drawn


def whole_limits(dtype: str) -> tuple[int, int]:
    """Smallest and largest number of one of :data:`WHOLE_TYPES`; raises :class:`ValueError` for another type.

    >>> whole_limits("int8"), whole_limits("bool")
    ((-128, 127), (0, 1))
    """
    if dtype not in WHOLE_TYPES:
        raise ValueError(f"{dtype} is none of {', '.join(WHOLE_TYPES)}")
    if dtype == "bool":
        return 0, 1
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _scaled(canonical: npt.NDArray[np.floating[Any]], bounds: npt.NDArray[np.floating[Any]]) -> Array:
    """Numbers of ``0 .. 1`` between two bounds of the same type; a 1, from rounding, becomes the number before it."""
    below_one = np.nextafter(bounds.dtype.type(1), bounds.dtype.type(0))
    scaled: Array = np.minimum(canonical, below_one) * (bounds[1] - bounds[0]) + bounds[0]
    return scaled


def _bfloat16_bits(single: Array) -> Array:
    """The upper half of each float32, finite, rounded to nearest, ties to even."""
    bits = single.view(np.uint32)
    rounded: Array = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & np.uint32(1))) >> 16).astype(np.uint16)
    return rounded
