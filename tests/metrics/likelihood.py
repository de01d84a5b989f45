"""What is most likely of rates that are tested, by search: a second way beside the formula of the product."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from evaltools.metrics.proportions import PairedCounts


def likeliest_share_lost(counts: PairedCounts, change: float) -> float:
    """The most likely share of lost examples if the true change is ``change``, by search instead of Tango's formula."""
    rest = counts.count - counts.lost - counts.gained

    def unlikeliness(share_lost: float) -> float:
        shares = np.array([share_lost, share_lost + change, 1 - 2 * share_lost - change])
        seen = np.array([counts.lost, counts.gained, rest])
        return float(-np.sum(seen * np.log(np.maximum(shares, 1e-300))))

    low, high = max(0.0, -change), (1 - change) / 2
    found = optimize.minimize_scalar(unlikeliness, bounds=(low, high), method="bounded", options={"xatol": 1e-13})
    return float(found.x)
