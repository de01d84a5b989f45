"""Which tensors of two models belong together, by their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

NO_SUCH_NAME: Final = "the other model has no tensor of that name"
_SEVERAL: Final = "several tensors have that name"
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


def match(own: Iterable[Candidate], others: Iterable[Candidate]) -> Matches:
    """Match tensors by name, and then those that are left by name without the number at the end.

    Converters make names unique with a number, so that a tensor may be ``x1`` in one model and ``x2`` in another. Such
    a pair needs the same operator and the same sizes, and to be the only one.

    >>> match([Candidate(0, "a"), Candidate(1, "b1")], [Candidate(7, "b2"), Candidate(8, "a")]).partners
    {0: 8, 1: 7}
    """
    own, others = list(own), list(others)
    exact = _unique_pairs(own, others, lambda candidate: (candidate.name,))
    partners = {mine.tensor: other.tensor for mine, other in exact if fit(mine.shape, other.shape)}
    misfits = {
        mine.tensor: f"the tensor of that name has the shape {list(other.shape)} there"
        for mine, other in exact
        if mine.tensor not in partners
    }
    taken = {candidate.tensor for _, candidate in exact}
    left = [candidate for candidate in own if candidate.tensor not in partners and candidate.tensor not in misfits]
    free = [candidate for candidate in others if candidate.tensor not in taken]
    loose = _unique_pairs(left, free, _without_number)
    partners |= {mine.tensor: other.tensor for mine, other in loose}
    known = [candidate.name for candidate in own]
    there = [candidate.name for candidate in others]
    missing = {
        candidate.tensor: misfits.get(candidate.tensor, _why_missing(candidate.name, known, there))
        for candidate in own
        if candidate.tensor not in partners
    }
    return Matches(partners, missing, frozenset(mine.tensor for mine, _ in loose))


def _why_missing(name: str, own: list[str], others: list[str]) -> str:
    if name and name in others and (own.count(name) > 1 or others.count(name) > 1):
        return _SEVERAL
    return NO_SUCH_NAME


def _unique_pairs(
    own: list[Candidate], others: list[Candidate], key: Callable[[Candidate], tuple[object, ...]]
) -> list[tuple[Candidate, Candidate]]:
    """The pairs with the same key that is there once on each side."""
    first, second = _once(own, key), _once(others, key)
    return [(mine, second[each]) for each, mine in first.items() if each in second]


def _once(
    candidates: list[Candidate], key: Callable[[Candidate], tuple[object, ...]]
) -> dict[tuple[object, ...], Candidate]:
    keys = [key(candidate) for candidate in candidates]
    return {
        each: candidate
        for each, candidate in zip(keys, candidates, strict=True)
        if candidate.name and keys.count(each) == 1
    }


def _without_number(candidate: Candidate) -> tuple[object, ...]:
    return _NUMBER.sub("", candidate.name), candidate.operator, _sizes(candidate.shape)


def fit(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes are the same but for sizes of 1; open sizes fit any.

    >>> fit((1, 4, 1), (4,)), fit((2, 3), (3, 2)), fit((-1, 3), (7, 3))
    (True, False, True)
    """
    return -1 in (*shape, *other) or _sizes(shape) == _sizes(other)


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those that count: sizes of 1 do not."""
    return tuple(size for size in shape if size != 1)
