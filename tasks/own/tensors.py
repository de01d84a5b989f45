"""The model's inputs and outputs as a task gets them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct


class Quantisation(NamedTuple):
    """Of a tensor: ``real = (quantised - zero_point) * scale``."""

    scale: float
    zero_point: int


class TaskTensor(Struct, frozen=True):
    """An input or output of the model. ``shape`` and ``dtype`` are those that the array must have, or has.

    ``normalization`` is what the model's metadata say of pictures, mean and standard deviation of values 0..255.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    quantisation: Quantisation | None = None
    normalization: tuple[tuple[float, ...], tuple[float, ...]] | None = None


def as_input(values: npt.NDArray[Any], tensor: TaskTensor) -> npt.NDArray[Any]:
    """Real numbers as an input has them: quantised where it is, rounded to its range; whole numbers stay what they are.

    >>> as_input(np.array([0.5, 9.0]), TaskTensor("x", (2,), np.dtype("int8"), Quantisation(0.1, 3))).tolist()
    [8, 93]
    """
    if values.dtype.kind != "f" or tensor.dtype.kind == "f":
        return values
    limits = np.iinfo(tensor.dtype.name)
    scale, zero_point = tensor.quantisation or Quantisation(1.0, 0)
    quantised = np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max)
    return np.asarray(quantised, tensor.dtype)
