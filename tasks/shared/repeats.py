"""Whether a configuration gives the same outputs when the same input comes again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.errors import InferenceError
from evaltools.runtime import Session
from evaltools.runtime.session import Array

RUNS: Final = 3
"""Enough for what goes wrong in every third run."""
_ROUNDINGS: Final = 1e-5
"""The relative RMS that sums in another order may make of floats."""


def gives_the_same_again(session: Session, inputs: Sequence[Array]) -> bool:
    """Whether :data:`RUNS` runs of the same inputs give the same outputs, floats but for a few roundings.

    A run that fails shows nothing: the pass counts failures.
    """
    first: Sequence[Array] | None = None
    try:
        for _ in range(RUNS):
            outputs = session.run(inputs, 1).outputs
            first = [values.copy() for values in outputs] if first is None else first
            if not all(map(_are_alike, outputs, first)):
                return False
    except InferenceError:
        return True
    return True


def _are_alike(again: Array, first: Array) -> bool:
    if again.dtype != first.dtype or again.shape != first.shape:
        return False
    if again.tobytes() == first.tobytes():
        return True
    if again.dtype.kind != "f":
        return False
    one, other = again.astype(np.float64), first.astype(np.float64)
    with np.errstate(all="ignore"):
        return bool(np.linalg.norm(one - other) <= _ROUNDINGS * np.linalg.norm(other))
