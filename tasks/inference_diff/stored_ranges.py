"""Whether the inputs of two models fit what each can store: ranges that cut them, scales that leave few steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.model_pair import ModelPair, convert

FEW_STEPS: Final = 16
_AXES_OF_PICTURES: Final = 4
_WHITE: Final = 255.0
_SURELY: Final = 1e-4


class Stored(Protocol):
    """A tensor whose whole numbers stand for real ones; ``step`` is 0 where they do not."""

    @property
    def name(self) -> str:
        """In the model."""
        ...

    @property
    def dtype(self) -> str:
        """The type of its elements."""
        ...

    @property
    def step(self) -> float:
        """What one step is worth."""
        ...

    @property
    def zero_point(self) -> int | None:
        """The whole number that stands for 0."""
        ...


class Range(Struct, frozen=True):
    """The numbers that a tensor is to hold over all runs, and what does not fit into its range.

    ``cut`` of ``count`` values are more than a step beyond that, and ``cut_squared`` is the sum of squares of what
    is cut off.
    """

    low: float
    high: float
    count: int
    cut: int
    cut_squared: float

    def steps(self, tensor: Stored) -> int:
        """How many values a quantised tensor has for these numbers."""
        own = limits_of(tensor)
        return round((min(self.high, own[1]) - max(self.low, own[0])) / tensor.step) + 1

    def leaves_few(self, tensor: Stored) -> bool:
        """Whether a quantised tensor has so few values for these numbers that they are lost."""
        return self.low < self.high and self.steps(tensor) < FEW_STEPS


class InputFault(Struct, frozen=True):
    """What is wrong with how a quantised input stores its numbers, and what to do."""

    name: str
    text: str
    remedy: str


def limits_of(tensor: Stored) -> tuple[float, float]:
    """The numbers at the ends of a quantised tensor's range."""
    ends, zero = np.iinfo(tensor.dtype), tensor.zero_point or 0
    return (int(ends.min) - zero) * tensor.step, (int(ends.max) - zero) * tensor.step


def range_of(tensor: Stored, runs: Iterable[Array]) -> Range | None:
    """Of the numbers of all ``runs``; None for tensors without a scale, and for what is no number."""
    if not tensor.step:
        return None
    low, high = limits_of(tensor)
    found = []
    for values in runs:
        numbers = values.astype(np.float64).ravel()
        if not numbers.size or not np.isfinite(numbers).all():
            return None
        beyond = np.maximum(numbers - high, low - numbers)
        beyond = beyond[beyond > tensor.step]
        found.append((numbers.min(), numbers.max(), numbers.size, beyond.size, float(np.square(beyond).sum())))
    if not found:
        return None
    lows, highs, counts, cuts, squared = zip(*found, strict=True)
    return Range(float(min(lows)), float(max(highs)), sum(counts), sum(cuts), sum(squared))


def input_fault(tensor: Stored, seen: Range) -> InputFault | None:
    """What is wrong with how an input stores the numbers that were ``seen``, None where nothing is."""
    low, high = limits_of(tensor)
    meant = f"it is for {low:.4g} to {high:.4g}"
    if seen.cut:
        return InputFault(
            "inputs beyond the range",
            f"{share_cut(seen)} of the input {tensor.name!r}, {seen.low:.4g} to {seen.high:.4g}, are cut at an "
            f"end of its range: {meant}",
            "calibrate again with inputs such as these, or feed the model what it was calibrated for",
        )
    if seen.leaves_few(tensor):
        return InputFault(
            "few steps of the input",
            f"the scale of the input {tensor.name!r} leaves {few_steps(tensor, seen)}: {meant}",
            "calibrate again, with inputs in the range that the float model takes",
        )
    return None


def share_cut(seen: Range) -> str:
    """How many values are cut, in words."""
    return f"{seen.cut} of {seen.count} values"


def few_steps(tensor: Stored, seen: Range) -> str:
    """How few values a tensor has for its numbers, in words."""
    ends = np.iinfo(tensor.dtype)
    steps = f"{seen.steps(tensor)} of {int(ends.max) - int(ends.min) + 1} steps"
    return f"{steps} to its values, {seen.low:.4g} to {seen.high:.4g}"


def remarks(
    pair: ModelPair, inputs: Sequence[Sequence[Array]], outputs: Sequence[Sequence[Array]], is_stated: bool
) -> list[str]:
    """What is to be said of the inputs of two models, given those of some runs and what the reference makes of them.

    ``is_stated``: the user says how pixels become numbers.
    """
    found = [f"{fault.text}; {fault.remedy}" for fault in _faults(pair, inputs)]
    by_output = zip(*outputs, strict=True)
    hint = "" if is_stated or not any(map(shows_nothing, by_output)) else reading_of_pixels(pair)
    return [*found, *([hint] if hint else [])]


def _faults(pair: ModelPair, inputs: Sequence[Sequence[Array]]) -> Iterator[InputFault]:
    """What is wrong with the quantised inputs of both models."""
    for place, (given, own, position) in enumerate(zip(pair.inputs, pair.test.inputs, pair.input_order, strict=True)):
        floats = replace(given, dtype="float64", scale=None, zero_point=None)
        for tensor in (own, pair.reference.inputs[position]):
            seen = range_of(tensor, (convert(values[place], given, floats) for values in inputs))
            fault = None if seen is None else input_fault(tensor, seen)
            if fault is not None:
                yield fault


def reading_of_pixels(pair: ModelPair) -> str:
    """What may be wrong with inputs that a quantised model takes as pixels, and a float model as other numbers."""
    for own, position in zip(pair.test.inputs, pair.input_order, strict=True):
        low, high = limits_of(own) if own.step else (0.0, 0.0)
        is_picture = len(own.shape) == _AXES_OF_PICTURES and pair.reference.inputs[position].dtype == "float32"
        if is_picture and abs(low) < own.step and abs(high - _WHITE) < 2 * own.step:
            return (
                f"both models were fed {low:.4g} to {high:.4g}, which the input {own.name!r} is quantised for, and "
                "the scores of the float model are the same for all, or 0 and 1: where it takes pictures as 0 to 1 "
                "or -1 to 1, say so: --normalization=unit, or native"
            )
    return ""


def shows_nothing(runs: Sequence[Array]) -> bool:
    """Whether an output is the same in all runs, or all of its numbers are 0 or 1.

    That is what scores are of inputs that are far from those that a model was trained on.
    """
    given = np.array(runs, np.float64)
    is_same = len(given) > 1 and bool(np.all(given == given[0]))
    return is_same or (given.size > 1 and bool(np.all(np.minimum(abs(given), abs(given - 1)) < _SURELY)))
