"""Whether the reference gives numbers at all, and which values a picture input is made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.engine.steps import Observation, Prepared, Steps
from evaltools.model import ModelFile
from evaltools.preprocess import Normalization, parse_normalization
from evaltools.runtime.session import Array

_LARGEST: Final = 1e30
_NAMED: Final = ("unit", "native", "none")
_CLOSE: Final = 0.1
"""Two ends of ranges are alike within this share of the range's width."""


def are_sound(outputs: Sequence[Array]) -> bool:
    """Whether outputs of real numbers hold no NaN, nothing infinite, and nothing beyond 1e30, which soon overflows.

    >>> are_sound([np.array([3.0])]), are_sound([np.array([np.nan])]), are_sound([np.array([1e35])])
    (True, False, False)
    """
    floats = [np.abs(values) if values.dtype.kind == "c" else values for values in outputs if values.dtype.kind in "fc"]
    return all(values.max(initial=0) <= _LARGEST and values.min(initial=0) >= -_LARGEST for values in floats)


class UnsoundExamples:
    """Counts the examples in which the reference's outputs are not sound."""

    def __init__(self) -> None:
        self._found: list[int] = []

    def watching(self, steps: Steps[Observation]) -> Steps[Observation]:
        """The same steps, of which observing also counts."""

        def observe(
            prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None, configuration: str
        ) -> Observation:
            if reference is outputs and not are_sound(outputs):
                self._found.append(1)
            return steps.observe(prepared, outputs, reference, configuration)

        return replace(steps, observe=observe)

    @property
    def count(self) -> int:
        """The examples so far."""
        return len(self._found)


def unsound_in_words(name: str, count: int, examples: int) -> str:
    """The warning about a reference that gives no numbers to compare with."""
    return (
        f"{name}: in {count} of {examples} examples its outputs hold NaN, infinite numbers or such beyond 1e30, so "
        "that nothing can be learnt from a comparison with them; see that the inputs are what the model is made for"
    )


def other_range_in_words(model: ModelFile, fed: tuple[float, float]) -> str:
    """A sentence on a picture input that is fed other values than the model shows; empty where it shows none."""
    tensor = model.inputs[0]
    shown = tensor.stated_range or tensor.range_by_graph
    if shown is None or not tensor.dtype.startswith("float") or model.normalization is not None:
        return ""
    if _are_alike(fed, (shown.low, shown.high)):
        return ""
    by = f"its first operators ({', '.join(shown.operators)})" if shown.operators else "its metadata"
    return (
        f"the input {tensor.name} is made for {shown.low:.4g}..{shown.high:.4g}, as {by} say, and pictures are fed as "
        f"{fed[0]:.4g}..{fed[1]:.4g}; {_flag_of(shown.low, shown.high)} fits"
    )


def _are_alike(one: tuple[float, float], other: tuple[float, float]) -> bool:
    width = max(one[1] - one[0], other[1] - other[0])
    return all(abs(first - second) <= _CLOSE * width for first, second in zip(one, other, strict=True))


def _flag_of(low: float, high: float) -> str:
    """The ``--normalization`` that gives pixels a range."""
    named = [name for name in _NAMED if _are_alike(_range_of(parse_normalization(name)), (low, high))]
    std = 255 / (high - low)
    return f"--normalization={named[0]}" if named else f'--normalization="mean={0.0 - low * std:.6g};std={std:.6g}"'


def _range_of(normalization: Normalization) -> tuple[float, float]:
    mean, std = normalization.mean[0], normalization.std[0]
    return (0 - mean) / std, (255 - mean) / std


def fitting_normalization(run: Callable[[str], Sequence[Array] | None]) -> str:
    """The first named normalisation with which a picture gives sound outputs; empty without one.

    ``run`` gives the outputs with a normalisation, None where they cannot be had.
    """
    for name in _NAMED:
        outputs = run(name)
        if outputs is not None and are_sound(outputs):
            return name
    return ""
