"""Why a layer of one model is off beside that of another: ranges that are too small or too wide, other options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.locate.rows import ACCUMULATED, SINGLE, cause_row, index_of
from evaltools.locate.sides import OtherModel
from evaltools.model.contents import Graph, GraphTensor
from evaltools.model.cut import CuttableModel, schema_package
from evaltools.operators.part import TensorRuns
from evaltools.result.result import Row
from evaltools.runtime.session import Array

_CUT_SHARE: Final = 0.25
"""Of a tensor's squared error: what makes that much of it is its cause."""
_CUT_ERROR: Final = 0.05
_CALIBRATE: Final = "calibrate again with inputs such as these, so that the range holds what the layer gives"
_DRAWN: Final = (
    "try inputs of your own, for noise may be beyond what a model is calibrated for (--input_images, --input_files); "
    "where they are cut as well, calibrate again with them"
)
_FEW_STEPS: Final = 16
FAR: Final = 0.1
"""A relative error, 20 dB, that a layer in 8 bits makes by itself only where something is wrong with it."""
_NOTICED: Final = {True: 0.02, False: 1e-4}
"""Relative errors of a layer in 8 bits, and of one in floats, that its options may explain."""
_FIXED_RANGE: Final = frozenset({"SOFTMAX", "LOG_SOFTMAX", "LOGISTIC", "TANH", "L2_NORMALIZATION"})
"""Operators whose output has the scale that the specification states, whatever the values are."""
_JOINS: Final = frozenset({"CONCATENATION", "PACK"})
_CONVERTERS_OWN: Final = frozenset({"asymmetricQuantizeInputs", "weightsFormat", "potScaleInt16", "quantizedBiasType"})
"""Fields of options that say how numbers are stored."""
_ENUMS: Final = {"padding": "Padding", "fusedActivationFunction": "ActivationFunctionType"}
_AXES_OF_PICTURES: Final = 4
_WHITE: Final = 255.0
_CAPITALS: Final = re.compile("(?<!^)(?=[A-Z])")


class Range(Struct, frozen=True):
    """What the other model has in a tensor over all runs, and what does not fit into the range of the tested model's.

    ``cut`` of ``count`` values are more than a step beyond that, and ``cut_squared`` is the sum of squares of what
    is cut off.
    """

    low: float
    high: float
    count: int
    cut: int
    cut_squared: float

    def steps(self, tensor: GraphTensor) -> int:
        """How many values a quantised tensor has for these numbers."""
        own = limits_of(tensor)
        return round((min(self.high, own[1]) - max(self.low, own[0])) / tensor.step) + 1


def limits_of(tensor: GraphTensor) -> tuple[float, float]:
    """The numbers at the ends of a quantised tensor's range."""
    ends, zero = np.iinfo(tensor.dtype), tensor.zero_points[0] if tensor.zero_points else 0
    return (int(ends.min) - zero) * tensor.step, (int(ends.max) - zero) * tensor.step


def range_of(tensor: GraphTensor, runs: Iterable[Array]) -> Range | None:
    """Of the other model's numbers in all ``runs``; None for tensors without a scale, and for what is no number."""
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


class TwoModels(Struct, frozen=True, eq=False):
    """The two graphs, and the range of the other model's numbers in each quantised tensor of the tested model.

    ``are_drawn``: the inputs are not the user's own.
    """

    parts: CuttableModel
    graph: Graph
    other: OtherModel
    partners: Mapping[int, int]
    ranges: Mapping[int, Range]
    are_drawn: bool

    def of_inputs(self) -> Iterator[Row]:
        """Causes that lie in how the tested model stores its inputs."""
        for index in self.parts.graph_inputs:
            tensor, seen = self.graph.tensors[index], self.ranges.get(index)
            if seen is None:
                continue
            low, high = limits_of(tensor)
            meant = f"it is for {low:.4g} to {high:.4g}"
            if seen.cut:
                yield cause_row(
                    "inputs beyond the range",
                    f"{_share(seen)} of the input {tensor.name!r}, {seen.low:.4g} to {seen.high:.4g}, are cut at an "
                    f"end of its range: {meant}",
                    "calibrate again with inputs such as these, or feed the model what it was calibrated for",
                )
            elif seen.low < seen.high and seen.steps(tensor) < _FEW_STEPS:
                yield cause_row(
                    "few steps of the input",
                    f"the scale of the input {tensor.name!r} leaves {_few(tensor, seen)}: {meant}",
                    "calibrate again, with inputs in the range that the float model takes",
                )

    def reading_of_pixels(self) -> str:
        """What may be wrong with inputs that a quantised model takes as pixels, and a float model as other numbers."""
        for index, position in zip(self.parts.graph_inputs, self.other.pair.input_order, strict=True):
            own = self.graph.tensors[index]
            there = self.other.graph.tensors[self.other.parts.graph_inputs[position]]
            low, high = limits_of(own) if own.step else (0.0, 0.0)
            is_picture = len(own.shape) == _AXES_OF_PICTURES and there.dtype == "float32"
            if is_picture and abs(low) < own.step and abs(high - _WHITE) < 2 * own.step:
                return (
                    f"both models were fed {low:.4g} to {high:.4g}, which the input {own.name!r} is quantised for, and "
                    "the scores of the float model are the same for all, or 0 and 1: where it takes pictures as 0 to 1 "
                    "or -1 to 1, say so: --normalization=unit, or native"
                )
        return ""

    def of_layer(self, row: Row, runs: TensorRuns | None) -> Iterator[Row]:
        """Causes of what a layer is off by; ``runs`` are its errors in the whole model.

        Where inputs are stored badly, ranges behind them say nothing.
        """
        place = index_of(row)
        error = max(row.value(f"{name}_relative") or 0.0 for name in (SINGLE, ACCUMULATED))
        yield from self._of_options(place, error)
        if self.parts.operators[place] in _FIXED_RANGE or any(self.of_inputs()):
            return
        for index in self.parts.made_by(place):
            tensor, seen = self.graph.tensors[index], self.ranges.get(index)
            if seen is None or runs is None or runs.tensor != index:
                continue
            per_run = seen.count / max(1, len(runs.rms))
            squared = sum(rms[0] ** 2 for rms in runs.rms) * per_run
            if seen.cut_squared > _CUT_SHARE * squared and error > _CUT_ERROR:
                low, high = limits_of(tensor)
                yield cause_row(
                    "values cut at the end of a range",
                    f"{_share(seen)} of {tensor.name!r} are cut at an end of its range, {low:.4g} to {high:.4g}; the "
                    f"other model has {seen.low:.4g} to {seen.high:.4g}",
                    _DRAWN if self.are_drawn else _CALIBRATE,
                )
            elif (row.value(f"{SINGLE}_relative") or 0.0) > FAR:
                yield from self._of_few_steps(tensor, seen)

    def _of_few_steps(self, tensor: GraphTensor, seen: Range) -> Iterator[Row]:
        """That a tensor has few values for its numbers, and with which other ones it shares the scale."""
        if seen.low >= seen.high or seen.steps(tensor) >= _FEW_STEPS:
            return
        few = f"the scale of {tensor.name!r} leaves {_few(tensor, seen)}"
        for node in self.graph.nodes:
            if node.operator in _JOINS and tensor.index in node.inputs:
                ranges = {each: self.ranges[each] for each in node.inputs if each in self.ranges}
                widest = max(ranges, key=lambda each: ranges[each].high - ranges[each].low)
                if widest != tensor.index:
                    wide = ranges[widest]
                    yield cause_row(
                        "one scale for unlike ranges",
                        f"{few}: #{node.index} {node.operator} joins it with {self.graph.tensors[widest].name!r}, "
                        f"{wide.low:.4g} to {wide.high:.4g}, under one scale",
                        "give them as two outputs, or bring both to one range before they are joined, such as boxes "
                        "divided by the size of the picture",
                    )
                    return
        low, high = limits_of(tensor)
        yield cause_row(
            "a range that is too wide",
            f"{few}: it is for {low:.4g} to {high:.4g}",
            "calibrate again, without the inputs that make such values, or with scales by channel",
        )

    def _of_options(self, place: int, error: float) -> Iterator[Row]:
        """What the operator is told to do otherwise than that of the other model."""
        made = [tensor for tensor in self.parts.made_by(place) if tensor in self.partners]
        maker = self.other.parts.makers.get(self.partners[made[0]]) if made else None
        if maker is None or self.other.parts.operators[maker] != self.parts.operators[place]:
            return
        own, others = self.parts.options(place), self.other.parts.options(maker)
        unlike = [name for name in own if name in others and own[name] != others[name] and name not in _CONVERTERS_OWN]
        is_in_steps = any(self.graph.tensors[tensor].step for tensor in made)
        if unlike and error > _NOTICED[is_in_steps]:
            told = ", ".join(
                f"{_in_words(name)} is {_value(name, own[name])} here and {_value(name, others[name])} there"
                for name in unlike
            )
            yield cause_row(
                "other options",
                f"#{place} {self.parts.operators[place]} is told otherwise in the two models: {told}",
                "convert both models from the same graph with the same converter",
            )


def _share(seen: Range) -> str:
    return f"{seen.cut} of {seen.count} values"


def _few(tensor: GraphTensor, seen: Range) -> str:
    ends = np.iinfo(tensor.dtype)
    steps = f"{seen.steps(tensor)} of {int(ends.max) - int(ends.min) + 1} steps"
    return f"{steps} to its values, {seen.low:.4g} to {seen.high:.4g}"


def _in_words(name: str) -> str:
    """A field as the schema of models writes it.

    >>> _in_words("halfPixelCenters")
    'half_pixel_centers'
    """
    return _CAPITALS.sub("_", name).lower()


def _value(name: str, value: Any) -> str:
    """A value of a field, by its name where it has one.

    >>> _value("padding", 1), _value("strideW", 2)
    ('VALID', '2')
    """
    kinds = vars(getattr(schema_package(), _ENUMS[name])) if name in _ENUMS else {}
    return next((word for word, number in kinds.items() if number == value and not word.startswith("_")), str(value))
