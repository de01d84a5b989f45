"""Which delegates are made for which kind of model, as the documentation has it.

Source: the table in TensorFlow Lite's document "LiteRT delegates", section "Choosing a delegate".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from evaltools.model.kind import DYNAMIC_RANGE, FLOAT16_WEIGHTS, FLOAT32, FULL_INTEGER, TRAINED_QUANTIZED

SOURCE: Final = 'TensorFlow Lite, "LiteRT delegates"'
PLATFORMS: Final[Mapping[str, str]] = {
    "GPU": "Android and iOS",
    "NNAPI": "Android 8.1 (API 27) and later",
    "Hexagon": "older Android devices with a Qualcomm DSP",
    "Core ML": "Apple devices with an A12 chip or later",
}
"""Delegates of the table, and where each one is."""
SUPPORT: Final[Mapping[str, tuple[bool, bool, bool, bool]]] = {
    FLOAT32: (True, True, False, True),
    FLOAT16_WEIGHTS: (True, False, False, True),
    DYNAMIC_RANGE: (True, True, False, False),
    FULL_INTEGER: (True, True, True, False),
    TRAINED_QUANTIZED: (True, True, True, False),
}
"""For each kind, the delegates of ``PLATFORMS`` in their order; other kinds are not in the document."""
EIGHT_BITS_ONLY: Final = "Hexagon"
_FLOAT_KINDS: Final = (FLOAT32, FLOAT16_WEIGHTS, DYNAMIC_RANGE)
_REJECTED: Final = "takes 8-bit operators only: rejects a float model operator by operator, all runs on the CPU"
_NOT_LISTED: Final = "the document does not list this kind of model"


class KindSupport(Struct, frozen=True):
    """Whether a delegate is made for a kind of model (None: not known), where it is, and a remark."""

    delegate: str
    supported: bool | None
    platforms: str
    remark: str


def support_of(kind: str) -> tuple[KindSupport, ...]:
    """What the document says of a kind of model, delegate by delegate.

    >>> [(entry.delegate, entry.supported) for entry in support_of("float16 weights")]
    [('GPU', True), ('NNAPI', False), ('Hexagon', False), ('Core ML', True)]
    """
    answers = SUPPORT.get(kind, (None,) * len(PLATFORMS))
    return tuple(
        KindSupport(delegate, answer, platforms, _remark(delegate, kind, answer))
        for (delegate, platforms), answer in zip(PLATFORMS.items(), answers, strict=True)
    )


def _remark(delegate: str, kind: str, answer: bool | None) -> str:
    if answer is None:
        return _NOT_LISTED
    return _REJECTED if delegate == EIGHT_BITS_ONLY and kind in _FLOAT_KINDS else ""
