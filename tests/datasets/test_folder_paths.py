"""Paths of one folder of which only the names are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets.image_folder import FolderPaths, packed_names

PATHS = FolderPaths(Path("val"), [f"{number}.jpg" for number in range(6)])


def test_they_are_a_sequence_of_paths() -> None:
    expected = [Path("val", f"{number}.jpg") for number in range(6)]
    assert list(PATHS) == expected
    assert (len(PATHS), PATHS[0], PATHS[-1]) == (6, expected[0], expected[5])
    assert list(reversed(PATHS)) == expected[::-1]
    assert expected[3] in PATHS
    assert Path("other", "3.jpg") not in PATHS
    assert PATHS.index(expected[4]) == 4
    with pytest.raises(IndexError):
        PATHS[6]


@pytest.mark.parametrize("part", [slice(2), slice(1, None, 2), slice(None, None, -1), slice(9, None)])
def test_a_part_is_one_too(part: slice) -> None:
    found = PATHS[part]
    assert isinstance(found, FolderPaths)
    assert found.names == PATHS.names[part]
    assert found.folder == PATHS.folder
    assert list(found) == list(PATHS)[part]


def test_chosen_ones_stand_in_the_order_asked_for() -> None:
    assert list(PATHS.chosen(iter([5, 0, 0]))) == [PATHS[5], PATHS[0], PATHS[0]]
    assert len(PATHS.chosen([])) == 0


def test_packed_names_are_the_same_whatever_bytes_they_have() -> None:
    names = ["", "a.jpg", "ü.jpg", "\udcff.jpg", "n" * 255]
    packed = packed_names([name.encode("utf-8", "surrogateescape") for name in names])
    assert (list(packed), packed[-2], list(packed[1:3])) == (names, "\udcff.jpg", names[1:3])
    with pytest.raises(IndexError):
        packed[5]
