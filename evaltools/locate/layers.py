"""The layers of a model one at a time, with the numbers of another model of the same graph at hand.

How far the weights are apart, what a single layer is off by, and what the outputs gain where it stays in float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from evaltools.errors import OutputError
from evaltools.locate.request import LocateRequest
from evaltools.locate.rows import (
    FLOAT_LAYER,
    IN_FLOAT,
    RANK,
    SINGLE,
    Bundle,
    decibels,
    figure,
    figures,
    index_of,
    with_errors,
)
from evaltools.locate.sides import FLOAT_ROUNDOFF, Side, fit
from evaltools.metrics.jackknife import Rows, contributions
from evaltools.metrics.means import mean_interval
from evaltools.model.contents import Graph, GraphTensor, Operation, read_contents
from evaltools.model.cut import NotCuttable
from evaltools.model.float_layer import is_quantized_layer, with_float_layer
from evaltools.model.graph import SAME_VALUES
from evaltools.operators.bench import Bench, GivenUp
from evaltools.operators.difference import difference
from evaltools.operators.judge import FP32, JUMPS, least_limit
from evaltools.operators.part import WHOLE, Outcome, Part, TensorRuns
from evaltools.report.files.output_file import require_new_folder
from evaltools.result.result import Row
from evaltools.runtime.session import Array

Floats = npt.NDArray[np.float64]
AGAINST: Final = "other"
"""The folder with the other model's numbers."""
MOST_IN_FLOAT: Final = 20
"""Layers that are tried in float, each of which opens and runs the whole model."""
_FAR_DB: Final = 15.0
_ROUNDING_STEPS: Final = 0.5
"""The root mean square of errors that are at most a rounding, which is 0.29 where all are alike."""
_MOST_NAMED: Final = 3
_WHOLE_BIASES: Final = ("int32", "int64")
_MOST_TENSORS: Final = 4
_ROUNDED: Final = "rounded"
_LEAST_GAIN_DB: Final = 0.3
"""What is worth keeping a layer in float."""
_COPY: Final = "in-float.tflite"
_UNLIKE: Final = 16.0
_SCORES: Final = ("SOFTMAX", "LOGISTIC")


class LayersOfTwo:
    """Measures layers of the tested model; where a limit is reached, ``stopped`` says so and the rest is left out.

    ``compared`` has the tensors that were compared in the whole model, by number; the other model's numbers of these
    lie in the folder of the bench.
    """

    def __init__(self, request: LocateRequest, side: Side, bench: Bench, compared: Mapping[int, TensorRuns]) -> None:
        self._request = request
        self._side = side
        self._bench = bench
        self._graph = read_contents(request.model).main
        self._compared = compared
        self.stopped = ""

    def looked_at(self, row: Row) -> Row:
        """The same with the error of its weights, and the error of the single layer, fed with the other's numbers."""
        if row.texts["status"] != "compared":
            return row
        model, place = self._request.parts, index_of(row)
        row = self._with_weights(row)
        if not set(model.fed_to(place)) <= {*self._compared, *model.graph_inputs}:
            return row
        outcome = self._measure(Part(place, place, self._request.tested, against=AGAINST, fed_by_other=True))
        if outcome is None or not (outcome.ran and outcome.is_evidence):
            return row
        worst = max(outcome.outputs, key=lambda runs: runs.relative)
        return with_errors(row, SINGLE, worst, least_limit(worst, FP32))

    def in_float(self, operators: Sequence[Row]) -> tuple[tuple[Row, ...], Row | None]:
        """The operators with what the outputs gain where one of them stays in float, and what was tried.

        Nothing is tried where nothing is quantised, or nothing is off. Of all quantised layers those with the largest
        error by themselves are tried, one at a time; those that are worth it are ranked. The signal to noise is that of
        the model as it is, over all inputs, in the tensors ``measured_in``: its outputs, or what scores (SOFTMAX) and
        choices (ARG_MAX) are made of, or what is joined though its sizes are unlike. Several count alike: the root mean
        square of their relative errors.
        """
        layers = [row for row in operators if is_quantized_layer(self._graph, index_of(row))]
        layers.sort(key=_error_by_itself, reverse=True)
        before = _rms([self._compared[tensor] for tensor in self._judged])
        sqnr = _sqnr(before)
        if sqnr is None or not layers or not before[..., 0].any():
            return tuple(operators), None
        found: dict[int, Row] = {}
        for row in layers[:MOST_IN_FLOAT]:
            tried = self._tried(row, before)
            if self.stopped:
                break
            found[index_of(row)] = tried
        best = sorted(found.values(), key=lambda row: -(row.value(IN_FLOAT) or 0.0))
        ranks = {index_of(row): rank for rank, row in enumerate(filter(_is_worth_it, best), 1)}
        names = [repr(self._compared[tensor].name) for tensor in self._judged]
        more = f" and {len(names) - _MOST_TENSORS} more" if len(names) > _MOST_TENSORS else ""
        summary = Row(
            "in float",
            "in_float",
            counts={"candidates": len(layers), "tried": len(found)},
            texts={"measured_in": f"{', '.join(names[:_MOST_TENSORS])}{more}"},
            figures=figures("dB", sqnr_db=sqnr),
        )
        return tuple(_ranked(found.get(index_of(row), row), ranks) for row in operators), summary

    def _tried(self, row: Row, before: Floats) -> Row:
        exposed = tuple(tensor for tensor in self._judged if tensor not in self._graph.outputs)
        try:
            content = copy_in_float(self._request.model.read(), self._graph, self._side, index_of(row), exposed)
        except NotCuttable as error:
            return _not_in_float(row, str(error))
        path = self._bench.folder / f"{index_of(row)}-{_COPY}"
        path.write_bytes(content)
        outcome = self._measure(Part(WHOLE, WHOLE, self._request.tested, exposed, against=AGAINST, copy=path.name))
        path.unlink()
        if outcome is None or not outcome.ran:
            return row if outcome is None else _not_in_float(row, outcome.refused or outcome.died)
        after = _rms([outcome.of(tensor) for tensor in self._judged])[: len(before)]
        sqnr = _sqnr(after)
        if sqnr is None:
            return _not_in_float(row, "its outputs hold NaN or infinity")
        gains = contributions(_gain, list(np.stack([before, after], axis=1)))
        gain, count = float(gains.mean()), len(gains)
        interval = mean_interval(gain, float(gains.std(ddof=1)), count) if count > 1 else None
        found = {"in_float_sqnr_db": figure(sqnr, "dB"), IN_FLOAT: figure(gain, "dB", interval)}
        return replace(row, figures={**row.figures, **found})

    @cached_property
    def _judged(self) -> tuple[int, ...]:
        """The tensors that a model is judged by: its outputs, or what scores, choices and unlike parts are made of.

        The 256 steps of a SOFTMAX in 8 bits hide how wrong a model is, and an ARG_MAX makes nothing or all of an error.
        """
        found = [each for output in self._graph.outputs for each in self._judged_by(output, len(self._graph.nodes))]
        return tuple(dict.fromkeys(found))

    def _judged_by(self, tensor: int, before: int) -> tuple[int, ...]:
        """What shows how wrong a tensor is, of what operators ``before`` one make."""
        known: tuple[int, ...] = ()
        while True:
            known = known or ((tensor,) if tensor in self._compared else ())
            place = self._request.parts.makers.get(tensor, before)
            if place >= before:
                return known
            node, before = self._graph.nodes[place], place
            if node.operator in JUMPS.union(_SCORES) or self._joins_unlike(node):
                return tuple(found for each in node.inputs for found in self._judged_by(each, place)) or known
            if node.operator not in SAME_VALUES or not node.inputs:
                return known
            tensor = node.inputs[0]

    def _joins_unlike(self, node: Operation) -> bool:
        """Whether it joins tensors of unlike sizes, of which the largest hides how wrong the others are."""
        largest = [self._compared[each].magnitude for each in node.inputs if each in self._compared]
        return node.operator == "CONCATENATION" and bool(largest) and max(largest) > _UNLIKE * min(largest)

    def _measure(self, part: Part) -> Outcome | None:
        """None where a limit is reached."""
        if self.stopped:
            return None
        try:
            return self._bench.measure(part)
        except GivenUp as error:
            self.stopped = str(error)
            return None

    def _with_weights(self, row: Row) -> Row:
        """The row with the error of the weights that are furthest off, where there are some to compare.

        ``weights_relative`` is the root mean square of the error, divided by that of the other model's weights. The
        text says whether it is no more than that of rounding to the scales with which they are stored.
        """
        found = []
        for own, other in _constants_of_both(self._side, self._graph, index_of(row)).values():
            numbers, others = own.real_constant(), None if other is None else other.real_constant()
            if numbers is None or others is None or own.dtype in _WHOLE_BIASES:
                continue
            others = others.reshape(numbers.shape)
            error = difference(numbers, others)
            if error.rms[1] and math.isfinite(error.rms[0]):
                found.append((error.rms[0] / error.rms[1], own.steps_between(numbers, others) <= _ROUNDING_STEPS))
        if not found:
            return row
        relative, is_rounding = max(found)
        weights = {**figures(weights_relative=relative), **figures("dB", weights_sqnr_db=decibels(relative))}
        texts = {**row.texts, "weights": _ROUNDED if is_rounding else "others"}
        return replace(row, figures={**row.figures, **weights}, texts=texts)


def _error_by_itself(row: Row) -> float:
    """The relative error of a single layer, -1 where it is not known."""
    found = row.figures.get(f"{SINGLE}_relative")
    return -1.0 if found is None else math.inf if found.value is None else found.value


def _not_in_float(row: Row, why: str) -> Row:
    return replace(row, texts={**row.texts, "not_in_float": why})


def _ranked(row: Row, ranks: Mapping[int, int]) -> Row:
    rank = ranks.get(index_of(row))
    return row if rank is None else replace(row, counts={**row.counts, RANK: rank})


def _rms(tensors: Sequence[TensorRuns]) -> Floats:
    """Root mean squares of the errors and of what is right: (inputs, tensors, 2)."""
    found: Floats = np.array([runs.rms for runs in tensors], np.float64).reshape(len(tensors), -1, 2).swapaxes(0, 1)
    return found


def _sqnr(rms: Floats) -> float | None:
    """Of tensors together over all inputs, at most what one rounding of float32 leaves; None without numbers."""
    if not rms.size:
        return None
    error, signal = np.square(rms).sum(axis=0).T
    relative = np.divide(error, signal, out=np.zeros_like(error), where=signal > 0)
    return decibels(max(math.sqrt(relative.mean()), FLOAT_ROUNDOFF))


def _gain(rows: Rows) -> float:
    """How much better the second half of each row is than the first: the model before, and with a layer in float."""
    before, after = (_sqnr(np.array([row[half] for row in rows])) for half in (0, 1))
    return math.nan if before is None or after is None else after - before


def _is_worth_it(row: Row) -> bool:
    """Whether a layer gains something in float that other inputs would show, too."""
    found = row.figures.get(IN_FLOAT)
    if found is None or found.value is None or found.value < _LEAST_GAIN_DB:
        return False
    return found.interval is None or found.interval.low > 0


def copy_in_float(content: bytes, graph: Graph, side: Side, place: int, exposed: Sequence[int] = ()) -> bytes:
    """The tested model with one layer in float, and with the other model's weights there where it has these.

    ``graph`` is the main graph of its ``content``, ``exposed`` are tensors that it gives beside its outputs. Raises
    :class:`~evaltools.model.cut.NotCuttable`.
    """
    constants: dict[int, Array] = {}
    for position, (own, other) in _constants_of_both(side, graph, place).items():
        numbers = None if other is None else other.real_constant()
        numbers = own.real_constant() if numbers is None else numbers.reshape(own.shape)
        if numbers is not None and own.dtype != "float32" and numbers.dtype.kind == "f":
            constants[position] = numbers
    return with_float_layer(content, graph, place, constants, exposed)


def _constants_of_both(side: Side, graph: Graph, place: int) -> Mapping[int, tuple[GraphTensor, GraphTensor | None]]:
    """The constants of a layer by the position of the input, each with that of the other model if it fits."""
    node, other = graph.nodes[place], side.model
    assert other is not None
    made = [tensor for tensor in node.outputs if tensor in side.partners]
    maker = other.parts.makers.get(side.partners[made[0]]) if made else None
    partner = None if maker is None else other.graph.nodes[maker]
    others = partner.inputs if partner is not None and partner.operator == node.operator else ()
    found = {}
    for position, index in enumerate(node.inputs):
        own = graph.constant_behind(index)
        there = other.graph.constant_behind(others[position]) if position < len(others) else None
        if own is not None:
            found[position] = own, there if there is not None and fit(own.shape, there.shape) else None
    return found


def far_weights(operators: Sequence[Row]) -> tuple[str, ...]:
    """Sentences about weights that are far from those of the other model, the furthest named; none without such."""
    known = [row for row in operators if "weights" in row.texts]
    found = []
    for rounded, differ, why in (
        (False, "differ from the other model's by more than rounding", "another training, or damaged scales"),
        (True, "are rounded coarsely", "few bits, or scales that are too large"),
    ):
        far = [
            (sqnr, f"{row.name}: {sqnr:.1f} dB")
            for row in known
            if (row.texts["weights"] == _ROUNDED) == rounded
            and (sqnr := row.value("weights_sqnr_db")) is not None
            and sqnr < _FAR_DB
        ]
        if far:
            named = ", ".join(name for _, name in sorted(far)[:_MOST_NAMED])
            more = f" and {len(far) - _MOST_NAMED} more" if len(far) > _MOST_NAMED else ""
            found.append(f"the weights of {len(far)} of {len(known)} layers {differ} ({named}{more}): {why}")
    return tuple(found)


def write_float_layer(folder: Path, copy: bytes | None) -> Bundle:
    """Write the ``copy`` with the best layer in float into a new folder, where there is one.

    Raises :class:`~evaltools.errors.UsageError` for a folder that is not empty, and
    :class:`~evaltools.errors.OutputError`.
    """
    require_new_folder(folder, "bundle")
    if copy is None:
        return Bundle(str(folder), (), False, "no layer could be computed in float")
    try:
        (folder / FLOAT_LAYER).write_bytes(copy)
    except OSError as error:
        raise OutputError(f"--bundle={folder}: {FLOAT_LAYER} cannot be written: {error}") from error
    return Bundle(str(folder), (FLOAT_LAYER,), False, "")
