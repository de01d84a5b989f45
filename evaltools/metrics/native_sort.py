"""The order in which ``std::sort`` of the GNU C++ library leaves elements of which some compare equal.

The sort is not stable, and quantised detectors give many equal scores, so the order decides digits of a native average
precision. The algorithm is introsort: quicksort by the median of three down to runs of 16, heapsort where that goes too
deep, one insertion sort at the end. Other C++ libraries order equal elements in other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_SHORT: Final = 16

Item = tuple[float, int]
"""A score and the place that it had."""


def order_by_score(scores: Sequence[float]) -> list[int]:
    """Indices of ``scores`` (no NaN) from the highest to the lowest; lists of up to 16 are sorted stably.

    >>> order_by_score([0.5, 0.9, 0.5])
    [1, 0, 2]
    """
    items = [(score, index) for index, score in enumerate(scores)]
    if len(items) > _SHORT:
        depth = 2 * (len(items).bit_length() - 1)
        _quicksort(items, 0, len(items), depth)
    _insertion_sort(items)
    return [index for _, index in items]


def _quicksort(items: list[Item], first: int, last: int, depth: int) -> None:
    while last - first > _SHORT:
        if depth == 0:
            items[first:last] = _heapsort(items[first:last])
            return
        depth -= 1
        _median_to_first(items, first, first + 1, first + (last - first) // 2, last - 1)
        cut = _partition(items, first + 1, last, items[first][0])
        _quicksort(items, cut, last, depth)
        last = cut


def _median_to_first(items: list[Item], first: int, one: int, two: int, three: int) -> None:
    low, middle, high = items[one][0], items[two][0], items[three][0]
    if low > middle:
        chosen = two if middle > high else three if low > high else one
    else:
        chosen = one if low > high else three if middle > high else two
    items[first], items[chosen] = items[chosen], items[first]


def _partition(items: list[Item], first: int, last: int, pivot: float) -> int:
    while True:
        while items[first][0] > pivot:
            first += 1
        last -= 1
        while pivot > items[last][0]:
            last -= 1
        if first >= last:
            return first
        items[first], items[last] = items[last], items[first]
        first += 1


def _insertion_sort(items: list[Item]) -> None:
    for place in range(1, len(items)):
        item = items[place]
        hole = place
        while hole and item[0] > items[hole - 1][0]:
            items[hole] = items[hole - 1]
            hole -= 1
        items[hole] = item


def _heapsort(items: list[Item]) -> list[Item]:
    length = len(items)
    for parent in range((length - 2) // 2, -1, -1):
        _sift(items, parent, length, items[parent])
    for end in range(length - 1, 0, -1):
        item = items[end]
        items[end] = items[0]
        _sift(items, 0, end, item)
    return items


def _sift(items: list[Item], top: int, length: int, item: Item) -> None:
    """Move the hole at ``top`` down to a leaf, then ``item`` up from there to its place."""
    hole = child = top
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if items[child][0] > items[child - 1][0]:
            child -= 1
        items[hole] = items[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        items[hole] = items[child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and items[parent][0] > item[0]:
        items[hole] = items[parent]
        hole = parent
        parent = (hole - 1) // 2
    items[hole] = item
