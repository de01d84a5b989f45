"""Which tensors of two models belong together, by their names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

NO_SUCH_NAME: Final = "the other side has no tensor of that name, or several"
_NUMBER: Final = re.compile(r"\d+$")


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
