"""Compares two models: matches their tensors, and converts their numbers to the same units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session
from evaltools.runtime.session import Array, TensorSpec
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

    def test_session(self, session: Session) -> Session:
        """A session of the test model that takes ``inputs``."""
        return adapted(session, self.inputs, self.test)

    def reference_session(self, session: Session) -> Session:
        """A session of the reference that takes ``inputs``; its outputs have the test model's order and shapes."""
        return AdaptedSession(
            session, self.inputs, self.reference.inputs, self.input_order, self.test.outputs, self.output_order
        )


def adapted(session: Session, inputs: tuple[TensorInfo, ...], model: ModelFile) -> Session:
    """A session of ``model`` that is given ``inputs``, in the model's order."""
    if inputs == model.inputs:
        return session
    return AdaptedSession(session, inputs, model.inputs, range(len(inputs)), model.outputs)


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


class AdaptedSession:
    """A session that is given other inputs than its model takes, and gives outputs in another order and shape.

    Conversions happen outside of what is timed.
    """

    def __init__(
        self,
        session: Session,
        given: Sequence[TensorInfo],
        wanted: Sequence[TensorInfo],
        input_order: Sequence[int],
        outputs: Sequence[TensorInfo],
        output_order: Sequence[int] | None = None,
    ) -> None:
        self._session = session
        self._given = given
        self._wanted = wanted
        self._input_order = input_order
        self._shapes = [output.shape for output in outputs]
        self._output_order = output_order
        self.facts: Final[RuntimeFacts] = session.facts
        self.delegation: Final[Delegation] = session.delegation
        self.inputs: Final[tuple[TensorSpec, ...]] = session.inputs
        self.outputs: Final[tuple[TensorSpec, ...]] = session.outputs

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Convert the inputs, run, reorder the outputs."""
        converted: list[Array] = [np.empty(0)] * len(self._wanted)
        for values, given, position in zip(inputs, self._given, self._input_order, strict=True):
            converted[position] = convert(values, given, self._wanted[position])
        inference = self._session.run(converted, invocations)
        if self._output_order is None:
            return inference
        outputs = [inference.outputs[position] for position in self._output_order]
        reshaped = tuple(
            output.reshape(shape) if output.size == int(np.prod(shape)) else output
            for output, shape in zip(outputs, self._shapes, strict=True)
        )
        return replace(inference, outputs=reshaped)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


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
