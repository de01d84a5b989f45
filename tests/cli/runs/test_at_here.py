"""``--at``: the way of a place through another process, on this computer."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.runs.places import PLACES, Place
from tests.cli.evaluate.sample_runs import imagenet
from tests.command import evaltools_here

pytestmark = pytest.mark.once
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")


NO_DELEGATE = "the NNAPI delegate cannot be created by the Python runtime litert"


def diff(*words: str) -> list[str]:
    return ["diff", str(sample.model_file("int8")), "--num_runs=3", *words]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (diff("--use_nnapi=true", "--at=here", "--at=copy"), f"test@here, test@copy: not measured: {NO_DELEGATE}"),
        (diff("--use_xnnpack=true", "--reference=use_nnapi=true", "--at=here", "--at=copy"), NO_DELEGATE),
        (imagenet("--use_nnapi=true", "--at=here", "--at=copy", pictures=3), NO_DELEGATE),
    ],
    ids=["several places", "reference", "task with truths"],
)
def test_what_cannot_run_at_a_place_was_not_measured(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLACES, "copy", lambda text, _detail: Place(text))
    done = evaltools_here(*words)
    assert done.code == 3, done.err
    assert said in done.err


def test_shards_in_which_no_test_could_run_are_merged_with_the_reason(tmp_path: Path) -> None:
    folders = [tmp_path / str(index) for index in (0, 1)]
    for index, folder in enumerate(folders):
        shard = f"--shard_index={index}", "--shard_count=2", f"--run_dir={folder}"
        assert evaltools_here(*diff("--use_nnapi=true", *shard)).code == 3
    done = evaltools_here("merge", *map(str, folders))
    assert done.code == 3, done.err
    assert NO_DELEGATE in done.err
