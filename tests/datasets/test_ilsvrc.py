"""The ILSVRC2012 development kit, from small files that SciPy writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from evaltools.datasets.ilsvrc import (
    Synset,
    read_synsets,
    read_validation_ids,
    validation_labels,
)
from evaltools.errors import DataError

SYNSETS = (
    Synset(1, "n02119789", "kit fox, Vulpes macrotis"),
    Synset(2, "n02012849", "crane"),
    Synset(3, "n03126707", "crane"),
    Synset(1860, "n00001740", "entity, thing"),
)


def struct_array(synsets: tuple[Synset, ...] = SYNSETS, **changed: object) -> Any:
    """As the kit has it: one struct per synset, fields of any type."""
    table = np.zeros((len(synsets), 1), dtype=[(name, object) for name in ("ILSVRC2012_ID", "WNID", "words", "gloss")])
    for row, synset in zip(table[:, 0], synsets, strict=True):
        row["ILSVRC2012_ID"], row["WNID"], row["words"] = np.uint16(synset.number), synset.wnid, synset.words
        row["gloss"] = "what it is"
        for name, value in changed.items():
            row[name] = value
    return table


def devkit(folder: Path, table: Any, truths: str = "3\n1\n2\n") -> Path:
    (folder / "data").mkdir(exist_ok=True)
    savemat(folder / "data" / "meta.mat", {"synsets": table, "other": 1})
    (folder / "data" / "ILSVRC2012_validation_ground_truth.txt").write_text(truths)
    return folder


def cells(table: Any) -> Any:
    content = np.empty(len(table), object)
    for index, row in enumerate(table[:, 0]):
        content[index] = {name: row[name] for name in table.dtype.names}
    return content


@pytest.mark.parametrize("layout", ["column", "row", "cells"])
def test_synsets_are_read_from_every_layout(tmp_path: Path, layout: str) -> None:
    table = {"column": struct_array(), "row": struct_array().T, "cells": cells(struct_array())}[layout]
    assert read_synsets(devkit(tmp_path, table)) == SYNSETS


def test_each_picture_has_the_first_name_of_its_class(tmp_path: Path) -> None:
    folder = devkit(tmp_path, struct_array(), "3\n1\n1\n1860\n")
    found, ids = read_synsets(folder), read_validation_ids(folder)
    assert validation_labels(found, ids) == ["crane", "kit fox", "kit fox", "entity"]
    assert validation_labels(found, ids, wnids=True) == ["n03126707", "n02119789", "n02119789", "n00001740"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.arange(3), "synset 1 does not have the fields"),
        (struct_array(words=7), "synset 1 does not have the fields"),
        (struct_array(words=""), "synset 1 does not have the fields"),
        (struct_array(ILSVRC2012_ID="x"), "synset 1 does not have the fields"),
        (struct_array(ILSVRC2012_ID=5), "has 4 synsets with 1 numbers"),
        (struct_array()[:0], "has 0 synsets"),
        ({"ILSVRC2012_ID": [1, 2], "WNID": ["a", "b"]}, "synset 1 does not have the fields"),
    ],
)
def test_a_foreign_table_is_refused(tmp_path: Path, table: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_synsets(devkit(tmp_path, table))


@pytest.mark.parametrize("content", [b"", b"no MATLAB file", b"\x89HDF\r\n\x1a\n" + bytes(200), bytes(500)])
def test_a_damaged_table_is_refused(tmp_path: Path, content: bytes) -> None:
    devkit(tmp_path, struct_array())
    (tmp_path / "data" / "meta.mat").write_bytes(content)
    with pytest.raises(DataError, match=r"data/meta.mat cannot be read: .*Unpack the kit again"):
        read_synsets(tmp_path)


@pytest.mark.parametrize(
    ("truths", "message"), [("1\nx\n", "line 2: 'x' is not a number"), ("1\n\n2\n", "line 2"), ("", "is empty")]
)
def test_wrong_ground_truth_is_refused(tmp_path: Path, truths: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_validation_ids(devkit(tmp_path, struct_array(), truths))


def test_another_folder_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no data/meta.mat; give the unpacked folder ILSVRC2012_devkit_t12"):
        read_synsets(tmp_path)


def test_a_class_that_is_not_in_the_table_is_named() -> None:
    with pytest.raises(DataError, match="line 2: class 9 is not among the 4 synsets"):
        validation_labels(SYNSETS, [1, 9])
