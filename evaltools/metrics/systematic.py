"""The part of a difference that is the same in all elements: a factor and an offset. Rounding has little of both."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct


class Systematic(Struct, frozen=True):
    """A part of the difference that is alike in all elements, relative to the root mean square of the reference.

    ``value`` is that of all runs together, ``of_runs`` the root mean square of the same of each run: what it may come
    to in other runs where ``value`` is small by chance.
    """

    value: float
    of_runs: float


def gain(dots: Sequence[float], squares: Sequence[float]) -> Systematic | None:
    """The factor, less 1, by which the reference fits the test best (least squares), from sums by run.

    ``dots`` are sums of test times reference, ``squares`` of the reference's squares. None where these are 0.

    >>> gain([1.5, 6.0], [1.0, 4.0])
    Systematic(value=0.5, of_runs=0.5830951894845301)
    """
    total, excess = sum(squares), [dot - square for dot, square in zip(dots, squares, strict=True)]
    if not total or not math.isfinite(total) or not math.isfinite(sum(excess)):
        return None
    return Systematic(sum(excess) / total, math.hypot(*excess) * math.sqrt(len(excess)) / total)


def offset(errors: Sequence[float], counts: Sequence[int], squares: Sequence[float]) -> Systematic | None:
    """The mean of the difference, from sums of it (test less reference) and numbers of elements by run.

    >>> offset([2.0, 2.0], [4, 4], [16.0, 16.0])
    Systematic(value=0.25, of_runs=0.25)
    """
    count, total = sum(counts), sum(squares)
    if not count or not total or not math.isfinite(total) or not math.isfinite(sum(errors)):
        return None
    size = math.sqrt(total / count)
    means = [error / elements for error, elements in zip(errors, counts, strict=True) if elements]
    return Systematic(sum(errors) / count / size, math.hypot(*means) / math.sqrt(len(means)) / size)
