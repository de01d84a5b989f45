"""Memory does not grow with the number of pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaltools.datasets import sample

pytestmark = pytest.mark.once

FEW, MANY = 200, 1200
LARGEST_GROWTH = 1.05


def peak_memory(folder: Path, pictures: int) -> int:
    """That of the process that a user starts, in the unit of ``ru_maxrss``."""
    command = [
        sys.executable,
        "-m",
        "evaltools.cli.main",
        "imagenet",
        f"--model_file={sample.model_file('int8')}",
        f"--ground_truth_images_path={folder / 'images'}",
        f"--ground_truth_labels={folder / 'labels.txt'}",
        f"--model_output_labels={sample.labels_file()}",
        f"--num_images={pictures}",
        "--workers=2",
        "--progress=none",
    ]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert started.stderr is not None
    printed = started.stderr.read()
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    assert started.returncode == 0, printed
    return usage.ru_maxrss


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system does not tell the memory of one process")
def test_many_pictures_need_no_more_memory_than_two_hundred(tmp_path: Path) -> None:
    pictures = sorted(sample.images_dir().iterdir())
    truths = sample.ground_truth_file().read_text().splitlines()
    (tmp_path / "images").mkdir()
    for number in range(MANY):
        place = number % len(pictures)
        (tmp_path / "images" / f"{number:05d}.jpg").symlink_to(pictures[place])
    (tmp_path / "labels.txt").write_text("".join(f"{truths[number % len(truths)]}\n" for number in range(MANY)))
    few, many = peak_memory(tmp_path, FEW), peak_memory(tmp_path, MANY)
    assert many <= LARGEST_GROWTH * few, f"{few} for {FEW} pictures, {many} for {MANY}"
