"""Run folders of strangers: whatever a command does with them, it ends in time, with a sentence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaltools import exit_codes
from tests.cli.evaluate.sample_runs import imagenet
from tests.command import evaltools_here
from tests.hostile.edited_journals import edited
from tests.hostile.examples import PARTS, numbers_of
from tests.hostile.watched import Watch

PICTURES = 6


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of this user."""
    folder = tmp_path_factory.mktemp("sound") / "run"
    done = evaltools_here(*imagenet("--workers=1", f"--run_dir={folder}", pictures=PICTURES))
    assert done.code == exit_codes.OK, done.err
    return folder


@pytest.mark.parametrize("part", PARTS)
def test_a_run_folder_that_was_edited_ends_as_documented(part: int, sound: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    commands = (
        ("resume", str(folder)),
        ("merge", str(folder)),
        tuple(imagenet("--workers=1", f"--run_dir={folder}", pictures=PICTURES)),
    )
    watch = Watch()
    for seed in numbers_of(part):
        what = edited(seed, sound, folder)
        words = commands[seed // len(PARTS) % len(commands)]
        with watch.case(f"{what}; {words[0]}"):
            done = evaltools_here(*words, cwd=tmp_path)
        assert "Traceback" not in done.err, (what, words, done.err)
        assert done.code != exit_codes.FAULT, (what, words, done.err)
        shutil.rmtree(folder)
    watch.require_little_memory()
