"""Two models of the same graph, layer by layer: the tested one against another, or against tensors that were saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.locate.by_name.growth import Compared, operators, rounding_of, verdict
from evaltools.locate.by_name.side import OtherModel, Side
from evaltools.locate.parts.bench import Bench, GivenUp
from evaltools.locate.parts.difference import difference
from evaltools.locate.parts.part import Outcome, Part
from evaltools.locate.request import LocateRequest
from evaltools.model.contents import Graph, read_contents
from evaltools.result.locate import Operator, Verdict
from evaltools.runtime.session import Array

_AGAINST: Final = "other"
_FOLDER: Final = "other model"


class Comparison(Struct, frozen=True):
    """What was found; ``stopped`` says which limit was reached."""

    operators: tuple[Operator, ...]
    verdict: Verdict
    warnings: tuple[str, ...] = ()
    stopped: str = ""


def compare(request: LocateRequest, side: Side, bench: Bench, other_bench: Callable[[Path], Bench]) -> Comparison:
    """Run both sides on the same inputs, and compare the tensors that belong together.

    ``bench`` runs the tested model; ``other_bench`` makes one for another model, whose tensors lie in a folder.
    """
    folder = bench.folder / _FOLDER
    try:
        bench.capture(_own_inputs(request, side), request.parts.graph_inputs)
    except (ConfigurationUnavailable, InferenceError) as error:
        return Comparison((), Verdict("not decided", (), f"the CPU cannot run the model: {error}"))
    if isinstance(side, OtherModel):
        try:
            _capture_other(request, side, other_bench(folder))
        except (ConfigurationUnavailable, InferenceError) as error:
            return Comparison((), Verdict("not decided", (), f"the CPU cannot run the other model: {error}"))
    return _Comparing(request, side, bench, folder).run()


def _own_inputs(request: LocateRequest, side: Side) -> list[tuple[Array, ...]]:
    drawn = [request.inputs.source.inputs(run) for run in range(request.num_inputs)]
    return [side.own(values) for values in drawn] if isinstance(side, OtherModel) else drawn


def _capture_other(request: LocateRequest, side: OtherModel, bench: Bench) -> None:
    try:
        inputs = [side.fed(request.inputs.source.inputs(run)) for run in range(request.num_inputs)]
        bench.capture(inputs, side.parts.graph_inputs)
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
            return Comparison((), Verdict("not decided", (), _why_not(outcome)))
        compared = Compared(
            runs={runs.tensor: runs for runs in outcome.outputs},
            inputs=self._input_errors(),
            missing=self._missing,
            rounding={tensor: self._rounding(tensor, rms[tensor]) for tensor in tensors},
        )
        found = operators(compared, model, self._request.places)
        total = sum(operator.status != "computes from constants" for operator in found)
        renumbered = len(self._side.renumbered & set(compared.runs))
        return Comparison(found, verdict(found, total, renumbered), self._warnings(outcome))

    def _wanted(self) -> set[int]:
        """The tensors with a partner that are looked at: what the operators make, and what comes before it."""
        model = self._request.parts
        last = max(self._request.places)
        return {tensor for tensor in self._side.matched if model.makers[tensor] <= last}

    def _part(self, tensors: tuple[int, ...]) -> Part:
        """The whole model in one compile: with copies for a delegate, the tensors themselves on the CPU."""
        model, configuration = self._request.parts, self._request.tested
        inside = tuple(tensor for tensor in tensors if tensor not in model.graph_outputs)
        part = Part(0, len(model.operators) - 1, configuration, against=_AGAINST)
        return replace(part, taps=inside) if configuration.delegates.requested else replace(part, exposed=inside)

    def _keep_other(self, tensor: int) -> float:
        """Keep the other side's numbers of all runs in the shape of the tensor; their root mean square.

        Where the sizes differ after all, the tensor is missing.
        """
        squares = []
        for run in range(self._request.num_inputs):
            shape = self._own(run, tensor).shape
            values = self._side.values(self._folder, run, tensor)
            if _sizes(values.shape) != _sizes(shape):
                self._missing[tensor] = f"the tensor of that name has the shape {list(values.shape)} there"
                return 0.0
            place = self._bench.folder / _AGAINST / str(run) / f"{tensor}.npy"
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
        for run in range(self._request.num_inputs):
            drawn = self._request.inputs.source.inputs(run)
            others = side.fed(drawn)
            for values, tensor, position in zip(
                side.own(drawn), self._request.parts.graph_inputs, side.pair.input_order, strict=True
            ):
                partner = side.parts.graph_inputs[position]
                other = side.graph.tensors[partner].real(others[position])
                error = difference(self._graph.tensors[tensor].real(values), other.reshape(values.shape))
                if error.reference_rms:
                    found[tensor] = max(found[tensor], error.error_rms / error.reference_rms)
        return found

    def _warnings(self, outcome: Outcome) -> tuple[str, ...]:
        changes = not outcome.is_evidence or self._bench.changes_outputs
        return ("looking at its tensors changes what the model gives on the CPU",) if changes else ()


def _why_not(outcome: Outcome) -> str:
    return f"the model cannot be run with all its tensors: {outcome.refused or outcome.died or outcome.resists}"


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
