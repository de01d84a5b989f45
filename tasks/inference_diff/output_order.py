"""Which output of a second model belongs to each output of the first: converters give them in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import UsageError
from evaltools.model import TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.result import MatchedBy, OutputOrder

COMPARED_RUNS: Final = 3
"""Runs whose values distinguish outputs of one shape."""
_CLEARLY: Final = 2.0
"""How many times as far apart outputs must be in another order than in the one that values choose."""
_NEAR: Final = 0.1
"""Relative difference up to which an output is known to be the same one, whatever the others are like."""
_DIFFERENT: Final = 2.0
"""The largest relative difference that two outputs can have."""
_Fits = Callable[[TensorInfo, TensorInfo], bool]


def match_outputs(
    own: Sequence[TensorInfo], others: Sequence[TensorInfo], stated: Mapping[int, int] | None = None
) -> OutputOrder:
    """Match as many outputs: as ``stated``, by signature name, by tensor name, by a shape that only one has.

    Those that are left keep their order, which values may change: see :func:`order_by_values`.
    """
    found = dict(stated or {})
    matched_by: dict[int, MatchedBy] = dict.fromkeys(found, "output_map")
    steps: tuple[tuple[MatchedBy, _Fits], ...] = (
        ("signature name", lambda one, other: one.signature_name == other.signature_name != "" and _fits(one, other)),
        ("tensor name", lambda one, other: bool(names_of(one) & names_of(other)) and _fits(one, other)),
        ("shape", lambda one, other: _class_of(one) == _class_of(other) and _fits(one, other)),
        ("shape", _fits),
    )
    for by, fits in steps:
        for position, partner in _only_pairs(own, others, found, fits).items():
            found[position], matched_by[position] = partner, by
    for position, tensor in enumerate(own):
        if position not in found:
            free = [partner for partner in range(len(others)) if partner not in found.values()]
            found[position] = next((partner for partner in free if _fits(tensor, others[partner])), free[0])
            matched_by[position] = "position"
    places = range(len(own))
    return OutputOrder([found[place] for place in places], [matched_by[place] for place in places])


def names_of(tensor: TensorInfo) -> set[str]:
    """The names by which a tensor may be matched."""
    return {name for name in (tensor.name, tensor.signature_name) if name}


def _only_pairs(
    own: Sequence[TensorInfo], others: Sequence[TensorInfo], found: Mapping[int, int], fits: _Fits
) -> dict[int, int]:
    """Pairs among those that are not ``found``, of which each fits no other."""
    left = [position for position in range(len(own)) if position not in found]
    free = [partner for partner in range(len(others)) if partner not in found.values()]
    fitting = {position: [each for each in free if fits(own[position], others[each])] for position in left}
    taken = [partner for partners in fitting.values() for partner in partners]
    return {
        position: partners[0]
        for position, partners in fitting.items()
        if len(partners) == 1 and taken.count(partners[0]) == 1
    }


def _fits(one: TensorInfo, other: TensorInfo) -> bool:
    """Whether shapes differ only in sizes of 1, and not only one holds texts."""
    return sizes_of(one) == sizes_of(other) and (one.dtype == "string") == (other.dtype == "string")


def sizes_of(tensor: TensorInfo) -> tuple[int, ...]:
    """The shape without sizes of 1."""
    return tuple(size for size in tensor.shape if size != 1)


def _class_of(tensor: TensorInfo) -> str:
    """Real numbers, whole ones, or another type."""
    if tensor.is_quantized or tensor.dtype.startswith(("float", "bfloat")):
        return "real"
    return "whole" if tensor.dtype.startswith(("int", "uint")) else tensor.dtype


def order_by_values(
    order: OutputOrder,
    own: Sequence[TensorInfo],
    others: Sequence[TensorInfo],
    test_runs: Sequence[Sequence[Array]],
    reference_runs: Sequence[Sequence[Array]],
) -> tuple[OutputOrder, float]:
    """The order in which outputs that are matched only by position are least apart, and how far they then are.

    ``others`` and the outputs of some runs of the two are in the order so far. Outputs that are not clearly nearer to
    each other in any order stay matched by position.
    """
    from scipy.optimize import linear_sum_assignment

    positions, matched_by, total = list(order.positions), list(order.matched_by), 0.0
    for group in _of_one_shape(order, own):
        ours = [[_real(run[place], own[place]) for run in test_runs] for place in group]
        theirs = [[_real(run[place], others[place]) for run in reference_runs] for place in group]
        apart = np.array([[_apart(one, other) for other in theirs] for one in ours])
        given = np.arange(len(group))
        chosen = linear_sum_assignment(apart)[1]
        moved = chosen != given
        if apart[given, given][moved].sum() < _CLEARLY * apart[given, chosen][moved].sum():
            chosen = given
        total += float(apart[given, chosen].sum())
        for number, place in enumerate(group):
            positions[place] = order.positions[group[chosen[number]]]
            if _is_known(apart[:, chosen], number):
                matched_by[place] = "values"
    return OutputOrder(positions, matched_by, len(test_runs)), total


def _is_known(apart: npt.NDArray[np.float64], number: int) -> bool:
    """Whether an output is near to its partner, or changing partners with any other takes both clearly farther away."""
    own = np.diagonal(apart)
    changed = apart[number] + apart[:, number]
    farther = changed >= _CLEARLY * (own[number] + own)
    farther[number] = True
    return bool(own[number] <= _NEAR or farther.all())


def _of_one_shape(order: OutputOrder, own: Sequence[TensorInfo]) -> list[list[int]]:
    """The outputs that are matched only by position, those of one shape together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for position in order.open:
        groups.setdefault(sizes_of(own[position]), []).append(position)
    return list(groups.values())


def _real(values: Array, tensor: TensorInfo) -> Array:
    """Real numbers, flat; texts stay what they are."""
    flat = values.reshape(-1)
    if tensor.is_quantized and tensor.scale is not None:
        real: Array = (flat.astype(np.float64) - (tensor.zero_point or 0)) * tensor.scale
        return real
    return flat if flat.dtype.kind in "OSc" else flat.astype(np.float64)


def _apart(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """How far apart two outputs are over some runs: 0 for equal ones, 1 for the size of the larger, at most 2."""
    one, other = np.concatenate(ours), np.concatenate(theirs)
    if one.shape != other.shape or one.dtype.kind in "OS":
        return 0.0 if np.array_equal(one, other) else _DIFFERENT
    finite = np.isfinite(one)
    if not np.array_equal(finite, np.isfinite(other)):
        return _DIFFERENT
    one, other = one[finite], other[finite]
    size = max(float(np.linalg.norm(one)), float(np.linalg.norm(other)))
    return float(np.linalg.norm(one - other)) / size if size else 0.0


def read_output_map(text: str, own: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> dict[int, int]:
    """The pairs of ``--output_map``; raises :class:`UsageError` for those that there are not."""
    found: dict[int, int] = {}
    problem = ""
    for pair in text.split(",") if text else []:
        numbers = [part.strip() for part in pair.split(":")]
        if len(numbers) != 2 or not all(part.isascii() and part.isdigit() for part in numbers):
            problem = f"{pair!r} is not two numbers"
            break
        position, partner = map(int, numbers)
        if position >= len(own) or partner >= len(others):
            problem = f"{pair!r} names an output that there is not"
            break
        if position in found or partner in found.values():
            problem = f"{pair!r} names an output a second time"
            break
        if not _fits(own[position], others[partner]):
            problem = f"{pair!r} joins {own[position]} and {others[partner]}, whose shapes differ"
            break
        found[position] = partner
    if problem:
        raise UsageError(
            f"--output_map={text}: {problem}; use OUTPUT:REFERENCE_OUTPUT,... as in 0:1,1:0. The model has "
            f"{_numbered(own)}; the reference's has {_numbered(others)}"
        )
    return found


def _numbered(tensors: Sequence[TensorInfo]) -> str:
    return ", ".join(f"{number} {tensor}" for number, tensor in enumerate(tensors)) or "none"


def other_order_in_words(order: OutputOrder | None, own: Sequence[str], others: Sequence[str]) -> str:
    """Which outputs the reference's model has at another place, and how that is known; empty without any.

    ``own`` and ``others`` are the names of the outputs of both models.
    """
    moved = [] if order is None else [place for place, partner in enumerate(order.positions) if place != partner]
    if order is None or not others or not moved:
        return ""
    pairs = [
        f"output {place} {own[place]} is compared with its output {order.positions[place]} "
        f"{others[order.positions[place]]}"
        for place in moved
    ]
    by = dict.fromkeys(order.matched_by[place] for place in moved)
    known = " and ".join(
        f"values on {order.runs} runs" if each == "values" else each.replace("output_map", "--output_map")
        for each in by
    )
    return f"the reference's model has its outputs in another order: {'; '.join(pairs)} (matched by {known})"


def open_in_words(order: OutputOrder, own: Sequence[str]) -> str:
    """Which outputs might belong to others, and how to state that; empty without any."""
    if not order.open:
        return ""
    listed = ", ".join(f"{place} ({own[place]})" for place in order.open)
    pairs = ",".join(f"{place}:{order.positions[place]}" for place in order.open)
    seen = f"values on {order.runs} runs do" if order.runs else "nothing else does"
    return (
        f"the order of the outputs {listed} is open: they have one shape and share no name with the reference's, and "
        f"{seen} not distinguish them; they are compared as --output_map={pairs}, which states another order"
    )
