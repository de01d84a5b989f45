"""How far each example decides a figure that is computed over all examples together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Rows = Sequence[npt.NDArray[np.generic]]


def contributions(figure: Callable[[Rows], float], rows: Rows) -> npt.NDArray[np.float64]:
    """What each of ``n`` examples adds to ``figure(rows)``: numbers with that mean, (n,) float64.

    They are the jackknife's pseudo-values ``n f - (n - 1) f(without it)`` (J. W. Tukey 1958), moved so that their mean
    is the figure itself. Their standard deviation by ``sqrt(n)`` is the figure's standard error, and for a mean they
    are the examples' own values. A figure that there is not (NaN) without an example counts as 0 without it.

    >>> contributions(lambda rows: float(np.mean(rows)), [np.array([value]) for value in (1.0, 2.0, 6.0)]).round(9)
    array([1., 2., 6.])
    """
    count = len(rows)
    whole = figure(rows)
    if count < 2:
        return np.full(count, whole)
    without = np.nan_to_num([figure([*rows[:place], *rows[place + 1 :]]) for place in range(count)], nan=0.0)
    found: npt.NDArray[np.float64] = whole + (count - 1) * (without.mean() - without)
    return found
