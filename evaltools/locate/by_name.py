"""The tensors of a model compared with those of the same name elsewhere: where errors grow, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.locate.causes_of_two import FAR, TwoModels
from evaltools.locate.layers import AGAINST, LayersOfTwo, far_weights
from evaltools.locate.request import LocateRequest
from evaltools.locate.rows import (
    ACCUMULATED,
    COMPARED_BY_NAME,
    SINGLE,
    decibels,
    figures,
    index_of,
    is_endless,
    operator_row,
    with_errors,
)
from evaltools.locate.sides import FLOAT_ROUNDOFF, Side, fit, rounding_of, shaped_otherwise
from evaltools.locate.words import parts_of, worst_first
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CuttableModel
from evaltools.operators.answer import Answer, not_decided
from evaltools.operators.bench import Bench, GivenUp
from evaltools.operators.difference import difference
from evaltools.operators.judge import FP32, least_limit
from evaltools.operators.part import Outcome, Part, TensorRuns
from evaltools.result.result import Row
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.stored_ranges import range_of, reading_of_pixels, shows_nothing

_FOLDER: Final = "other model"
_MOST_NAMED: Final = 3
_GROWS: Final = 2.0
_SMALLEST: Final = 1e-5


class Comparison(Struct, frozen=True):
    """What was found; ``stopped`` says which limit was reached.

    Of two models alone there are ``in_float``, and ``causes`` that lie in the inputs.
    """

    operators: tuple[Row, ...]
    answer: Answer
    warnings: tuple[str, ...] = ()
    stopped: str = ""
    in_float: Row | None = None
    causes: tuple[Row, ...] = ()


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


def compare(request: LocateRequest, side: Side, bench: Bench, other_bench: Callable[[Path], Bench]) -> Comparison:
    """Run both sides on the same inputs, and compare the tensors that belong together.

    ``bench`` runs the tested model; ``other_bench`` makes one for another model, whose tensors lie in a folder.
    """
    folder, other = bench.folder / _FOLDER, side.model
    drawn = request.drawn()
    own = drawn if other is None else [other.own(values) for values in drawn]
    whose = "model"
    try:
        bench.capture(own, request.parts.graph_inputs)
        if other is not None:
            whose = "other model"
            others = other_bench(folder)
            try:
                others.capture([other.fed(values) for values in drawn], other.parts.graph_inputs)
            finally:
                others.close()
    except (ConfigurationUnavailable, InferenceError) as error:
        return _not_decided(f"the CPU cannot run the {whose}: {error}")
    graph = read_contents(request.model).main
    kept = _keep_others(request, side, bench.folder, folder)
    missing = {**side.missing, **{tensor: found for tensor, found in kept.items() if isinstance(found, str)}}
    rms = {tensor: found for tensor, found in kept.items() if not isinstance(found, str)}
    try:
        outcome = bench.measure(_with_tensors(request, tuple(rms)))
    except GivenUp as error:
        return replace(_not_decided(str(error)), stopped=str(error))
    if not outcome.ran:
        why = outcome.refused or outcome.died or outcome.resists
        return _not_decided(f"the model cannot be run with all its tensors: {why}")
    makers = request.parts.makers
    rounding = {
        tensor: max(rounding_of(graph, makers[tensor], tensor, each), side.rounding(tensor, each))
        for tensor, each in rms.items()
    }
    runs = {each.tensor: each for each in outcome.outputs}
    return _summed_up(
        request, side, bench, outcome, _Compared(runs, _input_errors(request, side, graph), missing, rounding)
    )


def _not_decided(reason: str) -> Comparison:
    return Comparison((), not_decided(reason))


def _summed_up(request: LocateRequest, side: Side, bench: Bench, outcome: Outcome, compared: _Compared) -> Comparison:
    """The operators, the answer, and of two models what can be measured of the layers one at a time."""
    found = tuple(_operator(place, compared, request.parts) for place in request.places)
    changes = not outcome.is_evidence or bench.changes_outputs
    warnings = ("looking at its tensors changes what the model gives on the CPU",) if changes else ()
    if side.model is None:
        return Comparison(found, _answer(found, side, set(compared.runs)), warnings)
    layers, two = LayersOfTwo(request, side, bench, compared.runs), _two_models(request, side, bench)
    by_itself = [_with_causes(layers.looked_at(row), compared, two) for row in found]
    operators, in_float = layers.in_float(by_itself)
    of_inputs = tuple(two.of_inputs())
    causes = [*of_inputs, *(cause for row in worst_first(operators) for cause in parts_of(row, "cause"))]
    is_open = request.options.text("normalization") == "auto" and _shows_nothing(request, bench)
    hint = reading_of_pixels(side.model.pair) if is_open else ""
    return Comparison(
        operators,
        _answer(operators, side, set(compared.runs), causes),
        (*far_weights(operators), *([hint] if hint else []), *warnings),
        layers.stopped,
        in_float,
        of_inputs,
    )


def _two_models(request: LocateRequest, side: Side, bench: Bench) -> TwoModels:
    """Both graphs, with the range of the other model's numbers in each tensor that was compared, and in the inputs."""
    other, parts, graph = side.model, request.parts, read_contents(request.model).main
    assert other is not None
    runs = range(request.num_inputs)
    ranges = {}
    for tensor in side.matched:
        places = [bench.folder / AGAINST / str(run) / f"{tensor}.npy" for run in runs]
        if all(place.exists() for place in places):
            ranges[tensor] = range_of(graph.tensors[tensor], (np.load(place, allow_pickle=False) for place in places))
    fed = [other.fed(values) for values in request.drawn()]
    for tensor, position in zip(parts.graph_inputs, other.pair.input_order, strict=True):
        partner = other.graph.tensors[other.parts.graph_inputs[position]]
        ranges[tensor] = range_of(graph.tensors[tensor], (partner.real(values[position]) for values in fed))
    known = {tensor: seen for tensor, seen in ranges.items() if seen is not None}
    are_drawn = not any(name in request.options for name in ("input_files", "input_images"))
    return TwoModels(parts, graph, other, side.partners, known, are_drawn)


def _shows_nothing(request: LocateRequest, bench: Bench) -> bool:
    """Whether an output of the other model shows that its inputs are not what it was trained on."""
    for tensor in request.parts.graph_outputs:
        places = [bench.folder / AGAINST / str(run) / f"{tensor}.npy" for run in range(request.num_inputs)]
        if all(place.exists() for place in places) and shows_nothing(list(map(np.load, places))):
            return True
    return False


def _with_causes(row: Row, compared: _Compared, two: TwoModels) -> Row:
    """The row of a layer with causes of what it is off by."""
    if row.texts["status"] != "compared":
        return row
    runs = [compared.runs[tensor] for tensor in two.parts.made_by(index_of(row)) if tensor in compared.runs]
    return replace(row, rows=[*row.rows, *two.of_layer(row, max(runs, key=lambda each: each.relative))])


def _with_tensors(request: LocateRequest, tensors: tuple[int, ...]) -> Part:
    """The whole model in one compile: with copies for a delegate, the tensors themselves on the CPU."""
    model, configuration = request.parts, request.tested
    inside = tuple(tensor for tensor in tensors if tensor not in model.graph_outputs)
    part = Part(0, len(model.operators) - 1, configuration, against=AGAINST)
    return replace(part, taps=inside) if configuration.delegates.requested else replace(part, exposed=inside)


def _keep_others(request: LocateRequest, side: Side, own: Path, other: Path) -> dict[int, float | str]:
    """Keep the other side's numbers of all runs in the shape of each tensor that is looked at; their RMS.

    These are what operators make, what comes before them, and the outputs. Where the sizes differ after all, it is said
    instead.
    """
    model, last = request.parts, max(request.places)
    wanted = [
        tensor for tensor in sorted(side.matched) if model.makers[tensor] <= last or tensor in model.graph_outputs
    ]
    return {tensor: _keep_other(request, side, own, other, tensor) for tensor in wanted}


def _keep_other(request: LocateRequest, side: Side, own: Path, other: Path, tensor: int) -> float | str:
    squares = []
    for run in range(request.num_inputs):
        tested: Array = np.load(own / "values" / str(run) / f"{tensor}.npy", mmap_mode="r", allow_pickle=False)
        values = side.values(other, run, tensor)
        if not fit(values.shape, tested.shape):
            return shaped_otherwise(values.shape)
        place = own / AGAINST / str(run) / f"{tensor}.npy"
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, values.reshape(tested.shape))
        numbers = values.astype(np.float64)
        squares.append(float(np.mean(np.square(numbers[np.isfinite(numbers)]))) if values.size else 0.0)
    return float(np.sqrt(np.mean(squares))) if np.isfinite(squares).all() else 0.0


def _input_errors(request: LocateRequest, side: Side, graph: Graph) -> Mapping[int, float]:
    """How far the inputs of both models are apart, which have different types."""
    other = side.model
    if other is None:
        return {}
    found = dict.fromkeys(request.parts.graph_inputs, 0.0)
    for drawn in request.drawn():
        others = other.fed(drawn)
        for values, tensor, position in zip(other.own(drawn), found, other.pair.input_order, strict=True):
            partner = other.graph.tensors[other.parts.graph_inputs[position]].real(others[position])
            error, reference = difference(graph.tensors[tensor].real(values), partner.reshape(values.shape)).rms
            found[tensor] = max(found[tensor], error / reference if reference else 0.0)
    return found


def _operator(place: int, compared: _Compared, model: CuttableModel) -> Row:
    made = model.made_by(place)
    name, first = model.operators[place], model.name(made[0]) if made else ""
    if place in model.folded:
        return operator_row(place, name, first, "computes from constants")
    known = [compared.runs[tensor] for tensor in made if tensor in compared.runs]
    if not known:
        reason = next((compared.missing[tensor] for tensor in made if tensor in compared.missing), "")
        return operator_row(place, name, first, "not tried", reason)
    runs = max(known, key=lambda each: each.relative)
    row = with_errors(operator_row(place, name, runs.name, "compared"), ACCUMULATED, runs, least_limit(runs, FP32))
    return replace(row, figures={**row.figures, **figures(gain=_gain(runs, place, compared, model))})


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


def _answer(found: Sequence[Row], side: Side, tensors: set[int], causes: Sequence[Row] = ()) -> Answer:
    """What the figures and the first cause say, which is not a suspect: errors add up from layer to layer."""
    total = sum(row.texts["status"] != "computes from constants" for row in found)
    counts = {
        "but for the number at its end": len(side.renumbered & tensors),
        "by their place": len(side.by_place & tensors),
    }
    otherwise = ", ".join(f"{count} of them {how}" for how, count in counts.items() if count)
    compared = [row for row in found if ACCUMULATED in row.figures]
    text = f"{len(compared)} of {total} operators have a tensor of the same name there"
    text += f" ({otherwise})" if otherwise else ""
    seen = _seen(compared, _named)
    short = _seen(compared, lambda row: row.name)[0]
    causes_in_words = [cause.texts["shown_by"] for cause in causes[:1]]
    return Answer(COMPARED_BY_NAME, f"{COMPARED_BY_NAME}: {'; '.join([*causes_in_words, text, *seen])}", short=short)


def _seen(compared: Sequence[Row], named: Callable[[Row], str]) -> list[str]:
    """The first tensor that is no number, and where the error grows."""
    strange = [row for row in compared if is_endless(row, ACCUMULATED)]
    first = [f"the first with NaN or infinity is {named(row)}" for row in strange[:1]]
    errors = [(row.value("gain") or 0.0, row.value(f"{ACCUMULATED}_relative") or 0.0, row) for row in compared]
    grown = sorted(
        (-gain, index_of(row), named(row), relative)
        for gain, relative, row in errors
        if gain >= _GROWS and relative >= _SMALLEST
    )
    listed = ", ".join(
        f"{name} ({-gain:.2g} times, to {100 * relative:.2g} % of its values)"
        for gain, _, name, relative in grown[:_MOST_NAMED]
    )
    return [*first, f"the error grows most at {listed}" if grown else _of_single_layers(compared, named)]


def _of_single_layers(compared: Sequence[Row], named: Callable[[Row], str]) -> str:
    """Where the error does not grow: which layer is far off by itself, with errors as large as it makes itself."""
    worst = next(iter(worst_first(compared)), None)
    error = None if worst is None else worst.value(f"{SINGLE}_relative")
    if worst is None or error is None or error < FAR:
        return "the error grows much at none of them"
    return f"by itself {named(worst)} is furthest off: {decibels(error):.1f} dB"


def _named(row: Row) -> str:
    return f"{row.name} -> {row.texts['tensor']!r}"
