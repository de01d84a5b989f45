"""The other side of a comparison by name: another model, or tensors that were saved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.errors import DataError, ModelError
from evaltools.locate.by_name.match import NO_SUCH_NAME, Candidate, match
from evaltools.locate.by_name.saved import FLAG, MOST_NAMED, SavedFile, require_shape
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.contents import Graph, GraphTensor, read_contents
from evaltools.model.cut import CuttableModel
from evaltools.model.float_layer import CONVERSIONS, stored_constant
from evaltools.parameter import did_you_mean
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.model_pair import ModelPair, convert, pair_models
from evaltools.tasks.inference_diff.output_order import names_of

FLOAT_ROUNDOFF: Final = 2.0**-24
_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int8": 2.0**-8, "uint8": 2.0**-8, "int4": 2.0**-4}


class _Matched(Struct, frozen=True, eq=False, kw_only=True):
    """What is the same of either side.

    ``matched`` are the tested model's tensors that have a partner, ``renumbered`` those of them matched without the
    number at the end of their names. ``missing`` says why others have none. ``sha256`` is of the other file.
    """

    matched: frozenset[int]
    missing: Mapping[int, str]
    renumbered: frozenset[int]
    sha256: str


class OtherModel(_Matched, frozen=True, eq=False, kw_only=True):
    """Another model of the same graph; ``pair`` feeds both with the same inputs, ``partners`` are its tensors.

    ``by_place`` are tensors with a partner of another name: the same output of the model, or what is only converted.
    """

    pair: ModelPair
    parts: CuttableModel
    graph: Graph
    partners: Mapping[int, int]
    by_place: frozenset[int]

    def fed(self, values: tuple[Array, ...]) -> list[Array]:
        """The inputs of a run in the order and the types of the other model."""
        order, wanted = self.pair.input_order, self.pair.reference.inputs
        converted = {
            position: convert(each, given, wanted[position])
            for each, given, position in zip(values, self.pair.inputs, order, strict=True)
        }
        return [converted[position] for position in range(len(wanted))]

    def own(self, values: tuple[Array, ...]) -> tuple[Array, ...]:
        """The same in the types of the tested model."""
        triples = zip(values, self.pair.inputs, self.pair.test.inputs, strict=True)
        return tuple(convert(each, given, wanted) for each, given, wanted in triples)

    def values(self, folder: Path, run: int, tensor: int) -> Array:
        """What the other model's tensor was."""
        partner = self.partners[tensor]
        stored: Array = np.load(folder / "values" / str(run) / f"{partner}.npy", mmap_mode="r", allow_pickle=False)
        return self.graph.tensors[partner].real(stored)

    def rounding(self, tensor: int, rms: float) -> float:
        """One rounding in the other model."""
        partner = self.partners[tensor]
        maker = self.parts.makers.get(partner)
        return 0.0 if maker is None else rounding_of(self.graph, maker, partner, rms)


class SavedTensors(_Matched, frozen=True, eq=False, kw_only=True):
    """Tensors in a file, of one run: ``names`` of arrays by the numbers of tensors."""

    file: SavedFile
    names: Mapping[int, str]

    def values(self, folder: Path, run: int, tensor: int) -> Array:
        """The array of that name, which is the same in every run."""
        del folder, run
        return self.file.arrays[self.names[tensor]]

    def rounding(self, tensor: int, rms: float) -> float:
        """None: how the numbers were computed is not known."""
        del tensor, rms
        return 0.0


Side = OtherModel | SavedTensors


def other_model(model: ModelFile, parts: CuttableModel, other: ModelFile) -> OtherModel:
    """Match two models; raises :class:`ModelError` where they take different inputs, or share no name."""
    pair = pair_models(model, other)
    other_parts = CuttableModel(pair.reference.read())
    graph = read_contents(pair.reference).main
    own = computed(parts, read_contents(model).main)
    found = match(own, computed(other_parts, graph))
    if not found.partners:
        raise ModelError(
            f"--reference_model_file={other.path} has no tensor with the name of one in {model.path}, so that layers "
            "cannot be told apart; use two models of one converter, or compare the outputs with evaltools "
            "inference-diff --reference_model_file"
        )
    partners = _with_partners_by_place(pair, parts, other_parts, found.partners)
    by_place = frozenset(partners.keys() - found.partners.keys())
    return OtherModel(
        pair=pair,
        parts=other_parts,
        graph=graph,
        partners=partners,
        by_place=by_place,
        matched=frozenset(partners),
        missing={tensor: reason for tensor, reason in found.missing.items() if tensor not in by_place},
        renumbered=found.renumbered,
        sha256=pair.reference.sha256,
    )


def _with_partners_by_place(
    pair: ModelPair, parts: CuttableModel, others: CuttableModel, by_name: Mapping[int, int]
) -> dict[int, int]:
    """The same with the models' outputs, and with what is another tensor in another type: its partner is that one's."""
    inputs = zip(parts.graph_inputs, (others.graph_inputs[position] for position in pair.input_order), strict=True)
    outputs = zip(parts.graph_outputs, (others.graph_outputs[position] for position in pair.output_order), strict=True)
    found = {**dict(inputs), **dict(outputs), **by_name}
    for place, operator in enumerate(parts.operators):
        tensors = (*parts.fed_to(place), *parts.made_by(place))
        if operator in CONVERSIONS and len(tensors) == 2 and place not in parts.folded:
            partner = found.get(tensors[0], found.get(tensors[1]))
            if partner is not None:
                found |= dict.fromkeys([tensor for tensor in tensors if tensor not in found], partner)
    return {tensor: partner for tensor, partner in found.items() if tensor in parts.makers}


def saved_tensors(model: ModelFile, parts: CuttableModel, file: SavedFile) -> SavedTensors:
    """Match a file with the model; raises :class:`~evaltools.errors.DataError` where that fails."""
    own = computed(parts, read_contents(model).main)
    names = _partners(file, own, model.inputs)
    missing = {
        candidate.tensor: NO_SUCH_NAME.replace("model", "side") for candidate in own if candidate.tensor not in names
    }
    return SavedTensors(
        file=file,
        names=names,
        matched=frozenset(names),
        missing=missing,
        renumbered=frozenset(),
        sha256=file.sha256,
    )


def computed(parts: CuttableModel, graph: Graph) -> list[Candidate]:
    """The tensors that operators compute from the model's inputs, and that hold numbers."""
    return [
        Candidate(tensor, parts.name(tensor), name, _shape(graph, tensor))
        for place, name in enumerate(parts.operators)
        if place not in parts.folded
        for tensor in parts.made_by(place)
        if tensor >= 0 and parts.holds_numbers(tensor)
    ]


def _shape(graph: Graph, tensor: int) -> tuple[int, ...]:
    """The sizes that the file states, with -1 where a run may have others."""
    found = graph.tensors[tensor]
    is_open = any(graph.tensors[each].is_dynamic for each in graph.inputs)
    return (-1,) * len(found.shape) if is_open else found.shape_signature


def _partners(saved: SavedFile, computed: Iterable[Candidate], inputs: Sequence[TensorInfo]) -> dict[int, str]:
    """The array of each tensor, by number and name; raises :class:`DataError` where none fits, and for wrong shapes."""
    names = [candidate.name for candidate in computed]
    found = {
        candidate.tensor: candidate.name
        for candidate in computed
        if candidate.name in saved.arrays and names.count(candidate.name) == 1
    }
    if not found:
        raise DataError(_nothing_fits(saved, names, inputs))
    shapes = {candidate.tensor: candidate.shape for candidate in computed}
    for tensor, name in found.items():
        require_shape(saved, name, shapes[tensor])
    return found


def _nothing_fits(saved: SavedFile, names: Sequence[str], inputs: Sequence[TensorInfo]) -> str:
    known = {name for tensor in inputs for name in names_of(tensor)}
    strange = next((name for name in saved.arrays if name not in known), "")
    return (
        f"{FLAG}={saved.path} has no array with the name of a tensor that an operator computes, such as "
        f"{', '.join(map(repr, names[:MOST_NAMED]))}; save each array under the tensor's name "
        f"(evaltools locate MODEL --output=FILE.json names the tensor of each operator).{did_you_mean(strange, names)}"
    )


def rounding_of(graph: Graph, maker: int, tensor: int, rms: float) -> float:
    """The relative error of one rounding of an operator's output and of its constants to how they are stored.

    ``rms`` is the root mean square of the output.
    """
    scale = graph.tensors[tensor].step
    of_output = scale / math.sqrt(12) / rms if scale and rms else FLOAT_ROUNDOFF
    stored = _constants(graph, maker)
    return max([of_output, *(_ROUNDOFF.get(each.dtype, 0.0) for each in stored)])


def _constants(graph: Graph, place: int) -> list[GraphTensor]:
    """The constants of an operator, also those that a DEQUANTIZE hands to it."""
    found = [stored_constant(graph, index) for index in graph.nodes[place].inputs]
    return [tensor for tensor in found if tensor is not None]
