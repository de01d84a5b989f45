"""The other side of a comparison by name: another model, or tensors that were saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.locate.by_name.growth import rounding_of
from evaltools.locate.by_name.match import NO_SUCH_NAME, Candidate, Matches, match
from evaltools.locate.by_name.saved import SavedFile, partners
from evaltools.model import ModelFile
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CuttableModel
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.model_pair import ModelPair, convert, pair_models


class Side(Protocol):
    """The values that the tested model's tensors are held against.

    ``matched`` are the tested model's tensors that have such values, ``missing`` says why others have none.
    ``sha256`` is of the file that they come from.
    """

    @property
    def matched(self) -> frozenset[int]:
        """The tensors of the tested model that have a partner."""

    @property
    def missing(self) -> Mapping[int, str]:
        """Why the others have none."""

    @property
    def renumbered(self) -> frozenset[int]:
        """Those matched without the number at the end of their names."""

    @property
    def sha256(self) -> str:
        """The digest of the file."""

    def values(self, folder: Path, run: int, tensor: int) -> Array:
        """The real numbers of the partner; ``folder`` is where the other model's tensors were kept."""

    def rounding(self, tensor: int, rms: float) -> float:
        """The relative error of one rounding to how the other side stores the tensor and what makes it."""


class OtherModel(Struct, frozen=True, eq=False):
    """Another model of the same graph; ``pair`` feeds both with the same inputs."""

    pair: ModelPair
    parts: CuttableModel
    graph: Graph
    matches: Matches

    @property
    def matched(self) -> frozenset[int]:
        """The tensors of the tested model that have a partner."""
        return frozenset(self.matches.partners)

    @property
    def missing(self) -> Mapping[int, str]:
        """Why the others have none."""
        return self.matches.missing

    @property
    def renumbered(self) -> frozenset[int]:
        """Those matched without the number at the end of their names."""
        return self.matches.renumbered

    @property
    def sha256(self) -> str:
        """The digest of the other model."""
        return self.pair.reference.sha256

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
        partner = self.matches.partners[tensor]
        stored: Array = np.load(folder / "values" / str(run) / f"{partner}.npy", mmap_mode="r", allow_pickle=False)
        return self.graph.tensors[partner].real(stored)

    def rounding(self, tensor: int, rms: float) -> float:
        """One rounding in the other model."""
        partner = self.matches.partners[tensor]
        return rounding_of(self.graph, self.parts.makers[partner], partner, rms)


class SavedTensors(Struct, frozen=True, eq=False):
    """Tensors in a file, of one run: ``names`` of arrays by the numbers of tensors."""

    file: SavedFile
    names: Mapping[int, str]
    missing: Mapping[int, str]
    renumbered: frozenset[int] = frozenset()

    @property
    def matched(self) -> frozenset[int]:
        """The tensors of the tested model that have a partner."""
        return frozenset(self.names)

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return self.file.sha256

    def values(self, folder: Path, run: int, tensor: int) -> Array:
        """The array of that name, which is the same in every run."""
        del folder, run
        return self.file.arrays[self.names[tensor]]

    def rounding(self, tensor: int, rms: float) -> float:
        """None: how the numbers were computed is not known."""
        del tensor, rms
        return 0.0


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
    return OtherModel(pair, other_parts, graph, found)


def saved_tensors(model: ModelFile, parts: CuttableModel, file: SavedFile) -> SavedTensors:
    """Match a file with the model; raises :class:`~evaltools.errors.DataError` where that fails."""
    own = computed(parts, read_contents(model).main)
    names = partners(file, own, model.inputs)
    missing = {
        candidate.tensor: NO_SUCH_NAME.replace("model", "side") for candidate in own if candidate.tensor not in names
    }
    return SavedTensors(file, names, missing)


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
