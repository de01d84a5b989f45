"""Where the error grows from layer to layer, and what that says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from evaltools.locate.parts.part import TensorRuns
from evaltools.locate.search.judge import FP32, errors, least_limit
from evaltools.model.contents import Graph, GraphTensor
from evaltools.model.cut import CuttableModel
from evaltools.result.locate import Operator, Verdict

_FLOAT_ROUNDOFF: Final = 2.0**-24
_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int8": 2.0**-8, "uint8": 2.0**-8, "int4": 2.0**-4}
_MOST_NAMED: Final = 3
_GROWS: Final = 2.0
_SMALLEST: Final = 1e-5


class Compared(Struct, frozen=True):
    """The tensors that were compared, by number.

    ``runs`` has their errors in real numbers, ``inputs`` the relative errors of the model's inputs, ``missing`` why a
    tensor was not compared. ``rounding`` is the relative error that an operator makes at least where its output, or one
    of its constants, is stored in fewer digits on one of the two sides.
    """

    runs: Mapping[int, TensorRuns]
    inputs: Mapping[int, float]
    missing: Mapping[int, str]
    rounding: Mapping[int, float]


def rounding_of(graph: Graph, maker: int, tensor: int, rms: float) -> float:
    """The relative error of one rounding of an operator's output and of its constants to how they are stored.

    ``rms`` is the root mean square of the output.
    """
    scale = graph.tensors[tensor].step
    of_output = scale / math.sqrt(12) / rms if scale and rms else _FLOAT_ROUNDOFF
    stored = _constants(graph, maker)
    return max([of_output, *(_ROUNDOFF.get(each.dtype, 0.0) for each in stored)])


def _constants(graph: Graph, place: int) -> list[GraphTensor]:
    """The constants of an operator, also those that a DEQUANTIZE hands to it."""
    makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
    found = []
    for index in graph.nodes[place].inputs:
        tensor = graph.tensor(index)
        maker = makers.get(index)
        if tensor is not None and maker is not None and maker.operator == "DEQUANTIZE":
            tensor = graph.tensor(maker.inputs[0])
        if tensor is not None and tensor.constant is not None:
            found.append(tensor)
    return found


def operators(compared: Compared, model: CuttableModel, places: Iterable[int]) -> tuple[Operator, ...]:
    """One entry for each operator, with the output that is furthest off relative to its values."""
    return tuple(_operator(place, compared, model) for place in places)


def _operator(place: int, compared: Compared, model: CuttableModel) -> Operator:
    made = model.made_by(place)
    name, first = model.operators[place], model.name(made[0]) if made else ""
    if place in model.folded:
        return Operator(place, name, first, "absolute", "computes from constants")
    known = [compared.runs[tensor] for tensor in made if tensor in compared.runs]
    if not known:
        reason = next((compared.missing[tensor] for tensor in made if tensor in compared.missing), "")
        return Operator(place, name, first, "absolute", "not tried", reason=reason)
    runs = max(known, key=lambda each: each.relative)
    gain = _gain(runs, place, compared, model)
    accumulated = errors(runs, least_limit(runs, FP32))
    return Operator(place, name, runs.name, "absolute", "compared", accumulated=accumulated, gain=gain)


def _gain(runs: TensorRuns, place: int, compared: Compared, model: CuttableModel) -> float | None:
    """What the operator makes of the largest error of its inputs, or of one rounding where that is larger."""
    fed = max((_error_at(tensor, compared, model) for tensor in model.fed_to(place)), default=0.0)
    least = max(fed, compared.rounding.get(runs.tensor, _FLOAT_ROUNDOFF))
    return runs.relative / least if math.isfinite(runs.relative) and math.isfinite(least) else None


def _error_at(tensor: int, compared: Compared, model: CuttableModel) -> float:
    """The relative error of a tensor; of one that was not compared, the largest of the nearest ones before it."""
    waiting, seen, largest = [tensor], {tensor}, 0.0
    while waiting:
        each = waiting.pop()
        if each in compared.runs or each in compared.inputs:
            known = compared.runs[each].relative if each in compared.runs else compared.inputs[each]
            largest = max(largest, known)
        elif each in model.makers:
            before = [other for other in model.fed_to(model.makers[each]) if other not in seen]
            seen.update(before)
            waiting += before
    return largest


def verdict(found: Iterable[Operator], total: int, renumbered: int = 0) -> Verdict:
    """What the figures say, which is no culprit: errors add up from layer to layer.

    ``total`` is the number of tensors that operators compute, ``renumbered`` that of those matched without the number
    at their end.
    """
    compared = [operator for operator in found if operator.accumulated is not None]
    text = f"{len(compared)} of {total} operators have a tensor of the same name there"
    if renumbered:
        text += f" ({renumbered} of them but for the number at its end)"
    return Verdict("compared by name", (), "; ".join([text, *_first_not_finite(compared), _growth(compared)]))


def _first_not_finite(compared: list[Operator]) -> list[str]:
    for operator in compared:
        assert operator.accumulated is not None
        if operator.accumulated.first_not_finite is not None:
            return [f"the first with NaN or infinity is {_named(operator)}"]
    return []


def _growth(compared: list[Operator]) -> str:
    grown = [operator for operator in compared if (operator.gain or 0.0) >= _GROWS and _relative(operator) >= _SMALLEST]
    grown.sort(key=lambda operator: -(operator.gain or 0.0))
    if not grown:
        return "the error grows much at none of them"
    listed = (
        f"{_named(operator)} ({operator.gain:.2g} times, to {100 * _relative(operator):.2g} % of its values)"
        for operator in grown[:_MOST_NAMED]
    )
    return "the error grows most at " + ", ".join(listed)


def _relative(operator: Operator) -> float:
    return operator.accumulated.relative if operator.accumulated is not None else 0.0


def _named(operator: Operator) -> str:
    return f"#{operator.index} {operator.name} -> {operator.tensor!r}"
