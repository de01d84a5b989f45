"""Finds out which category of the ground truth each class of a detector is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.tasks.coco.result import ClassMappingUsed

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
DENSE_NAME: Final = "dense"
_FEWEST_RIGHT: Final = 5
_CLEARLY_BETTER: Final = 3
_SMALLEST_SHARE: Final = 0.5
_FEWEST_FOR_VOTE: Final = 2
_FEWEST_CLASSES: Final = 2


class ClassMapping(Struct, frozen=True):
    """``category = class + offset``, or ``category = table[class]``; ``name`` as on the command line."""

    name: str
    offset: int = 0
    table: tuple[int, ...] | None = None

    def apply(self, classes: Ints) -> Ints:
        """Category of each class; -1 for a class beyond the table.

        >>> ClassMapping("+1", 1).apply(np.array([0, 4])).tolist()
        [1, 5]
        """
        if self.table is None:
            return classes + self.offset
        known = (classes >= 0) & (classes < len(self.table))
        return np.where(known, np.array((*self.table, -1))[np.where(known, classes, -1)], -1)


def candidates(category_ids: Sequence[int]) -> list[ClassMapping]:
    """The mappings to try, the native one first. One that equals another one on these categories is left out.

    ``+1``: classes count from 0 and category 0 is the background. ``0``: classes are category ids. ``dense``: class k
    is the k-th category that exists (in COCO, where ids have gaps, 80 classes to ids up to 90).
    """
    found = [_offset(1), _offset(0)]
    ids = tuple(sorted(category_ids))
    if ids and ids not in (tuple(range(1, len(ids) + 1)), tuple(range(len(ids)))):
        found.append(ClassMapping(DENSE_NAME, table=ids))
    return found


def stated_mapping(text: str, category_ids: Sequence[int]) -> ClassMapping | None:
    """What ``--class_offset`` states, None for ``auto``; raises :class:`UsageError`."""
    if text == "auto":
        return None
    if text in (DENSE_NAME, "80->90"):
        if not category_ids:
            raise UsageError(f"--class_offset={DENSE_NAME} needs the categories of a ground truth; state a number")
        return ClassMapping(DENSE_NAME, table=tuple(sorted(category_ids)))
    if not re.fullmatch(r"[+-]?[0-9]{1,6}", text):
        raise UsageError(
            f"--class_offset={text}: use auto, {DENSE_NAME}, or the whole number to add to a class (the native tool: 1)"
        )
    return _offset(int(text))


def choose_mapping(
    stated: ClassMapping | None, category_ids: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> tuple[ClassMapping, ClassMappingUsed]:
    """The stated mapping, or the one that fits ``pairs``: (class, category) of detections that lie on an object.

    Without clear evidence the native one. The second value records what was found.
    """
    classes = np.array([pair[0] for pair in pairs], np.int64)
    categories = np.array([pair[1] for pair in pairs], np.int64)
    tried = candidates(category_ids)
    for mapping in (_commonest_offset(classes, categories), stated):
        if mapping is not None and mapping not in tried:
            tried.append(mapping)
    right = {mapping.name: mapping.apply(classes) == categories for mapping in tried}
    agreeing = {name: int(flags.sum()) for name, flags in right.items()}
    votes = _votes(classes, categories) if len(category_ids) > 1 else None
    detected = _clear_winner(tried, right, votes)
    source: Literal["stated", "detected", "default"] = "default"
    chosen = tried[0]
    if stated is not None:
        source, chosen = "stated", stated
    elif detected is not None:
        source, chosen = "detected", detected
    better = detected.name if detected is not None and agreeing[detected.name] > agreeing[chosen.name] else None
    return chosen, ClassMappingUsed(chosen.name, source, len(pairs), agreeing, better)


def _commonest_offset(classes: Ints, categories: Ints) -> ClassMapping | None:
    """The offset that is right for most pairs, whatever its value."""
    if not len(classes):
        return None
    offsets, counts = np.unique(categories - classes, return_counts=True)
    return _offset(int(offsets[counts.argmax()]))


def _offset(number: int) -> ClassMapping:
    return ClassMapping(f"{number:+d}" if number else "0", number)


def _clear_winner(
    tried: Sequence[ClassMapping], right: Mapping[str, Flags], votes: Mapping[int, int] | None
) -> ClassMapping | None:
    """The mapping that is right for most pairs, if it is so for half of them and clearly beats each other one.

    Where two give the same category nothing is told between them: only pairs that one of them alone gets right count.
    With ``votes``, the category that each class lies on mostly, the mapping must fit most of these too, and one that is
    not the native one at least two: in pictures full of people an offset that fits people alone is right most often.
    """
    best = max(tried, key=lambda mapping: int(right[mapping.name].sum()))
    own = right[best.name]
    if own.sum() < max(_FEWEST_RIGHT, _SMALLEST_SHARE * len(own)):
        return None
    if votes is not None:
        categories = np.array([*votes.values()], np.int64)
        fitting = int((best.apply(np.array([*votes], np.int64)) == categories).sum())
        if fitting < _SMALLEST_SHARE * len(votes) or (best != tried[0] and fitting < _FEWEST_CLASSES):
            return None
    for mapping in tried:
        other = right[mapping.name]
        alone, against = int((own & ~other).sum()), int((other & ~own).sum())
        if alone + against and alone < max(_FEWEST_RIGHT, _CLEARLY_BETTER * against):
            return None
    return best


def _votes(classes: Ints, categories: Ints) -> dict[int, int]:
    """For each class with two pairs or more the category that more than half of them have, if there is one."""
    votes = {}
    for number in np.unique(classes).tolist():
        found, counts = np.unique(categories[classes == number], return_counts=True)
        if counts.sum() >= _FEWEST_FOR_VOTE and 2 * counts.max() > counts.sum():
            votes[number] = int(found[counts.argmax()])
    return votes
