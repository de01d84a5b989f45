"""What the tensors of a model are compared with, by name: those of another model, or arrays saved in a file."""

from __future__ import annotations

import hashlib
import io
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.datasets.input_files import read_arrays
from evaltools.errors import DataError, ModelError
from evaltools.file_content import MODEL_BYTES, Unreadable, content_of
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CuttableModel
from evaltools.model.float_layer import CONVERSIONS
from evaltools.parameter import did_you_mean
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.inputs import fed_as_stated
from evaltools.tasks.inference_diff.model_pair import ModelPair, convert, pair_models
from evaltools.tasks.inference_diff.output_order import names_of

NO_SUCH_NAME: Final = "the other side has no tensor of that name, or several"
_NUMBER: Final = re.compile(r"\d+$")
FLAG: Final = "--reference_tensors"
FLOAT_ROUNDOFF: Final = 2.0**-24
_ROUNDOFF: Final = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "int8": 2.0**-8, "uint8": 2.0**-8, "int4": 2.0**-4}
_MOST_NAMED: Final = 5
_NHWC_OF_NCHW: Final = (0, 2, 3, 1)


class Candidate(Struct, frozen=True):
    """A tensor that an operator computes: its number, its name, the operator, its sizes (-1: open)."""

    tensor: int
    name: str
    operator: str = ""
    shape: tuple[int, ...] = ()


class Matches(Struct, frozen=True):
    """The partner of each tensor, by the numbers of both, and for the others why they have none.

    ``renumbered`` are the tensors whose names agree but for a number at the end.
    """

    partners: Mapping[int, int]
    missing: Mapping[int, str]
    renumbered: frozenset[int] = frozenset()


def match(own: Sequence[Candidate], others: Sequence[Candidate]) -> Matches:
    """Match tensors by name, and then those that are left by name without the number at the end.

    Converters make names unique with a number, so that a tensor may be ``x1`` in one model and ``x2`` in another. Such
    a pair needs the same operator and the same sizes, and to be the only one.

    >>> match([Candidate(0, "a"), Candidate(1, "b1")], [Candidate(7, "b2"), Candidate(8, "a")]).partners
    {0: 8, 1: 7}
    """
    exact = _pairs(own, others, lambda candidate: (candidate.name,))
    missing = {mine.tensor: shaped_otherwise(other.shape) for mine, other in exact if not fit(mine.shape, other.shape)}
    taken, given = {mine.tensor for mine, _ in exact}, {other.tensor for _, other in exact}
    loose = _pairs(
        [each for each in own if each.tensor not in taken],
        [each for each in others if each.tensor not in given],
        lambda each: (_NUMBER.sub("", each.name), each.operator, _sizes(each.shape)),
    )
    partners = {mine.tensor: other.tensor for mine, other in [*exact, *loose] if mine.tensor not in missing}
    missing |= {mine.tensor: NO_SUCH_NAME for mine in own if mine.tensor not in partners | missing}
    return Matches(partners, missing, frozenset(mine.tensor for mine, _ in loose))


def shaped_otherwise(shape: Sequence[int]) -> str:
    """Why a tensor of the same name is not a partner."""
    return f"the tensor of that name has the shape {list(shape)} there"


def _pairs(
    own: Sequence[Candidate], others: Sequence[Candidate], key: Callable[[Candidate], tuple[object, ...]]
) -> list[tuple[Candidate, Candidate]]:
    """The pairs with the same key that is there once on each side."""
    counts = [Counter(map(key, side)) for side in (own, others)]
    there = {key(other): other for other in others if other.name}
    return [
        (mine, there[key(mine)])
        for mine in own
        if mine.name and key(mine) in there and all(count[key(mine)] == 1 for count in counts)
    ]


def fit(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes are the same but for sizes of 1; open sizes fit any.

    >>> fit((1, 4, 1), (4,)), fit((2, 3), (3, 2)), fit((-1, 3), (7, 3))
    (True, False, True)
    """
    return -1 in (*shape, *other) or _sizes(shape) == _sizes(other)


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those that count: sizes of 1 do not."""
    return tuple(size for size in shape if size != 1)


class OtherModel(Struct, frozen=True, eq=False):
    """Another model of the same graph; ``pair`` feeds both with the same inputs."""

    pair: ModelPair
    parts: CuttableModel
    graph: Graph

    def fed(self, values: tuple[Array, ...]) -> list[Array]:
        """The inputs of a run in the order and the types of the other model."""
        return self.pair.reference_side.fed(values)

    def own(self, values: tuple[Array, ...]) -> tuple[Array, ...]:
        """The same in the types of the tested model."""
        return tuple(self.pair.test_side.fed(values))


class SavedArrays(Struct, frozen=True, eq=False):
    """The arrays of a file by name, real numbers, of one run; ``inputs`` are the model's, None where it has none."""

    path: Path
    arrays: Mapping[str, Array]
    inputs: tuple[Array, ...] | None
    unused: str


class Side(Struct, frozen=True, eq=False, kw_only=True):
    """What tensors are compared with: another ``model``, whose tensors are ``partners``, or ``saved`` arrays by name.

    ``missing`` says why tensors have no partner, ``renumbered`` and ``by_place`` which have one of another name: but
    for the number at its end, or the same output of the model, or what is only converted. ``sha256`` is of the file.
    """

    sha256: str
    missing: Mapping[int, str]
    partners: Mapping[int, int] = {}
    renumbered: frozenset[int] = frozenset()
    by_place: frozenset[int] = frozenset()
    model: OtherModel | None = None
    saved: SavedArrays | None = None
    names: Mapping[int, str] = {}

    @property
    def matched(self) -> frozenset[int]:
        """The tested model's tensors that have a partner."""
        return frozenset(self.partners) | frozenset(self.names)

    def values(self, folder: Path, run: int, tensor: int) -> Array:
        """What the partner of a tensor is; those of another model lie in a folder."""
        if self.model is None:
            assert self.saved is not None
            return self.saved.arrays[self.names[tensor]]
        partner = self.partners[tensor]
        stored: Array = np.load(folder / "values" / str(run) / f"{partner}.npy", mmap_mode="r", allow_pickle=False)
        return self.model.graph.tensors[partner].real(stored)

    def rounding(self, tensor: int, rms: float) -> float:
        """One rounding in the other model; none of arrays, of which nobody knows how they were computed."""
        if self.model is None or self.partners[tensor] not in self.model.parts.makers:
            return 0.0
        partner = self.partners[tensor]
        return rounding_of(self.model.graph, self.model.parts.makers[partner], partner, rms)


def rounding_of(graph: Graph, maker: int, tensor: int, rms: float) -> float:
    """The relative error of one rounding of an operator's output and of its constants to how they are stored.

    ``rms`` is the root mean square of the output.
    """
    scale = graph.tensors[tensor].step
    of_output = scale / math.sqrt(12) / rms if scale and rms else FLOAT_ROUNDOFF
    constants = [graph.constant_behind(index) for index in graph.nodes[maker].inputs]
    return max([of_output, *(_ROUNDOFF.get(each.dtype, 0.0) for each in constants if each is not None)])


def computed(parts: CuttableModel, graph: Graph) -> list[Candidate]:
    """The tensors that operators compute from the model's inputs, and that hold numbers; -1 for open sizes."""
    is_open = any(graph.tensors[each].is_dynamic for each in graph.inputs)
    shapes = {
        tensor.index: (-1,) * len(tensor.shape) if is_open else tensor.shape_signature for tensor in graph.tensors
    }
    return [
        Candidate(tensor, parts.name(tensor), name, shapes[tensor])
        for place, name in enumerate(parts.operators)
        if place not in parts.folded
        for tensor in parts.made_by(place)
        if tensor >= 0 and parts.holds_numbers(tensor)
    ]


def other_model(model: ModelFile, parts: CuttableModel, other: ModelFile, options: InputOptions) -> Side:
    """Match two models; raises :class:`ModelError` where they take different inputs, or share no name."""
    pair = fed_as_stated(pair_models(model, other), options)
    others = CuttableModel(pair.reference.read())
    graph = read_contents(pair.reference).main
    found = match(computed(parts, read_contents(model).main), computed(others, graph))
    if not found.partners:
        raise ModelError(
            f"--reference_model_file={other.path} has no tensor with the name of one in {model.path}, so that layers "
            "cannot be distinguished; use two models of one converter, or compare the outputs with evaltools "
            "inference-diff --reference_model_file"
        )
    partners = _with_partners_by_place(pair, parts, others, found.partners)
    return Side(
        sha256=pair.reference.sha256,
        missing={tensor: reason for tensor, reason in found.missing.items() if tensor not in partners},
        partners=partners,
        renumbered=found.renumbered,
        by_place=frozenset(partners.keys() - found.partners.keys()),
        model=OtherModel(pair, others, graph),
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


# ---- Arrays saved from another framework ------------------------------------------------------


def saved_tensors(model: ModelFile, parts: CuttableModel, path: Path) -> Side:
    """Match the ``.npz`` file with the model; raises :class:`DataError` where that fails, and for wrong shapes."""
    arrays, sha256 = _read_arrays(path)
    own = computed(parts, read_contents(model).main)
    counts = Counter(each.name for each in own)
    names = {each.tensor: each.name for each in own if each.name in arrays and counts[each.name] == 1}
    inputs = {name for tensor in model.inputs for name in names_of(tensor)}
    left = [name for name in arrays if name not in {*names.values(), *inputs}]
    if not names:
        known = [each.name for each in own]
        raise DataError(
            f"{FLAG}={path} has no array with the name of a tensor that an operator computes, such as "
            f"{', '.join(map(repr, known[:_MOST_NAMED]))}; save each array under the tensor's name (evaltools locate "
            f"MODEL --output=FILE.json names the tensor of each operator).{did_you_mean((*left, '')[0], known)}"
        )
    shapes = {each.tensor: each.shape for each in own}
    for tensor, name in names.items():
        _require_shape(path, name, arrays[name].shape, shapes[tensor])
    missing = {each.tensor: NO_SUCH_NAME for each in own if each.tensor not in names}
    saved = SavedArrays(path, arrays, _saved_inputs(path, arrays, model.inputs), _unused(path, left))
    return Side(sha256=sha256, missing=missing, saved=saved, names=names)


def _read_arrays(path: Path) -> tuple[Mapping[str, Array], str]:
    """The arrays by name, and the digest of the file; raises :class:`DataError` for what is no ``.npz`` of numbers."""
    try:
        content = content_of(path, MODEL_BYTES)
        if not zipfile.is_zipfile(io.BytesIO(content)):
            raise DataError(f'{FLAG}={path} is no .npz file; save it with numpy.savez(path, **{{"NAME": array}})')
        arrays = read_arrays(content)
    except Unreadable as error:
        raise DataError(f"{FLAG}={path} cannot be read: {error}") from error
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise DataError(f"{FLAG}={path}: {name!r} holds {array.dtype}; save real numbers, as with .numpy()")
    return arrays, hashlib.sha256(content).hexdigest()


def _saved_inputs(path: Path, arrays: Mapping[str, Array], inputs: Sequence[TensorInfo]) -> tuple[Array, ...] | None:
    """The inputs in the model's types, None where the file has none; raises :class:`DataError` for only some."""
    names = [next((name for name in names_of(tensor) if name in arrays), "") for tensor in inputs]
    if not any(names):
        return None
    found = []
    for tensor, name in zip(inputs, names, strict=True):
        if not name:
            raise DataError(
                f"{FLAG}={path} has some of the model's inputs, but not {tensor}; save it under that name, too"
            )
        values = np.ascontiguousarray(arrays[name])
        _require_shape(path, name, values.shape, tensor.shape)
        given = TensorInfo(0, tensor.name, values.dtype.name, tensor.shape, tensor.shape, None, None)
        is_stored = values.dtype.name == tensor.dtype
        found.append(
            values.reshape(tensor.shape) if is_stored else np.ascontiguousarray(convert(values, given, tensor))
        )
    return tuple(found)


def _unused(path: Path, left: Sequence[str]) -> str:
    """A sentence about the names that match nothing, empty where there are none."""
    listed = ", ".join(map(repr, left[:_MOST_NAMED]))
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    text = f"{path.name} has arrays whose names are those of no tensor that an operator computes: {listed}{more}"
    return text if left else ""


def _require_shape(path: Path, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raise :class:`DataError` for an array of another shape; sizes of 1 and open ones do not count."""
    if fit(shape, wanted):
        return
    turned = len(shape) == 4 and tuple(shape[axis] for axis in _NHWC_OF_NCHW) == wanted
    advice = " It looks like NCHW, as PyTorch has it: save .permute(0, 2, 3, 1)" if turned else ""
    raise DataError(
        f"{FLAG}={path}: {name!r} has the shape {list(shape)}, the tensor {list(wanted)}; only sizes of 1 may "
        f"differ.{advice}"
    )
