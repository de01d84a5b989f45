"""Why a layer of one model is off beside that of another: ranges that are too small or too wide, other options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from evaltools.locate.rows import ACCUMULATED, SINGLE, cause_row, index_of
from evaltools.locate.sides import OtherModel
from evaltools.model.contents import Graph, GraphTensor
from evaltools.model.cut import CuttableModel, schema_package
from evaltools.operators.part import TensorRuns
from evaltools.result.result import Row
from evaltools.tasks.inference_diff.stored_ranges import Range, few_steps, input_fault, limits_of, share_cut

_CUT_SHARE: Final = 0.25
"""Of a tensor's squared error: what makes that much of it is its cause."""
_CUT_ERROR: Final = 0.05
_CALIBRATE: Final = "calibrate again with inputs such as these, so that the range holds what the layer gives"
_DRAWN: Final = (
    "try inputs of your own, for noise may be beyond what a model is calibrated for (--input_images, --input_files); "
    "where they are cut as well, calibrate again with them"
)
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
_CAPITALS: Final = re.compile("(?<!^)(?=[A-Z])")


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
            fault = input_fault(tensor, seen)
            if fault is not None:
                yield cause_row(fault.name, fault.text, fault.remedy)

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
                    f"{share_cut(seen)} of {tensor.name!r} are cut at an end of its range, {low:.4g} to {high:.4g}; "
                    f"the other model has {seen.low:.4g} to {seen.high:.4g}",
                    _DRAWN if self.are_drawn else _CALIBRATE,
                )
            elif (row.value(f"{SINGLE}_relative") or 0.0) > FAR:
                yield from self._of_few_steps(tensor, seen)

    def _of_few_steps(self, tensor: GraphTensor, seen: Range) -> Iterator[Row]:
        """That a tensor has few values for its numbers, and with which other ones it shares the scale."""
        if not seen.leaves_few(tensor):
            return
        few = f"the scale of {tensor.name!r} leaves {few_steps(tensor, seen)}"
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
