"""Operators of two operands of other shapes: the smaller one repeated in another way than it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Final

import numpy as np

from evaltools.locate.causes.view import Numbers, View
from evaltools.result.locate import Cause

_OPERATORS: Final[dict[str, Callable[[Numbers, Numbers], Numbers]]] = {
    "ADD": np.add,
    "SUB": np.subtract,
    "MUL": np.multiply,
    "DIV": np.divide,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "SQUARED_DIFFERENCE": lambda one, other: np.square(one - other),
}
_LANES: Final = 4
_MOST_DIMENSIONS: Final = 5


def wrong_broadcast(view: View) -> Cause | None:
    """``given = operator(one, other)`` with an operand spread in another way over the output."""
    return _spread_otherwise(view)


def swapped(view: View) -> Cause | None:
    """``given = operator(other, one)``, which differs for SUB and DIV."""
    pair = _pair(view)
    if pair is None:
        return None
    given = _computed(view, pair[1], pair[0])
    if given is None or not view.explained_by(given, 1.0 if view.is_whole else 0.0):
        return None
    return Cause(
        "operands swapped",
        f"all {view.given.size} values are those of {view.operator} with its two operands the other way round",
        f"keep this {view.operator} on the CPU, or write it in another way, as with NEG and ADD",
    )


def _spread_otherwise(view: View) -> Cause | None:
    pair = _pair(view)
    if pair is None:
        return None
    # A rerun in whole numbers may round otherwise than the CPU's kernel by a step.
    slack = 1.0 if view.is_whole else 0.0
    for place in (1, 0):
        if pair[place].size == view.expected.size:
            continue
        usual = np.broadcast_to(pair[place], view.expected.shape)
        for words, spread in spreads(pair[place], view.expected.shape):
            if np.array_equal(spread, usual):
                continue
            given = _computed(view, *((pair[0], spread) if place else (spread, pair[1])))
            if given is not None and view.explained_by(given, slack):
                tensor = view.operand_tensors[place]
                assert tensor is not None
                return Cause(
                    "wrong broadcast",
                    f"all {view.given.size} values are those of {view.operator} with operand {place}, {tensor.name!r} "
                    f"[{','.join(map(str, pair[place].shape))}], {words}; {view.share_wrong} of them are wrong",
                    "give the operand the full shape (BROADCAST_TO, TILE or a larger constant), or put the larger "
                    "operand first",
                    "https://github.com/tensorflow/tensorflow/issues/60043",
                )
    return None


def spreads(operand: Numbers, shape: tuple[int, ...]) -> Iterator[tuple[str, Numbers]]:
    """Ways to spread an operand over a shape, in words and as an array of that shape.

    >>> [(words, spread.tolist()) for words, spread in spreads(np.array([1.0, 2.0]), (2, 2))][:2]
    [('whose first element was taken for all', [[1.0, 1.0], [1.0, 1.0]]),
    ('spread along other dimensions', [[1.0, 1.0], [2.0, 2.0]])]
    """
    size = int(np.prod(shape))
    if operand.size == 0:
        return
    padded = operand.reshape((1,) * (len(shape) - operand.ndim) + operand.shape)
    yield "whose first element was taken for all", np.full(shape, operand.flat[0])
    if len(shape) <= _MOST_DIMENSIONS:
        for order in sorted(set(permutations(padded.shape))):
            if all(mine in (1, full) for mine, full in zip(order, shape, strict=True)) and order != padded.shape:
                yield "spread along other dimensions", np.broadcast_to(padded.reshape(order), shape)
        for order in permutations(range(len(shape))):
            turned = padded.transpose(order)
            if all(mine in (1, full) for mine, full in zip(turned.shape, shape, strict=True)):
                yield "with its dimensions in another order", np.broadcast_to(turned, shape)
    if operand.size > 1:
        for axis in range(len(shape)):
            if padded.shape[axis] > 1:
                yield (
                    f"of which dimension {axis} was left at its first place",
                    np.broadcast_to(padded.take([0], axis=axis), shape),
                )
        yield "repeated in the order of memory", np.resize(operand.ravel(), shape)
        if size % operand.size == 0:
            yield (
                "with each element repeated in the order of memory",
                np.repeat(operand.ravel(), size // operand.size).reshape(shape),
            )
    if shape and shape[-1] > 1 and padded.shape[-1] == 1:
        first_lane = np.arange(shape[-1]) % _LANES == 0
        yield (
            "which stands in the first of each four channels alone, with 0 beside it",
            np.where(first_lane, padded, 0.0) + np.zeros(shape),
        )
        yield (
            "which stands in the first channel alone, with 0 beside it",
            np.where(np.arange(shape[-1]) == 0, padded, 0.0) + np.zeros(shape),
        )


def _pair(view: View) -> tuple[Numbers, Numbers] | None:
    """Both operands in real numbers, where the operator is known and gives what was expected with them."""
    if view.operator not in _OPERATORS or len(view.operands) != 2:
        return None
    one, other = view.real_operand(0), view.real_operand(1)
    if one is None or other is None:
        return None
    try:
        computed = _computed(view, one, other)
    except ValueError:
        return None
    if computed is None or computed.shape != view.expected.shape:
        return None
    limit = max(view.case.tolerance, 1.0 if view.is_whole else 1e-6 * view.largest)
    finite = np.isfinite(view.numbers)
    return (one, other) if np.all(np.abs(computed - view.numbers)[finite] <= limit) else None


def _computed(view: View, one: Numbers, other: Numbers) -> Numbers | None:
    """The operator's output as it is stored, with its activation."""
    with np.errstate(all="ignore"):
        stored = view.as_stored(_OPERATORS[view.operator](one, other))
    return None if stored is None else view.activated(stored, view.activation)
