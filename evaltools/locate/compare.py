"""Two models of the same graph, layer by layer: the tested one against another, or against tensors that were saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.locate.bench import Bench, GivenUp
from evaltools.locate.by_name.match import fit
from evaltools.locate.by_name.side import FLOAT_ROUNDOFF, OtherModel, Side, rounding_of
from evaltools.locate.difference import difference
from evaltools.locate.judge import FP32, errors, least_limit
from evaltools.locate.part import Part, TensorRuns
from evaltools.locate.request import LocateRequest
from evaltools.locate.two_models import AGAINST, LayersOfTwo, far_weights
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CuttableModel
from evaltools.result.locate import KeepInFloat, Operator, Verdict
from evaltools.runtime.session import Array

_FOLDER: Final = "other model"
_MOST_NAMED: Final = 3
_GROWS: Final = 2.0
_SMALLEST: Final = 1e-5


class Comparison(Struct, frozen=True):
    """What was found; ``stopped`` says which limit was reached. ``keep_in_float`` is there for two models alone."""

    operators: tuple[Operator, ...]
    verdict: Verdict
    warnings: tuple[str, ...] = ()
    stopped: str = ""
    keep_in_float: KeepInFloat | None = None


def compare(request: LocateRequest, side: Side, bench: Bench, other_bench: Callable[[Path], Bench]) -> Comparison:
    """Run both sides on the same inputs, and compare the tensors that belong together.

    ``bench`` runs the tested model; ``other_bench`` makes one for another model, whose tensors lie in a folder.
    """
    folder = bench.folder / _FOLDER
    drawn = request.drawn()
    own = [side.own(values) for values in drawn] if isinstance(side, OtherModel) else drawn
    try:
        bench.capture(own, request.parts.graph_inputs)
    except (ConfigurationUnavailable, InferenceError) as error:
        return Comparison((), Verdict("not decided", (), f"the CPU cannot run the model: {error}"))
    if isinstance(side, OtherModel):
        try:
            _capture_other(request, side, other_bench(folder))
        except (ConfigurationUnavailable, InferenceError) as error:
            return Comparison((), Verdict("not decided", (), f"the CPU cannot run the other model: {error}"))
    return _Comparing(request, side, bench, folder).run()


def _capture_other(request: LocateRequest, side: OtherModel, bench: Bench) -> None:
    try:
        bench.capture([side.fed(values) for values in request.drawn()], side.parts.graph_inputs)
    finally:
        bench.close()


class _Comparing:
    """One comparison: what of the tested model is looked at, and the figures."""

    def __init__(self, request: LocateRequest, side: Side, bench: Bench, folder: Path) -> None:
        self._request = request
        self._side = side
        self._bench = bench
        self._folder = folder
        self._graph: Graph = read_contents(request.model).main
        self._missing = dict(side.missing)

    def run(self) -> Comparison:
        """Compare; where the taps cannot be run there are no operators, and the verdict says why."""
        model = self._request.parts
        rms = {tensor: self._keep_other(tensor) for tensor in sorted(self._wanted())}
        tensors = tuple(tensor for tensor in rms if tensor not in self._missing)
        try:
            outcome = self._bench.measure(self._part(tensors))
        except GivenUp as error:
            return Comparison((), Verdict("not decided", (), str(error)), stopped=str(error))
        if not outcome.ran:
            why = outcome.refused or outcome.died or outcome.resists
            reason = f"the model cannot be run with all its tensors: {why}"
            return Comparison((), Verdict("not decided", (), reason))
        compared = _Compared(
            runs={runs.tensor: runs for runs in outcome.outputs},
            inputs=self._input_errors(),
            missing=self._missing,
            rounding={tensor: self._rounding(tensor, rms[tensor]) for tensor in tensors},
        )
        found = tuple(_operator(place, compared, model) for place in self._request.places)
        changes = not outcome.is_evidence or self._bench.changes_outputs
        warnings = ("looking at its tensors changes what the model gives on the CPU",) if changes else ()
        total = sum(operator.status != "computes from constants" for operator in found)
        comparison = Comparison(found, _verdict(found, total, self._otherwise(set(compared.runs))), warnings)
        return self._with_layers(comparison, compared.runs)

    def _with_layers(self, found: Comparison, compared: Mapping[int, TensorRuns]) -> Comparison:
        """The same with what can be measured of the layers of two models one at a time."""
        if not isinstance(self._side, OtherModel):
            return found
        layers = LayersOfTwo(self._request, self._side, self._bench, self._graph, compared)
        operators = tuple(map(layers.looked_at, found.operators))
        keep = layers.keep_in_float(operators)
        warnings = far_weights(operators) + found.warnings
        return replace(found, operators=operators, warnings=warnings, stopped=layers.stopped, keep_in_float=keep)

    def _otherwise(self, compared: set[int]) -> str:
        """How many were matched by something else than their whole name, in brackets."""
        side = self._side
        counts = {
            "but for the number at its end": len(side.renumbered & compared),
            "by their place": len(side.by_place & compared) if isinstance(side, OtherModel) else 0,
        }
        found = ", ".join(f"{count} of them {how}" for how, count in counts.items() if count)
        return f" ({found})" if found else ""

    def _wanted(self) -> set[int]:
        """The tensors with a partner that are looked at: what operators make, what comes before it, and the outputs."""
        model = self._request.parts
        last = max(self._request.places)
        matched = self._side.matched
        return {tensor for tensor in matched if model.makers[tensor] <= last or tensor in model.graph_outputs}

    def _part(self, tensors: tuple[int, ...]) -> Part:
        """The whole model in one compile: with copies for a delegate, the tensors themselves on the CPU."""
        model, configuration = self._request.parts, self._request.tested
        inside = tuple(tensor for tensor in tensors if tensor not in model.graph_outputs)
        part = Part(0, len(model.operators) - 1, configuration, against=AGAINST)
        return replace(part, taps=inside) if configuration.delegates.requested else replace(part, exposed=inside)

    def _keep_other(self, tensor: int) -> float:
        """Keep the other side's numbers of all runs in the shape of the tensor; their root mean square.

        Where the sizes differ after all, the tensor is missing.
        """
        squares = []
        for run in range(self._request.num_inputs):
            shape = self._own(run, tensor).shape
            values = self._side.values(self._folder, run, tensor)
            if not fit(values.shape, shape):
                self._missing[tensor] = f"the tensor of that name has the shape {list(values.shape)} there"
                return 0.0
            place = self._bench.folder / AGAINST / str(run) / f"{tensor}.npy"
            place.parent.mkdir(parents=True, exist_ok=True)
            np.save(place, values.reshape(shape))
            numbers = values.astype(np.float64)
            squares.append(float(np.mean(np.square(numbers[np.isfinite(numbers)]))) if values.size else 0.0)
        return float(np.sqrt(np.mean(squares))) if np.isfinite(squares).all() else 0.0

    def _own(self, run: int, tensor: int) -> Array:
        values: Array = np.load(
            self._bench.folder / "values" / str(run) / f"{tensor}.npy", mmap_mode="r", allow_pickle=False
        )
        return values

    def _rounding(self, tensor: int, rms: float) -> float:
        own = rounding_of(self._graph, self._request.parts.makers[tensor], tensor, rms)
        return max(own, self._side.rounding(tensor, rms))

    def _input_errors(self) -> Mapping[int, float]:
        """How far the inputs of both models are apart, which have different types."""
        side = self._side
        if not isinstance(side, OtherModel):
            return {}
        found = dict.fromkeys(self._request.parts.graph_inputs, 0.0)
        for drawn in self._request.drawn():
            others = side.fed(drawn)
            for values, tensor, position in zip(
                side.own(drawn), self._request.parts.graph_inputs, side.pair.input_order, strict=True
            ):
                partner = side.parts.graph_inputs[position]
                other = side.graph.tensors[partner].real(others[position])
                error = difference(self._graph.tensors[tensor].real(values), other.reshape(values.shape))
                if error.rms[1]:
                    found[tensor] = max(found[tensor], error.rms[0] / error.rms[1])
        return found


class _Compared(Struct, frozen=True):
    """The tensors that were compared, by number.

    ``runs`` has their errors in real numbers, ``inputs`` the relative errors of the model's inputs, ``missing`` why a
    tensor was not compared. ``rounding`` is the relative error that an operator makes at least where its output, or one
    of its constants, is stored in fewer digits on one of the two sides.
    """

    runs: Mapping[int, TensorRuns]
    inputs: Mapping[int, float]
    missing: Mapping[int, str]
    rounding: Mapping[int, float]


def _operator(place: int, compared: _Compared, model: CuttableModel) -> Operator:
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


def _gain(runs: TensorRuns, place: int, compared: _Compared, model: CuttableModel) -> float | None:
    """What the operator makes of the largest error of its inputs, or of one rounding where that is larger."""
    fed = max((_error_at(tensor, compared, model) for tensor in model.fed_to(place)), default=0.0)
    least = max(fed, compared.rounding.get(runs.tensor, FLOAT_ROUNDOFF))
    return runs.relative / least if math.isfinite(runs.relative) and math.isfinite(least) else None


def _error_at(tensor: int, compared: _Compared, model: CuttableModel) -> float:
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


def _verdict(found: Iterable[Operator], total: int, otherwise: str) -> Verdict:
    """What the figures say, which is no culprit: errors add up from layer to layer.

    ``total`` is the number of tensors that operators compute, ``otherwise`` says which have no such name after all.
    """
    compared = [(operator, operator.accumulated) for operator in found if operator.accumulated is not None]
    text = f"{len(compared)} of {total} operators have a tensor of the same name there{otherwise}"
    strange = [operator for operator, error in compared if error.first_not_finite is not None]
    first = [f"the first with NaN or infinity is {_named(operator)}" for operator in strange[:1]]
    grown = sorted(
        (-operator.gain, operator.index, _named(operator), error.relative)
        for operator, error in compared
        if operator.gain is not None and operator.gain >= _GROWS and error.relative >= _SMALLEST
    )
    listed = ", ".join(
        f"{name} ({-gain:.2g} times, to {100 * relative:.2g} % of its values)"
        for gain, _, name, relative in grown[:_MOST_NAMED]
    )
    growth = f"the error grows most at {listed}" if grown else "the error grows much at none of them"
    return Verdict("compared by name", (), "; ".join([text, *first, growth]))


def _named(operator: Operator) -> str:
    return f"#{operator.index} {operator.name} -> {operator.tensor!r}"
