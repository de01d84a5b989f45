"""How far apart the outputs of two configurations are: each output, the answers in it, the boxes of a detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import ModelError
from evaltools.gates.verdict import MATTERS, Seen
from evaltools.metrics.boxes import BoxAgreement, compare_boxes, detections, stated_count
from evaltools.metrics.difference import Scale, TensorDifference, compare_tensors
from evaltools.metrics.output_difference import (
    KindFigures,
    OutputDifference,
    RunAnswers,
    RunDifference,
    differences_by_run,
    summarise_differences,
)
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.output_kind import Output
from evaltools.tasks.inference_diff.output_kinds import KINDS, SCORES, VALUES, Segmentation, kind_of
from evaltools.tasks.inference_diff.yolo_output import EMPTY_FROM

NATIVE_INPUT_TYPES: Final = ("float32", "int8", "uint8", "int32", "int64", "bool")
NATIVE_OUTPUT_TYPES: Final = ("float32", "int8", "uint8", "int32", "bool")
NATIVE_INVOCATIONS: Final = 3


class KindValues(Struct, frozen=True, eq=False):
    """What is kept of one output of one run to compute the figures of its kind."""

    kind: str
    values: dict[str, npt.NDArray[Any]]


class Difference(Struct, frozen=True, eq=False):
    """One run of one configuration against the reference: every output, and the boxes of a detector.

    ``of_kind`` has what is kept of each output for the figures of its kind, None where it has none.
    """

    tensors: tuple[TensorDifference, ...]
    boxes: BoxAgreement | None
    of_kind: tuple[KindValues | None, ...] = ()


class DiffObservation(Struct, frozen=True, eq=False):
    """What is remembered of one run: the difference (None without a reference), and the outputs of some runs."""

    difference: Difference | None
    outputs: tuple[Array, ...] | None


class DiffSummary(Struct, frozen=True):
    """All runs of one configuration: one entry per output, and the boxes of a detector.

    ``by_run`` has the runs of each output by their number, ``boxes_by_run`` those of the boxes.
    """

    outputs: tuple[OutputDifference, ...]
    boxes_by_run: Mapping[int, BoxAgreement]
    by_run: tuple[Mapping[int, RunDifference], ...]

    @property
    def boxes(self) -> BoxAgreement | None:
        """The boxes of all runs together."""
        return sum(self.boxes_by_run.values(), start=BoxAgreement.nothing()) if self.boxes_by_run else None

    def seen(self, position: int) -> Seen:
        """The difference of one output, as verdicts take it."""
        return Seen(self.by_run[position], self.outputs[position])


class OutputComparison:
    """How the outputs of two sessions are compared; both give them in the order of the model's outputs.

    ``outputs`` and ``reference_outputs`` describe what the two sides give: not the same where they run other models.
    ``forced_kinds`` are those that the user states, by position.
    """

    def __init__(
        self,
        model: ModelFile,
        outputs: Sequence[TensorInfo],
        reference_outputs: Sequence[TensorInfo],
        native: bool = False,
        forced_kinds: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._model = model
        self._outputs = outputs
        self._reference_outputs = reference_outputs
        self._detection = model.detection
        self._native = native
        self._input_shapes = tuple(tensor.shape for tensor in model.inputs)
        self._forced_kinds = forced_kinds

    def compare(self, outputs: Sequence[Array], reference: Sequence[Array]) -> Difference:
        """Compare the outputs of one run with the reference's."""
        shapes = tuple(values.shape for values in outputs)
        tensors, of_kind = [], []
        for position, (test, base) in enumerate(zip(*map(self._existing, (outputs, reference)), strict=True)):
            output = _described(self._outputs[position], test.shape, self._input_shapes, shapes)
            kind = self._kind(position, output)
            found = self._compare_kind(kind, position, (test, base), output)
            zeros = [scale.zero_point if scale else 0 for scale in self._scales(position)]
            if found is not None and EMPTY_FROM in found.values:
                test, base = (
                    _emptied(side, 1, int(found.values[EMPTY_FROM]), zero)
                    for side, zero in zip((test, base), zeros, strict=True)
                )
            tensors.append(self._compare(kind, position, test, base))
            of_kind.append(found)
        return Difference(tuple(tensors), self._boxes(outputs, reference), tuple(of_kind))

    def summarise(self, by_number: Mapping[int, Difference]) -> DiffSummary:
        """The summary of some runs by number, at least one."""
        differences = list(by_number.values())
        outputs, by_run = [], []
        for position, (info, name) in enumerate(zip(self._outputs, _shown_names(self._outputs), strict=True)):
            parts = [difference.tensors[position] for difference in differences]
            is_real = info.is_quantized or self._reference_outputs[position].is_quantized
            figures, answers = self._of_kind(position, differences)
            outputs.append(summarise_differences(name, info.dtype, parts, is_real, self._native, figures, answers))
            by_run.append(dict(zip(by_number, differences_by_run(info.dtype, parts, is_real, answers), strict=True)))
        boxes = {run: entry.boxes for run, entry in by_number.items() if entry.boxes is not None}
        return DiffSummary(tuple(outputs), boxes, tuple(by_run))

    def _kind(self, position: int, output: Output) -> str:
        """The kind of an output; those of a detector are plain values, since boxes are judged instead."""
        if self._detection is not None and self._detection.holds(position):
            return VALUES
        return self._forced_kinds.get(position) or kind_of(output)

    def _existing(self, outputs: Sequence[Array]) -> list[Array]:
        """The outputs with zeros in the slots behind a detector's count, which nobody writes; all of them in native."""
        found, changed = self._detection, list(outputs)
        if found is None or self._native:
            return changed
        count = stated_count(outputs[found.count], outputs[found.scores].size)
        for position in (found.boxes, found.classes, found.scores):
            changed[position] = _emptied(outputs[position], 1, count, 0)
        return changed

    def _compare(self, kind: str, position: int, test: Array, reference: Array) -> TensorDifference:
        as_scores = kind == SCORES or (kind == Segmentation.name and test.shape[-1] > 1 and test.ndim == 4)
        return compare_tensors(test, reference, *self._scales(position), as_scores)

    def _compare_kind(self, name: str, position: int, sides: tuple[Array, Array], output: Output) -> KindValues | None:
        kind, (test, reference) = KINDS.get(name), sides
        if kind is None or test.shape != reference.shape or not test.size or not kind.fits(output):
            return None
        first, second = (
            values if scale is None else scale.real(values)
            for values, scale in zip(sides, self._scales(position), strict=True)
        )
        found = kind.compare(first, second, output)
        return None if found is None else KindValues(kind.name, dict(found))

    def _of_kind(self, position: int, differences: Sequence[Difference]) -> tuple[KindFigures | None, list[RunAnswers]]:
        """The figures of an output's kind over some runs, and the answers of each.

        None where a run has none, for instance because its shape does not fit.
        """
        found = [difference.of_kind[position] for difference in differences if difference.of_kind]
        known = [entry for entry in found if entry is not None]
        kinds = {entry.kind for entry in known}
        if len(known) < len(differences) or len(kinds) != 1:
            return None, []
        kind = KINDS[kinds.pop()]
        return kind.summarise([entry.values for entry in known]), [kind.answers(entry.values) for entry in known]

    def _scales(self, position: int) -> tuple[Scale | None, Scale | None]:
        return _scale(self._outputs[position]), _scale(self._reference_outputs[position])

    def _boxes(self, outputs: Sequence[Array], reference: Sequence[Array]) -> BoxAgreement | None:
        if self._detection is None:
            return None
        found = self._detection
        test, base = (
            detections(side[found.boxes], side[found.classes], side[found.scores], side[found.count])
            for side in (outputs, reference)
        )
        return compare_boxes(test, base, MATTERS)


def describe_outputs(model: ModelFile) -> list[Output]:
    """The facts that decide the kind of each output, as far as the file states its shape."""
    shapes, beside = (tuple(tensor.shape for tensor in tensors) for tensors in (model.inputs, model.outputs))
    return [_described(info, info.shape, shapes, beside) for info in model.outputs]


def _described(
    info: TensorInfo,
    shape: tuple[int, ...],
    input_shapes: tuple[tuple[int, ...], ...],
    beside: tuple[tuple[int, ...], ...],
) -> Output:
    is_real = info.is_quantized or info.dtype.startswith(("float", "bfloat"))
    return Output(info.signature_name or info.name, info.dtype, shape, info.made_by, input_shapes, is_real, beside)


def _emptied(values: Array, axis: int, start: int, zero: int) -> Array:
    """The values with zeros from an index of an axis on."""
    if values.ndim <= axis or start >= values.shape[axis]:
        return values
    changed = values.copy()
    changed[(slice(None),) * axis + (slice(start, None),)] = zero
    return changed


def check_types(model: ModelFile, native: bool) -> None:
    """Raise :class:`ModelError` for types of inputs or outputs that cannot be fed or read."""
    for kind, tensors, natively in (
        ("input", model.inputs, NATIVE_INPUT_TYPES),
        ("output", model.outputs, NATIVE_OUTPUT_TYPES),
    ):
        accepted = natively if native else _SUPPORTED_TYPES
        for tensor in tensors:
            if tensor.dtype not in accepted:
                hint = (
                    "Leave out --compat=native"
                    if native and tensor.dtype in _SUPPORTED_TYPES
                    else ("Cut the model before this tensor, or convert it with another type there")
                )
                raise ModelError(
                    f"{model.path}: the {kind} {tensor} has the type {tensor.dtype}; "
                    f"{'the native tool accepts' if native else 'accepted are'} {', '.join(accepted)}. {hint}"
                )


_SUPPORTED_TYPES: Final = (
    "float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
    "string", "complex64", "complex128",
)  # fmt: skip


def output_names(model: ModelFile) -> list[tuple[str, ...]]:
    """The names that each output goes by: the one that is printed first, then the tensor's, then its number."""
    return [
        (name, *((info.name,) if info.name else ()), str(position))
        for position, (info, name) in enumerate(zip(model.outputs, _shown_names(model.outputs), strict=True))
    ]


def _scale(info: TensorInfo) -> Scale | None:
    if not info.is_quantized or info.scale is None:
        return None
    return Scale(info.scale, info.zero_point or 0)


def _shown_names(outputs: Sequence[TensorInfo]) -> list[str]:
    """A name for each output; those that share one are distinguished by their position."""
    names = [info.signature_name or info.name or "output" for info in outputs]
    return [f"{name} #{position}" if names.count(name) > 1 else name for position, name in enumerate(names)]
