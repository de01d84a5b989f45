"""What each example adds to a figure of all of them together: the jackknife."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt

Rows = Sequence[npt.NDArray[np.generic]]
MOST_ALONE: Final = 2000
"""With more examples than these, whole groups are left out: time would grow with the square of their number."""
GROUPS: Final = 200
_SEED: Final = 20


def contributions(figure: Callable[[Rows], float], rows: Rows) -> npt.NDArray[np.float64]:
    """What each of ``n`` examples adds to ``figure(rows)``: numbers with that mean, (n,) float64.

    Their standard deviation by ``sqrt(n)`` is the figure's standard error, and for a mean of up to 2000 they are the
    examples' own values. A figure that there is not (NaN) without some examples counts as 0 without them.

    Up to 2000 examples they are the jackknife's pseudo-values ``n f - (n - 1) f(without it)`` (J. W. Tukey 1958), moved
    so that their mean is the figure itself. Of more examples, 200 random groups are left out instead, the same ones
    for every figure of so many examples: the delete-a-group jackknife (P. S. Kott 2001), whose variance is
    ``(G - 1) / G * sum((f(without group g) - their mean) ** 2)`` for ``G`` groups. Then the examples of a group have
    one number in common.

    >>> contributions(lambda rows: float(np.mean(rows)), [np.array([value]) for value in (1.0, 2.0, 6.0)]).round(9)
    array([1., 2., 6.])
    """
    count = len(rows)
    whole = figure(rows)
    if count < 2:
        return np.full(count, whole)
    groups = groups_of(count)
    number = int(groups.max()) + 1
    figures = [figure(list(compress(rows, (groups != group).tolist()))) for group in range(number)]
    without = np.nan_to_num(figures, nan=0.0)[groups]
    found: npt.NDArray[np.float64] = whole + np.sqrt((number - 1) * (count - 1)) * (without.mean() - without)
    return found


def groups_of(count: int) -> npt.NDArray[np.int64]:
    """The number of the group of each of ``count`` examples, (count,): each its own, or 200 of nearly one size.

    >>> groups_of(4).tolist(), np.unique(np.bincount(groups_of(5100))).tolist()
    ([0, 1, 2, 3], [25, 26])
    """
    if count <= MOST_ALONE:
        return np.arange(count)
    return np.random.default_rng(_SEED).permutation(count) % GROUPS
