"""What happens to pixel values between 0..255 and the model's real-valued input."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import UsageError

_SMALLEST_STD: Final = 1e-6


class Normalization(Struct, frozen=True):
    """``real = (pixel - mean) / std`` per channel, pixels in 0..255.

    ``mean`` and ``std`` hold one value for all channels or three, in RGB order. The arithmetic is the native one:
    float32, multiplied by the float32 of ``1 / std``.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    source: str = "given"

    def __post_init__(self) -> None:
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, 3):
                raise UsageError(f"normalization {name} has {len(values)} values; give one, or three in RGB order")
        largest = float(np.finfo(np.float32).max)
        are_numbers = all(abs(value) <= largest for value in (*self.mean, *self.std))
        if not are_numbers or min(map(abs, self.std)) < _SMALLEST_STD:
            raise UsageError(
                f"normalization needs numbers that float32 has and a std of at least {_SMALLEST_STD}, got {self}"
            )

    def apply(self, pixels: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Normalise ``(..., 3)`` float32 pixels; returns a new float32 array."""
        real = pixels - np.array(self.mean, np.float32)
        real *= (1.0 / np.array(self.std, np.float64)).astype(np.float32)
        return real

    def __str__(self) -> str:
        return f"mean={_numbers(self.mean)};std={_numbers(self.std)}"


def _numbers(values: tuple[float, ...]) -> str:
    return ",".join(f"{value:g}" for value in values)


NATIVE: Final = Normalization((127.5,), (127.5,), "native")
"""What the native tool hard-wires for float inputs: 0..255 -> -1..1."""

_NAMED: Final = {
    "native": NATIVE,
    "unit": Normalization((0.0,), (255.0,), "unit"),
    "none": Normalization((0.0,), (1.0,), "none"),
    "imagenet": Normalization((123.675, 116.28, 103.53), (58.395, 57.12, 57.375), "imagenet"),
}
NORMALIZATION_NAMES: Final = tuple(_NAMED)

_MEAN_STD: Final = re.compile(r"mean=(?P<mean>[^;]+);std=(?P<std>[^;]+)")


def parse_normalization(text: str) -> Normalization:
    """Read a ``--normalization`` value: a name, or ``mean=M[,M,M];std=S[,S,S]`` on the 0..255 scale.

    Names: ``native`` (-1..1), ``unit`` (0..1), ``none`` (0..255), ``imagenet`` (per-channel mean and std).

    >>> parse_normalization("unit").std
    (255.0,)
    >>> str(parse_normalization("mean=1,2,3;std=4"))
    'mean=1,2,3;std=4'
    """
    if text in _NAMED:
        return _NAMED[text]
    match = _MEAN_STD.fullmatch(text.replace(" ", ""))
    try:
        if match is not None:
            mean = tuple(float(value) for value in match["mean"].split(","))
            return Normalization(mean, tuple(float(value) for value in match["std"].split(",")))
    except ValueError:
        pass
    message = (
        f"normalization {text!r} is not understood; use {', '.join(_NAMED)}, or numbers on the 0..255 scale "
        'as in "mean=127.5;std=127.5" or "mean=123.7,116.3,103.5;std=58.4,57.1,57.4"'
    )
    raise UsageError(message)
