"""The base class of the kinds of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.output_difference import KindFigures

PICTURE_CHANNELS: Final = (1, 3, 4)
MADE_AS_SCORES: Final = ("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC")
"""Operators that make scores of classes."""
Values = Mapping[str, npt.NDArray[Any]]
"""What is kept of one run, by name."""


class Output(Struct, frozen=True):
    """What tells the kind of an output: its name, type and shape, the operator that makes it, the inputs' shapes.

    ``is_real``: its numbers are floats, or stand for real ones.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    made_by: str
    input_shapes: tuple[tuple[int, ...], ...]
    is_real: bool

    @property
    def picture(self) -> tuple[int, int, int] | None:
        """Height, width and channels of the first input that is shaped like a picture."""
        for shape in self.input_shapes:
            if len(shape) == 4 and shape[1] > 1 and shape[2] > 1 and shape[3] in PICTURE_CHANNELS:
                return shape[1], shape[2], shape[3]
        return None

    @property
    def is_map(self) -> bool:
        """Whether it has a number, or a vector, for each pixel of the picture that goes in."""
        size = self.picture
        return size is not None and len(self.shape) in (3, 4) and self.shape[1:3] == size[:2]


class OutputKind(Protocol):
    """A kind of output, and what a difference means for it.

    ``needs`` says which shapes fit, for a person.
    """

    @property
    def name(self) -> str:
        """The name in ``--output_kind``."""

    @property
    def needs(self) -> str:
        """The shapes that :meth:`fits` accepts, in words."""

    def is_kind(self, output: Output) -> bool:
        """Whether shape and operators tell that an output is of this kind."""

    def fits(self, output: Output) -> bool:
        """Whether an output can be of this kind at all."""

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """The values kept of one run.

        Both sides have the same shape, and real numbers if the output stands for them.
        """

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """The figures over all runs, of which there is at least one."""

    def in_words(self, found: KindFigures) -> str:
        """The figures in one line."""
