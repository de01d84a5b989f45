"""Finds out which category of the ground truth each class of a detector is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.tasks.coco.objects import Found
from evaltools.tasks.coco.result import ClassMappingUsed, MappingSource, describe_mapping
from evaltools.tasks.coco.truth import Truth, lying_on

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
DENSE_NAME: Final = "dense"
_FEWEST_RIGHT: Final = 5
_CLEARLY_BETTER: Final = 3
_SMALLEST_SHARE: Final = 0.5
_FEWEST_FOR_VOTE: Final = 2
_FEWEST_CLASSES: Final = 2
CONFIDENT: Final = 0.25
"""The score from which a detection votes: below it a raw head gives more boxes of wrong classes than of right ones."""


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
    dense = _dense(category_ids)
    return found if dense in found else [*found, dense]


def mapping_of_head(classes: int, category_ids: Sequence[int]) -> ClassMapping | None:
    """What the raw head of a YOLO means by a class: the k-th category. None where there are more or fewer of them.

    >>> mapping_of_head(80, range(1, 91)) is None, mapping_of_head(3, [1, 2, 3]), mapping_of_head(2, [7, 9]).table
    (True, ClassMapping(name='+1', offset=1, table=None), (7, 9))
    """
    return _dense(category_ids) if classes and classes == len(category_ids) else None


def _dense(category_ids: Sequence[int]) -> ClassMapping:
    """Class k is the k-th category; as an offset where ids have no gaps."""
    ids = tuple(sorted(category_ids))
    for offset in (1, 0):
        if ids == tuple(range(offset, len(ids) + offset)):
            return _offset(offset)
    return ClassMapping(DENSE_NAME, table=ids)


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
    stated: ClassMapping | None,
    category_ids: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    of_head: ClassMapping | None = None,
    shown: ClassMapping | None = None,
) -> tuple[ClassMapping, ClassMappingUsed]:
    """The stated mapping, that of a raw head, or the one that fits ``pairs``.

    These are (class, category) of detections that lie on an object. Where they leave it open, it is the one that the
    first pictures have ``shown``, else the native one. The second value records what was found.
    """
    classes = np.array([pair[0] for pair in pairs], np.int64)
    categories = np.array([pair[1] for pair in pairs], np.int64)
    tried = candidates(category_ids)
    for mapping in (_commonest_offset(classes, categories), of_head, stated):
        if mapping is not None and mapping not in tried:
            tried.append(mapping)
    right = {mapping.name: mapping.apply(classes) == categories for mapping in tried}
    agreeing = {name: int(flags.sum()) for name, flags in right.items()}
    votes = _votes(classes, categories) if len(category_ids) > 1 else None
    detected = _clear_winner(tried, right, votes)
    source: MappingSource = "default"
    chosen = tried[0]
    if stated is not None:
        source, chosen = "stated", stated
    elif of_head is not None:
        source, chosen = "decoder", of_head
    elif detected is not None or shown is not None:
        source, chosen = "detected", detected or shown or chosen
    better = detected.name if detected is not None and agreeing[detected.name] > agreeing[chosen.name] else None
    return chosen, ClassMappingUsed(chosen.name, source, len(pairs), agreeing, better)


def class_pairs(found: Found, truth: Truth) -> tuple[list[tuple[int, int]], int]:
    """The class of each confident detection that lies on an object, with the object's category.

    Beside them how many detections on an object have too low a score to vote.
    """
    pairs: list[tuple[int, int]] = []
    doubtful = 0
    for example, objects in found.items():
        on_object, categories = lying_on(objects.boxes, truth.native[example])
        sure = on_object & (objects.scores >= CONFIDENT)
        doubtful += int(on_object.sum() - sure.sum())
        pairs += zip(objects.classes[sure].tolist(), categories[sure].tolist(), strict=True)
    return pairs, doubtful


def undecided(used: ClassMappingUsed, pictures: int, doubtful: int, findings: Sequence[str]) -> UsageError:
    """What to state where the first pictures leave the category of a class open.

    ``doubtful`` detections on an object have a score below that of those which vote; ``findings`` are signs that the
    outputs are read in a wrong way.
    """
    counts = ", ".join(f"{describe_mapping(name)} fits {count}" for name, count in used.agreeing.items())
    more = f" (and {doubtful} with a lower one)" if doubtful else ""
    values = ", ".join(f"--class_offset={name}" for name in used.agreeing)
    return UsageError(
        f"it is open which category a class of the model is: of {used.pairs} detections on an object with a score "
        f"of {CONFIDENT:g} or more{more} in the first {pictures} pictures, {counts}.\n"
        f"  Fix: state it, as the model was trained: {values}"
        + "".join(f"\n  The outputs may be at fault: {finding}" for finding in findings)
    )


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

    Where two give the same category nothing is said between them: only pairs that just one of them gets
    right count. With ``votes``, the category that each class lies on mostly, the mapping must fit most of these too,
    and one that is not the native one at least two: in pictures full of people an offset that fits only people is right
    most often.
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
        ours, against = int((own & ~other).sum()), int((other & ~own).sum())
        if ours + against and ours < max(_FEWEST_RIGHT, _CLEARLY_BETTER * against):
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
