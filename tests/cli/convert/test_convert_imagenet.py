"""``evaltools convert imagenet``: label files from the development kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets.ilsvrc import Synset
from tests.command import Completed, evaltools_here
from tests.datasets.test_ilsvrc import devkit, struct_array

SYNSETS = (
    Synset(1, "n03", "kit fox, Vulpes macrotis"),
    Synset(2, "n02", "crane"),
    Synset(3, "n01", "crane"),
    Synset(1001, "n00", "animal, beast"),
)


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    folder.mkdir()
    devkit(folder, struct_array(SYNSETS), "3\n1\n1\n2\n")
    return tmp_path


def convert(folder: Path, *flags: str) -> Completed:
    return evaltools_here("convert", "imagenet", "--ilsvrc_devkit_dir=kit", *flags, cwd=folder)


def test_labels_as_the_native_script_writes_them(kit: Path) -> None:
    completed = convert(kit, "--validation_labels_output=truths.txt")
    assert completed.code == 0
    assert (kit / "truths.txt").read_bytes() == b"crane\nkit fox\nkit fox\ncrane\n"
    assert completed.err == (
        "truths.txt: 4 labels of 2 classes, in order of the pictures' names\n"
        "note: 1 names stand for more than one class (crane: n01 and n02); --wnids=true keeps them apart\n"
        "next:\n"
        "  evaltools imagenet --model_file=... --ground_truth_images_path=... --ground_truth_labels=truths.txt "
        "--model_output_labels=...\n"
    )


def test_wordnet_ids_and_class_labels(kit: Path) -> None:
    flags = ["--validation_labels_output=truths.txt", "--model_output_labels_output=classes.txt", "--wnids"]
    completed = convert(kit, *flags, "--background")
    assert completed.code == 0
    assert (kit / "truths.txt").read_text() == "n01\nn03\nn03\nn02\n"
    assert (kit / "classes.txt").read_text() == "background\nn01\nn02\nn03\n"
    assert "note" not in completed.err
    assert "--ground_truth_labels=truths.txt --model_output_labels=classes.txt" in completed.err
