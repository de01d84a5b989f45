"""Gaussian random inputs, equal to those of the native inference diff tool (built with GCC's libstdc++)."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Float64s = npt.NDArray[np.float64]

NATIVE_SEED: Final = 1
_MODULUS: Final = (1 << 31) - 1
_MULTIPLIER: Final = 16807
_RANGE: Final = 2147483646.0
_MEAN: Final = 0.5
_STD: Final = float(np.float32(1 / 3))
_BLOCK: Final = 1 << 14
_SHARED_STREAMS: Final = {"float16": "float32", "bool": "uint8"}


def _powers_of_multiplier() -> npt.NDArray[np.uint64]:
    """``multiplier ** 1 .. multiplier ** block`` modulo the modulus."""
    powers = np.empty(_BLOCK, np.uint64)
    powers[0] = _MULTIPLIER
    known = 1
    while known < _BLOCK:
        powers[known : 2 * known] = powers[:known] * powers[known - 1] % np.uint64(_MODULUS)
        known *= 2
    return powers


class NormalStream:
    """Numbers r of ``Normal(0.5, 1/3)``, redrawn outside ``0 <= r < 1``, one after the other.

    The engine is ``minstd_rand0`` (``x = 16807 x mod (2**31 - 1)``), a uniform number takes two draws
    (``generate_canonical``), and normal numbers come in pairs by Marsaglia's polar method, second one first. Whole
    blocks are computed at once: draw k of a block is ``16807**k x mod (2**31 - 1)``. The last bit may depend on the
    machine's logarithm.

    >>> NormalStream().take(2).round(6).tolist()
    [0.459345, 0.137727]
    """

    def __init__(self, seed: int = NATIVE_SEED) -> None:
        self._state = seed % _MODULUS or NATIVE_SEED
        self._powers = _powers_of_multiplier()
        self._left: Float64s = np.empty(0)

    def take(self, count: int) -> Float64s:
        """The next ``count`` numbers."""
        parts, available = [self._left], len(self._left)
        while available < count:
            parts.append(self._next_block())
            available += len(parts[-1])
        numbers = np.concatenate(parts)
        self._left = numbers[count:]
        return numbers[:count]

    def _next_block(self) -> Float64s:
        first, second = self._uniform().reshape(-1, 2).T * 2 - 1
        radius = first * first + second * second
        accepted = (radius <= 1) & (radius > 0)
        first, second, radius = first[accepted], second[accepted], radius[accepted]
        scale = np.sqrt(-2 * np.log(radius) / radius)
        normal = np.stack((second * scale, first * scale), axis=1).ravel() * _STD + _MEAN
        inside: Float64s = normal[(normal >= 0) & (normal < 1)]
        return inside

    def _uniform(self) -> Float64s:
        product = self._powers * np.uint64(self._state)
        draws = (product & np.uint64(_MODULUS)) + (product >> np.uint64(31))
        draws = np.where(draws >= _MODULUS, draws - np.uint64(_MODULUS), draws)
        self._state = int(draws[-1])
        low, high = (draws - np.uint64(1)).astype(np.float64).reshape(-1, 2).T
        uniform: Float64s = np.minimum((low + high * _RANGE) / (_RANGE * _RANGE), np.nextafter(1.0, 0.0))
        return uniform


class GaussianInputs:
    """Values for tensors of any type; every C++ element type has a stream of its own, as in the native tool.

    float16 shares the stream of float32, bool that of uint8.
    """

    def __init__(self, seed: int = NATIVE_SEED) -> None:
        self._seed = seed
        self._streams: dict[str, NormalStream] = {}

    def restart(self) -> None:
        """Begin all streams anew."""
        self._streams.clear()

    def values(self, dtype: str, count: int, low: float, high: float) -> Array:
        """``low + (high - low) * r`` in float32, then converted to ``dtype`` (whole numbers: toward zero).

        ``dtype`` is a real or whole NumPy type or ``bool``, which is true for numbers of 0.5 and more. Whole numbers
        beyond the type's range become its limits.

        >>> GaussianInputs().values("float32", 3, -1, 1).tolist()
        [-0.08131051063537598, -0.7245453596115112, 0.45619332790374756]
        >>> GaussianInputs().values("uint8", 5, 0, 255).tolist()
        [117, 35, 185, 36, 130]
        """
        scaled = np.float32(low) + (np.float32(high) - np.float32(low)) * self.numbers(dtype, count)
        if dtype == "bool":
            return scaled >= np.float32(0.5)
        if np.dtype(dtype).kind == "f":
            return scaled.astype(dtype, copy=False)
        whole: Array = np.clip(scaled.astype(np.float64), *_limits(dtype)).astype(dtype)
        return whole

    def whole(self, dtype: str, count: int, low: int, high: int) -> Array:
        """Whole numbers from ``low`` to ``high``, both reached, as ``dtype``: ``low + floor(r * (high - low + 1))``."""
        steps = np.floor(self.numbers(dtype, count).astype(np.float64) * (high - low + 1))
        numbers = low + np.minimum(steps, high - low)
        if np.dtype(dtype).kind != "f":
            numbers = np.clip(numbers, *_limits(dtype))
        whole: Array = numbers.astype(dtype)
        return whole

    def words(self, count: int) -> Array:
        """Words of 3 to 8 small letters, as bytes in an array of objects."""
        lengths = self.whole("int32", count, 3, 8).tolist()
        letters = self.whole("int8", sum(lengths), ord("a"), ord("z")).tobytes()
        ends = np.cumsum(lengths).tolist()
        return np.array([letters[end - size : end] for size, end in zip(lengths, ends, strict=True)], object)

    def numbers(self, dtype: str, count: int) -> npt.NDArray[np.float32]:
        """The stream's next numbers in ``0 .. 1`` as float32."""
        shared = _SHARED_STREAMS.get(dtype, dtype)
        if shared not in self._streams:
            self._streams[shared] = NormalStream(self._seed)
        return self._streams[shared].take(count).astype(np.float32)


def _limits(dtype: str) -> tuple[float, float]:
    """The smallest and largest float64 that a whole type can hold."""
    limits = np.iinfo(dtype)
    high = float(limits.max)
    return float(limits.min), high if int(high) <= limits.max else float(np.nextafter(high, 0))
