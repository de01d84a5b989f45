"""Which category a class is: stated, told from overlapping objects, or the native rule."""

from __future__ import annotations

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.tasks.coco.classes import ClassMapping, candidates, choose_mapping, stated_mapping

GAPS = (1, 2, 5, 90)
DENSE = ClassMapping("dense", table=GAPS)
PLUS_ONE = ClassMapping("+1", 1)
AS_IS = ClassMapping("0", 0)


def pairs(*counted: tuple[int, int, int]) -> list[tuple[int, int]]:
    """``(class, category, how often)``."""
    return [(number, category) for number, category, count in counted for _ in range(count)]


def test_a_table_gives_the_category_and_minus_one_beyond_it() -> None:
    classes = np.array([0, 1, 2, 3, 4, -1, 2**31 - 1])
    assert DENSE.apply(classes).tolist() == [1, 2, 5, 90, -1, -1, -1]
    assert ClassMapping("-2", -2).apply(classes[:3]).tolist() == [-2, -1, 0]
    assert DENSE.apply(classes[:0]).tolist() == []


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        ((), ["+1", "0"]),
        ((1, 2, 3), ["+1", "0"]),
        ((0, 1, 2), ["+1", "0"]),
        ((3, 1, 2), ["+1", "0"]),
        ((2, 3), ["+1", "0", "dense"]),
        (GAPS, ["+1", "0", "dense"]),
    ],
)
def test_a_table_that_is_another_mapping_is_no_candidate(ids: tuple[int, ...], names: list[str]) -> None:
    assert [mapping.name for mapping in candidates(ids)] == names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auto", None),
        ("1", PLUS_ONE),
        ("+1", PLUS_ONE),
        ("0", AS_IS),
        ("-0", AS_IS),
        ("-3", ClassMapping("-3", -3)),
        ("dense", DENSE),
    ],
)
def test_stated_mappings(text: str, expected: ClassMapping | None) -> None:
    assert stated_mapping(text, (90, 5, 2, 1)) == expected


def test_the_table_needs_categories() -> None:
    with pytest.raises(UsageError, match="--class_offset=dense needs the categories of a ground truth"):
        stated_mapping("dense", ())


@pytest.mark.parametrize(
    ("ids", "seen", "name"),
    [
        ((1, 2, 3), pairs((0, 1, 3), (1, 2, 3)), "+1"),
        ((1, 2, 3), pairs((1, 1, 3), (2, 2, 3)), "0"),
        (GAPS, pairs((0, 1, 5), (2, 5, 3), (3, 90, 3)), "dense"),
        (GAPS, pairs((4, 5, 4), (89, 90, 4), (0, 1, 4)), "+1"),
        (GAPS, pairs((5, 5, 4), (90, 90, 4), (1, 1, 4)), "0"),
    ],
)
def test_the_mapping_that_fits_is_told(ids: tuple[int, ...], seen: list[tuple[int, int]], name: str) -> None:
    mapping, used = choose_mapping(None, ids, seen)
    assert (mapping.name, used.name, used.source) == (name, name, "detected")
    assert (used.pairs, used.agreeing[name], used.better) == (len(seen), len(seen), None)


def test_the_native_mapping_is_the_default_without_evidence() -> None:
    mapping, used = choose_mapping(None, GAPS, [])
    assert mapping == PLUS_ONE
    assert (used.source, used.pairs, used.agreeing, used.better) == (
        "default", 0, {"+1": 0, "0": 0, "dense": 0}, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (pairs((2, 2, 2), (3, 3, 2)), False),
        (pairs((2, 2, 3), (3, 3, 2)), True),
        (pairs((2, 2, 8), (3, 3, 3), (1, 2, 4)), False),
        (pairs((2, 2, 9), (3, 3, 3), (1, 2, 4)), True),
        (pairs((2, 2, 8), (3, 3, 4)) + [(7, 100 + number) for number in range(13)], False),
        (pairs((2, 2, 8), (3, 3, 4)) + [(7, 100 + number) for number in range(12)], True),
        (pairs((2, 2, 50)), False),
        (pairs((2, 2, 50), (3, 3, 1)), False),
        (pairs((2, 2, 50), (3, 3, 2), (4, 9, 2), (5, 9, 2)), True),
        (pairs((2, 2, 50), (3, 3, 2), (4, 9, 2), (5, 9, 2), (6, 9, 2)), False),
    ],
    ids=[
        "too few",
        "just enough",
        "not clearly",
        "three to one",
        "wrong too often",
        "half right",
        "one class alone",
        "a second class by chance",
        "half of the classes",
        "less than half of the classes",
    ],
)
def test_nothing_is_told_without_clear_evidence(seen: list[tuple[int, int]], told: bool) -> None:
    mapping, used = choose_mapping(None, (1, 2, 3, 9), seen)
    assert (mapping.name, used.source) == (("0", "detected") if told else ("+1", "default"))


def test_classes_on_which_two_mappings_agree_tell_nothing_between_them() -> None:
    """The class 0 is the category 1 with the table and with +1 alike."""
    alike = pairs((0, 1, 50), (1, 2, 50))
    assert choose_mapping(None, GAPS, alike)[0] == PLUS_ONE
    assert choose_mapping(None, GAPS, alike + pairs((2, 5, 4)))[0] == PLUS_ONE
    assert choose_mapping(None, GAPS, alike + pairs((2, 5, 5)))[0] == DENSE


def test_an_offset_that_nobody_thought_of_is_told_too() -> None:
    mapping, used = choose_mapping(None, (1, 2, 3), pairs((8, 1, 4), (9, 2, 3), (9, 1, 1)))
    assert mapping == ClassMapping("-7", -7)
    assert (used.source, used.agreeing) == ("detected", {"+1": 0, "0": 0, "-7": 7})


def test_a_stated_mapping_stays_and_a_better_one_is_named() -> None:
    seen = pairs((0, 1, 3), (1, 2, 4), (2, 2, 1))
    mapping, used = choose_mapping(AS_IS, (1, 2, 3), seen)
    assert mapping == AS_IS
    assert (used.source, used.agreeing, used.better) == ("stated", {"+1": 7, "0": 1}, "+1")
    assert choose_mapping(PLUS_ONE, (1, 2, 3), seen)[1].better is None


def test_a_stated_mapping_that_is_no_candidate_is_tried_with_the_others() -> None:
    other = ClassMapping("+3", 3)
    mapping, used = choose_mapping(other, (1, 2, 3), pairs((0, 3, 6)))
    assert (mapping, used.agreeing, used.better) == (other, {"+1": 0, "0": 0, "+3": 6}, None)


def test_a_stated_table_without_gaps_is_no_worse_than_plus_one() -> None:
    table = ClassMapping("dense", table=(1, 2, 3))
    mapping, used = choose_mapping(table, (1, 2, 3), pairs((0, 1, 6)))
    assert (mapping, used.source, used.better) == (table, "stated", None)
