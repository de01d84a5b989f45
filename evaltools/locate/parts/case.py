"""One operator that was wrong, with the arrays of its worst run: what causes and bundles are made from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.runtime.session import Array


class Case(Struct, frozen=True, dict=True):
    """A part of a model that was wrong, and its worst run.

    ``model`` is the part's ``.tflite``, ``arrays`` the ``.npz`` beside it: ``input_N`` with N the number of the tensor
    in the user's model, in the part's order; ``expected`` and ``given``, what the CPU and the delegate had in the
    tensor ``tensor``; ``before``, what the CPU has there for the inputs of the run before. ``operator`` made that
    tensor; ``unit`` is "steps" for quantised whole numbers, else "absolute". ``tolerance`` is what it may be off: each
    element, or with ``on_average`` all of them to one side, where no element alone is too far off.
    """

    index: int
    operator: str
    tensor: str
    unit: str
    tolerance: float
    model: Path
    arrays: Path
    configuration: Configuration
    on_average: bool = False

    @cached_property
    def loaded(self) -> Mapping[str, Array]:
        """The arrays by name."""
        with np.load(self.arrays, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    @property
    def inputs(self) -> list[Array]:
        """What the part was fed, in its order."""
        return [values for name, values in self.loaded.items() if name.startswith("input_")]

    @property
    def expected(self) -> Array:
        """What the CPU gave."""
        return self.loaded["expected"]

    @property
    def given(self) -> Array:
        """What the delegate gave."""
        return self.loaded["given"]

    @property
    def before(self) -> Array:
        """What the CPU gives for the inputs of the run before."""
        return self.loaded["before"]
