"""Compares two models: matches their tensors, and converts their numbers to the same units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.output_order import match_outputs, names_of, read_output_map, sizes_of
from evaltools.tasks.inference_diff.result import OutputOrder

_MATCHED_BY: Final = {"input": "name", "output": "name, then by shape"}


class ModelPair(Struct, frozen=True):
    """The model under test and the reference's.

    ``inputs`` describes the tensors that are filled, in the order of the test model: of two that belong together, the
    quantised one, since its numbers can be given in real units without loss. ``input_order[i]`` is the position in the
    reference model of what is input ``i`` of the test model; ``order`` says the same of outputs.
    """

    test: ModelFile
    reference: ModelFile
    inputs: tuple[TensorInfo, ...]
    input_order: tuple[int, ...]
    order: OutputOrder

    @property
    def output_order(self) -> tuple[int, ...]:
        """The positions in the reference model of the test model's outputs."""
        return tuple(self.order.positions)

    @property
    def reference_outputs(self) -> tuple[TensorInfo, ...]:
        """The reference's outputs in the order of the test model."""
        return tuple(self.reference.outputs[position] for position in self.output_order)

    @property
    def taking_floats(self) -> ModelPair:
        """The same pair given floats where one of the two takes them, so that both sides see what a user means."""
        given = []
        for own, position in zip(self.test.inputs, self.input_order, strict=True):
            other = self.reference.inputs[position]
            floats = next((each for each in (own, other) if each.dtype.startswith("float")), own)
            given.append(replace(own, dtype=floats.dtype, scale=floats.scale, zero_point=floats.zero_point))
        return replace(self, inputs=tuple(given))

    @property
    def test_side(self) -> Side:
        """The test model."""
        return side_of(self.inputs, self.test)

    @property
    def reference_side(self) -> Side:
        """The reference, whose outputs are read in the order and shapes of the test model."""
        return Side(self.inputs, self.reference.inputs, self.input_order, self.test.outputs, self.output_order)


class Side(Struct, frozen=True):
    """A model that takes other inputs than are ``given``, and whose outputs may have another order and other shapes.

    ``input_order[i]`` is the position among ``wanted``, its inputs, of what is given at ``i``. ``outputs`` are those
    that are to be read, ``output_order[i]`` is the position among its own of what is ``i`` there; None: they are its
    own.
    """

    given: Sequence[TensorInfo]
    wanted: Sequence[TensorInfo]
    input_order: Sequence[int]
    outputs: Sequence[TensorInfo] = ()
    output_order: Sequence[int] | None = None

    def fed(self, inputs: Sequence[Array]) -> list[Array]:
        """The inputs as the model takes them."""
        converted = {
            position: convert(values, given, self.wanted[position])
            for values, given, position in zip(inputs, self.given, self.input_order, strict=True)
        }
        return [converted[position] for position in range(len(self.wanted))]

    def in_order(self, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """The model's outputs as they are to be read."""
        if self.output_order is None:
            return tuple(outputs)
        chosen = [outputs[position] for position in self.output_order]
        return tuple(
            values.reshape(wanted.shape) if values.size == math.prod(wanted.shape) else values
            for values, wanted in zip(chosen, self.outputs, strict=True)
        )


def side_of(inputs: Sequence[TensorInfo], model: ModelFile) -> Side:
    """A model that is given ``inputs``, in its order."""
    return Side(inputs, model.inputs, range(len(inputs)))


def pair_models(test: ModelFile, reference: ModelFile, output_map: str = "") -> ModelPair:
    """Match inputs by name, then by order, and outputs by ``output_map``, name, shape, then by order.

    Sizes that the reference leaves open become those of the test's inputs. Raises :class:`ModelError` where tensors do
    not fit, and :class:`UsageError` for an ``output_map`` that does not.
    """
    _require_as_many(test, test.inputs, reference, reference.inputs, "input")
    _require_as_many(test, test.outputs, reference, reference.outputs, "output")
    input_order = match_by_name(*([names_of(tensor) for tensor in model.inputs] for model in (test, reference)))
    stated = read_output_map(output_map, test.outputs, reference.outputs)
    order = match_outputs(test.outputs, reference.outputs, stated)
    pairs = zip(test.inputs, input_order, strict=True)
    reference = reference.with_input_shapes(
        {position: _filled(reference.inputs[position], own) for own, position in pairs}
    )
    for what, tensors, others, partners in (
        ("input", test.inputs, reference.inputs, input_order),
        ("output", test.outputs, reference.outputs, tuple(order.positions)),
    ):
        for tensor, position in zip(tensors, partners, strict=True):
            _require_fitting(test, tensor, reference, others[position], what)
    inputs = []
    for own, position in zip(test.inputs, input_order, strict=True):
        other = reference.inputs[position]
        quantised_elsewhere = other.is_quantized and own.dtype.startswith("float")
        inputs.append(replace(own, dtype=other.dtype, scale=other.scale, zero_point=other.zero_point)
                      if quantised_elsewhere else own)  # fmt: skip
    return ModelPair(test, reference, tuple(inputs), input_order, order)


def _require_as_many(
    test: ModelFile, own: Sequence[TensorInfo], reference: ModelFile, others: Sequence[TensorInfo], what: str
) -> None:
    if len(own) != len(others):
        raise ModelError(
            f"{test.path} has {len(own)} {what}s ({_listed(own)}), {reference.path} has {len(others)} "
            f"({_listed(others)}); models that are compared need as many"
        )


def match_by_name(own: Sequence[set[str]], others: Sequence[set[str]]) -> tuple[int, ...]:
    """For each of ``own`` its partner among as many others: the one that shares a name, else the next one left.

    >>> match_by_name([{"a"}, {"x"}, {"b"}], [{"b"}, {"a"}, {"y"}])
    (1, 2, 0)
    """
    free = list(range(len(others)))
    matched: dict[int, int] = {}
    for position, names in enumerate(own):
        same = [candidate for candidate in free if names & others[candidate]]
        if len(same) == 1:
            matched[position] = same[0]
            free.remove(same[0])
    for position in range(len(own)):
        if position not in matched:
            matched[position] = free.pop(0)
    return tuple(matched[position] for position in range(len(own)))


def _filled(open_shape: TensorInfo, other: TensorInfo) -> tuple[int, ...]:
    """A shape whose open sizes are those of the other tensor, if that has as many."""
    stated = open_shape.shape_signature
    if -1 not in stated or len(other.shape) != len(stated):
        return open_shape.shape
    return tuple(size if own == -1 else own for own, size in zip(stated, other.shape, strict=True))


def _require_fitting(test: ModelFile, own: TensorInfo, reference: ModelFile, other: TensorInfo, what: str) -> None:
    text = "string" in (own.dtype, other.dtype) and own.dtype != other.dtype
    if text or sizes_of(own) != sizes_of(other):
        raise ModelError(
            f"the {what} {own} of {test.path} does not fit the {what} {other} of {reference.path}: shapes may differ "
            f"only in sizes of 1. {what.capitalize()}s are matched by {_MATCHED_BY[what]}, then by order; use "
            "--signature, or convert one of the models so that names and shapes agree"
        )


def _listed(tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(map(str, tensors)) or "none"


def convert(values: Array, given: TensorInfo, wanted: TensorInfo) -> Array:
    """The same real numbers as another type, quantisation and shape (sizes of 1 apart).

    Quantised numbers are rounded to nearest and cut to the type's range.
    """
    shaped = values.reshape(wanted.shape)
    if (given.dtype, given.scale, given.zero_point) == (wanted.dtype, wanted.scale, wanted.zero_point):
        return shaped
    real = shaped.astype(np.float64)
    if given.is_quantized and given.scale is not None:
        real = (real - (given.zero_point or 0)) * given.scale
    dtype = np.dtype(wanted.dtype)
    if wanted.is_quantized and wanted.scale is not None:
        real = np.rint(real / wanted.scale) + (wanted.zero_point or 0)
    elif dtype.kind in "iu":
        real = np.rint(real)
    if dtype.kind in "iu":
        limits = np.iinfo(wanted.dtype)
        real = np.clip(real, limits.min, limits.max)
    converted: Array = real.astype(dtype)
    return converted
