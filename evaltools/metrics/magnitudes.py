"""Percentiles of many magnitudes in little memory, from counts that can be added up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

_SHIFT = 16
_HIGHEST_BIN = 1 << 16


class Magnitudes(Struct, frozen=True, eq=False):
    """How many magnitudes (0 or more) fall into each bin.

    ``whole`` magnitudes have a bin per number and are exact. Others are binned by the upper 16 bits of their float32
    value, so that a bin is at most 0.8 % wide, and stand for the middle of their bin: 0.4 % off at most.
    """

    bins: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    whole: bool

    def percentile(self, percent: float) -> float:
        """The smallest magnitude such that ``percent`` % of all are not above it; NaN without any.

        >>> count_magnitudes(np.array([0, 0, 0, 2]), whole=True).percentile(75)
        0.0
        """
        total = int(self.counts.sum())
        if total == 0:
            return float("nan")
        order = np.argsort(self.bins)
        rank = int(np.searchsorted(np.cumsum(self.counts[order]), percent / 100 * total, side="left"))
        return self._magnitude(int(self.bins[order][min(rank, len(order) - 1)]))

    def _magnitude(self, index: int) -> float:
        if self.whole or index == 0:
            return float(index)
        middle = np.array([(index << _SHIFT) + (1 << (_SHIFT - 1))], np.uint32)
        return float(middle.view(np.float32)[0])


def count_magnitudes(values: npt.NDArray[Any], whole: bool) -> Magnitudes:
    """Count finite values of 0 or more; ``whole`` says that they are whole numbers, and not large."""
    indices = values.ravel()
    if not whole:
        with np.errstate(over="ignore"):
            indices = indices.astype(np.float32).view(np.uint32) >> np.uint32(_SHIFT)
    indices = indices.astype(np.int64, copy=False)
    lowest = int(indices.min(initial=_HIGHEST_BIN))
    counts = np.bincount(indices - lowest)
    bins = np.flatnonzero(counts)
    return Magnitudes(bins + lowest, counts[bins], whole)


def merge_magnitudes(parts: Iterable[Magnitudes]) -> Magnitudes:
    """Counts over several sets of the same kind; empty ones may be of any."""
    parts = list(parts)
    if not parts:
        return Magnitudes(np.empty(0, np.int64), np.empty(0, np.int64), whole=False)
    bins, places = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Magnitudes(bins, counts, any(part.whole for part in parts))
