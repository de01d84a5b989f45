"""How well the classes of elements overlap on two sides: of the pixels of maps, those on both sides and on either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

_MOST_CLASSES: Final = 1 << 16


def overlaps(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Of each class on either side ``(class, elements on both sides, elements on either)``.

    Sorting, which is slow, happens only where the numbers of classes are far apart.

    >>> overlaps(np.array([0, 1, 1]), np.array([0, 0, -1])).tolist()
    [[-1, 0, 1], [0, 1, 2], [1, 0, 2]]
    """
    if not first.size:
        return np.zeros((0, 3), np.int64)
    low, high = int(min(first.min(), second.min())), int(max(first.max(), second.max()))
    if high - low < _MOST_CLASSES:
        numbers = np.arange(low, high + 1, dtype=np.int64)
        ours, theirs = (side.ravel().astype(np.int64) - low for side in (first, second))
    else:
        numbers, places = np.unique(np.stack((first, second)), return_inverse=True)
        ours, theirs = places.reshape(2, -1)
    both = np.bincount(ours[ours == theirs], minlength=len(numbers))
    either = np.bincount(ours, minlength=len(numbers)) + np.bincount(theirs, minlength=len(numbers)) - both
    found = np.flatnonzero(either)
    rows: npt.NDArray[np.int64] = np.stack([numbers[found], both[found], either[found]], axis=1).astype(np.int64)
    return rows


def overlap_by_class(rows: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Each class of :func:`overlaps` of several maps, and ``(IoU, elements on either side)`` of it over all of them.

    >>> overlap_by_class([np.array([[0, 1, 2], [1, 0, 1]]), np.array([[0, 2, 2]])])
    (array([0, 1]), array([[0.75, 4.  ],
           [0.  , 1.  ]]))
    """
    classes, both, either = np.concatenate([np.zeros((0, 3), np.int64), *rows]).T
    numbers, places = np.unique(classes, return_inverse=True)
    unions = np.bincount(places, either, len(numbers))
    return numbers, np.stack([np.bincount(places, both, len(numbers)) / unions, unions], axis=1)
