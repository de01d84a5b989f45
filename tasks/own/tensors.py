"""The model's inputs and outputs as a task gets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np


class Quantisation(NamedTuple):
    """Of a tensor: ``real = (quantised - zero_point) * scale``."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class TaskTensor:
    """An input or output of the model. ``shape`` and ``dtype`` are those that the array must have, or has.

    ``normalization`` is what the model's metadata say of pictures, mean and standard deviation of values 0..255.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    quantisation: Quantisation | None = None
    normalization: tuple[tuple[float, ...], tuple[float, ...]] | None = None
