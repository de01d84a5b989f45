"""Whether a tensor is another one that was moved by one place or mirrored: rounding does not do that."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

Displacement = Literal["none", "near", "exact"]
Array = npt.NDArray[Any]
_LEAST_DIFFERENT: Final = 8
"""Of fewer elements, chance may make the neighbours' alike."""
_SAMPLED: Final = 1024
_MUCH_LESS: Final = 1 / 16
_SHORT: Final = 2
"""Of an axis as short, moving by one place leaves half of the elements at most."""


def displacement(test: Array, reference: Array, shape: tuple[int, ...]) -> Displacement:
    """Whether the test is the reference, one element or one place of an axis further or before, or mirrored in an axis.

    ``test`` and ``reference`` are flat. ``exact``: moved, all elements are equal; ``near``: the squared difference is
    a sixteenth at most. None with fewer than eight elements that differ.

    >>> picture = np.arange(16.0) ** 2
    >>> displacement(np.roll(picture, 1), picture, (4, 4)), displacement(picture + 1, picture, (4, 4))
    ('exact', 'none')
    """
    places = np.flatnonzero(test != reference)
    if places.size < _LEAST_DIFFERENT:
        return "none"
    some = places[:: -(-places.size // _SAMPLED)]
    found: Displacement = "none"
    for source in _sources(shape, test.size):
        if _left_over(test, reference, some, source) > _MUCH_LESS:
            continue
        everywhere = np.arange(test.size)
        left_over = _left_over(test, reference, everywhere, source)
        if left_over == 0:
            return "exact"
        if left_over <= _MUCH_LESS:
            found = "near"
    return found


def _left_over(test: Array, reference: Array, places: Array, source: Callable[[Array], Array]) -> float:
    """The squared difference with the moved reference over that with the reference; places moved out of it are left."""
    origins = source(places)
    inside = origins >= 0
    places, origins = places[inside], origins[inside]
    before, after = (np.square(test[places] - reference[taken]).sum() for taken in (places, origins))
    return float(after / before) if before else 1.0


def _sources(shape: tuple[int, ...], size: int) -> list[Callable[[Array], Array]]:
    """For each way to move a tensor: where the element at each flat place comes from, below 0 if from outside."""
    found = [_along(1, size, step) for step in (-1, 1)]
    stride = 1
    for length in reversed(shape):
        if length > 1:
            found.append(partial(_mirrored, stride=stride, length=length))
        if length > _SHORT and length < size:
            found += [_along(stride, length, step) for step in (-1, 1)]
        stride *= length
    return found


def _along(stride: int, length: int, step: int) -> Callable[[Array], Array]:
    def source(places: Array) -> Array:
        position = places // stride % length + step
        return np.where((position >= 0) & (position < length), places + step * stride, -1)

    return source


def _mirrored(places: Array, stride: int, length: int) -> Array:
    position = places // stride % length
    origins: Array = places + (length - 1 - 2 * position) * stride
    return origins
