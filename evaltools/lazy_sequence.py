"""A sequence whose members are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

Made = TypeVar("Made", covariant=True)


class LazySequence(Sequence[Made]):
    """What ``make`` gives for each of some numbers, at every look anew: nothing is kept, as there may be a million.

    >>> squares = LazySequence(range(5), lambda number: number**2)
    >>> squares[3], len(squares), list(squares[::2])
    (9, 5, [0, 4, 16])
    """

    def __init__(self, numbers: Sequence[int], make: Callable[[int], Made]) -> None:
        self._numbers = numbers
        self._make = make

    @overload
    def __getitem__(self, place: int) -> Made: ...
    @overload
    def __getitem__(self, place: slice) -> LazySequence[Made]: ...
    def __getitem__(self, place: int | slice) -> Made | LazySequence[Made]:
        if isinstance(place, slice):
            return LazySequence(self._numbers[place], self._make)
        return self._make(self._numbers[place])

    def __len__(self) -> int:
        return len(self._numbers)
