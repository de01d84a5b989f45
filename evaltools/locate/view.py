"""A case as the tests of causes look at it: numbers, the operator with its operands, and repeats on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.configuration import Configuration
from evaltools.errors import EvaltoolsError
from evaltools.model import read_model
from evaltools.model.contents import Graph, GraphTensor, Operation, read_contents
from evaltools.model.cut import editable_model, packed
from evaltools.operators.part import Case
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array
from evaltools.text import steps

Numbers = npt.NDArray[np.float64]

_SAMPLES: Final = 4096
_FEWEST_VALUES: Final = 3
_SHARE_OF_ERROR: Final = 0.25
_SHARE_OF_SPREAD: Final = 0.25
_ROUNDING: Final = 2.0**-21
_CPU: Final = Configuration("CPU", kernels="builtin")


class View:
    """What the tests of causes ask of a case. ``wrong`` has the elements that are further off than the tolerance."""

    def __init__(self, case: Case) -> None:
        self.case: Final = case
        self.operator: Final = case.operator
        self.expected: Final = case.expected
        self.given: Final = case.given
        self.is_whole: Final = case.expected.dtype.kind in "iu"
        self.numbers: Final[Numbers] = case.expected.astype(np.float64)
        self.given_numbers: Final[Numbers] = case.given.astype(np.float64)

    @cached_property
    def error(self) -> Numbers:
        """What was given less what was expected; NaN where one of them is not finite and the other is another."""
        return _error(self.given_numbers, self.numbers)

    @cached_property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Where the error is more than the tolerance."""
        return ~(np.abs(self.error) <= self.case.tolerance)

    @property
    def share_wrong(self) -> str:
        """How many elements are wrong, in words."""
        return count(int(self.wrong.sum()), self.wrong.size)

    @property
    def largest(self) -> float:
        """The largest finite magnitude of what was expected."""
        return _largest(self.numbers)

    @property
    def off_by(self) -> str:
        """The largest error, in words."""
        largest = f"{_largest(self.error):.4g}"
        return steps(largest) if self.case.unit == "steps" else largest

    def explained_by(self, predicted: npt.NDArray[Any], slack: float = 0.0) -> bool:
        """Whether the delegate gave these values: all of them, within the tolerance, or ``slack`` where that is more.

        What is left must be rounding, or small beside the error and beside how far the values differ from each other:
        within a wide tolerance, small values are near to all that makes them small. The wrong values must be of three
        kinds at least: a few equal ones agree with anything.
        """
        if predicted.shape != self.given.shape:
            return False
        values = predicted.astype(np.float64)
        return self._is_near(self.given_numbers, values, slack) and self.has_kinds(values)

    def has_kinds(self, values: Numbers) -> bool:
        """Whether values that were wrong are of three kinds at least, or were to be."""
        places = np.flatnonzero(self.wrong)[:: max(1, int(self.wrong.sum()) // _SAMPLES)]
        return any(np.unique(each.ravel()[places]).size >= _FEWEST_VALUES for each in (values, self.numbers))

    def _is_near(self, one: Numbers, other: Numbers, slack: float) -> bool:
        left = _error(one, other)
        if not self.wrong.any() or np.isnan(left).any():
            return False
        larger = max(_largest(other), _largest(one))
        tolerance = self.case.tolerance * max(1.0, larger / self.largest if self.largest else 1.0)
        rounding = 0.0 if self.is_whole else _ROUNDING * larger
        errors = np.nan_to_num(self.error, nan=np.inf)
        most = float(np.abs(left).max(initial=0.0))
        return (
            most <= max(tolerance, rounding, slack)
            and _rms(left) <= _SHARE_OF_ERROR * _rms(errors)
            and (most <= max(rounding, float(self.is_whole)) or _rms(left) <= _SHARE_OF_SPREAD * _spread(other))
        )

    @cached_property
    def graph(self) -> Graph:
        """Its graph; raises :class:`~evaltools.errors.ModelError`."""
        return read_contents(read_model(self.case.model)).main

    @property
    def output(self) -> GraphTensor:
        """The tensor that was wrong."""
        return self.graph.tensors[self.graph.outputs[self.case.output]]

    @cached_property
    def node(self) -> Operation:
        """The operator that made it."""
        return next(node for node in self.graph.nodes if self.output.index in node.outputs)

    @cached_property
    def operand_tensors(self) -> Sequence[GraphTensor | None]:
        """The tensors that the operator reads, None for one that is left out."""
        return [self.graph.tensor(index) for index in self.node.inputs]

    @cached_property
    def operands(self) -> Sequence[Array | None]:
        """Their values, as they stand there: those that were fed and constants; None for what cannot be known."""
        return [None if tensor is None else self._value(tensor) for tensor in self.operand_tensors]

    def real_operand(self, place: int) -> Numbers | None:
        """An operand in real numbers, None where its values or its quantisation are not known."""
        tensor, values = self.operand_tensors[place], self.operands[place]
        if tensor is None or values is None:
            return None
        scale, zero = quantization(tensor)
        return None if scale is None else (values.astype(np.float64) - zero) * scale

    def fed_to(self, place: int) -> int | None:
        """Which input of the model an operand is, by its place among them."""
        tensor = self.operand_tensors[place]
        return self.graph.inputs.index(tensor.index) if tensor and tensor.index in self.graph.inputs else None

    @cached_property
    def zero_point(self) -> float:
        """What stands for 0 in the output."""
        return quantization(self.output)[1]

    def in_type(self, stored: Numbers) -> Numbers:
        """Rounded and kept within the range where the output holds whole numbers."""
        if not self.is_whole:
            return stored
        return np.clip(np.rint(stored), *self.limits)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest number of the output's type, which holds whole numbers."""
        dtype: Any = self.expected.dtype
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

    def run_on(self, inputs: Sequence[Array]) -> Array | None:
        """What the CPU gives for other inputs; None where it cannot run that."""
        with suppress(EvaltoolsError), closing(open_session(read_model(self.case.model), _CPU)) as session:
            return session.run(list(inputs)).outputs[self.case.output]
        return None

    def with_options(self, **fields: bool) -> Array | None:
        """What the CPU gives where the operator's options have other fields; None where it cannot run that."""
        model = editable_model(read_model(self.case.model).read())
        vars(model.subgraphs[0].operators[self.node.index].builtinOptions).update(fields)
        with TemporaryDirectory() as folder, suppress(EvaltoolsError):
            path = Path(folder) / self.case.model.name
            path.write_bytes(packed(model))
            with closing(open_session(read_model(path), _CPU)) as session:
                return session.run(self.case.inputs).outputs[self.case.output]
        return None

    @cached_property
    def repeats(self) -> bool:
        """Whether the CPU gives again what was expected, so that changed runs show anything."""
        if len(self.case.inputs) != len(self.graph.inputs):
            return False
        again = self.run_on(self.case.inputs)
        if again is None or again.shape != self.expected.shape:
            return False
        return bool(np.all(np.abs(_error(again.astype(np.float64), self.numbers)) <= self.case.tolerance))

    def _value(self, tensor: GraphTensor) -> Array | None:
        if tensor.index in self.graph.inputs:
            place = self.graph.inputs.index(tensor.index)
            return self.case.inputs[place] if place < len(self.case.inputs) else None
        if tensor.constant is None or tensor.dtype in ("string", "resource", "int4") or "type" in tensor.dtype:
            return None
        values = tensor.values(tensor.dtype)
        return values.reshape(tensor.shape) if values.size == np.prod(tensor.shape, dtype=np.int64) else None


def quantization(tensor: GraphTensor) -> tuple[float | None, float]:
    """Scale and zero point; 1 and 0 for floats, no scale where there are several or none for whole numbers.

    >>> quantization(GraphTensor(0, "x", "int8", (2,), (2,), (0.5,), (3,)))
    (0.5, 3.0)
    """
    if tensor.dtype.startswith("float"):
        return 1.0, 0.0
    if len(tensor.scales) == 1 and tensor.scales[0] > 0:
        return float(tensor.scales[0]), float(tensor.zero_points[0] if tensor.zero_points else 0)
    return (None if tensor.scales else 1.0), 0.0


def count(some: int, of: int) -> str:
    """How many of how many.

    >>> count(3, 3), count(2, 1200), count(1, 1)
    ('all 3', '2 of 1200', '1 of 1')
    """
    return f"all {of}" if some == of > 1 else f"{some} of {of}"


def _error(one: Numbers, other: Numbers) -> Numbers:
    """The difference; 0 where both are the same infinity or NaN, and NaN where only one is finite or they differ."""
    if one.shape != other.shape:
        return np.full(other.shape, np.nan)
    finite = np.isfinite(one) & np.isfinite(other)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(invalid="ignore"):
        return np.where(finite, one - other, np.where(same, 0.0, np.nan))


def _largest(values: Numbers) -> float:
    finite = values[np.isfinite(values)]
    return float(np.abs(finite).max(initial=0.0))


def _rms(values: Numbers) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0


def _spread(values: Numbers) -> float:
    """The standard deviation of the finite ones."""
    finite = values[np.isfinite(values)]
    return float(finite.std()) if finite.size else 0.0
