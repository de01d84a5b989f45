"""Archives of strangers, behind a model or by themselves: read, or refused, in little time and memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from evaltools import exit_codes
from evaltools.datasets import sample
from evaltools.datasets.input_files import Wanted, read_input_files
from evaltools.datasets.labels import read_labels
from evaltools.errors import DataError, EvaltoolsError
from evaltools.tasks.inference_diff.saved_outputs import read_saved_reference
from tests.command import evaltools_here
from tests.hostile.edited_archives import behind_a_model, edited, npy, sparse
from tests.hostile.examples import PARTS, numbers_of
from tests.hostile.watched import Watch

WANTED = [Wanted(("x", "0"), "float32", (1, 2)), Wanted(("y", "1"), "int64", (6,))]
WHOLE_COMMANDS = 40
"""One case in so many is given to commands, which take a hundred times as long as their readers."""


@pytest.mark.parametrize("part", PARTS)
def test_an_archive_that_was_packed_to_do_harm_is_read_or_refused(part: int, tmp_path: Path) -> None:
    archive, model = tmp_path / "a.npz", tmp_path / "model.tflite"
    images = f"--images={sample.images_dir()}"
    watch = Watch()
    read = 0
    for seed in numbers_of(part):
        what, content = edited(seed)
        archive.write_bytes(content)
        model.write_bytes(behind_a_model(content))
        with watch.case(what):
            with suppress(EvaltoolsError):
                read_input_files([str(archive)], WANTED)
                read += 1
            with suppress(EvaltoolsError):
                read_labels(model, "--labels")
            if seed // len(PARTS) % WHOLE_COMMANDS == 0:
                for words in (
                    ("diff", str(model), f"--input_files={archive}"),
                    ("locate", str(model), "--kernels=reference", f"--reference_tensors={archive}"),
                    ("imagenet", str(model), images, f"--labels={model}", "--num_images=1", "--kernels=default"),
                ):
                    done = evaltools_here(*words)
                    assert "Traceback" not in done.err, (what, words, done.err)
                    assert done.code != exit_codes.FAULT, (what, words, done.err)
    assert 0 < read < watch.cases, "some are read, others are not"
    watch.require_little_memory()


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_labels(path, "--labels"),
        lambda path: read_input_files([f"x={path}"], WANTED),
        lambda path: read_saved_reference(path.parent),
    ],
)
def test_gigabytes_of_nothing_are_refused_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    for name in ("x.npz", "x.npy", "manifest.json"):
        sparse(tmp_path / name, npy(np.zeros((1, 2), np.float32)))
    watch = Watch()
    for name in ("x.npz", "x.npy"):
        with watch.case(name), pytest.raises(DataError, match="it is too large|not a text file"):
            read(tmp_path / name)
    watch.require_little_memory()
