"""``--at=here``: the way of a place through another process, on this computer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.evaluate.sample_runs import XNNPACK, figures_of, imagenet, run

pytestmark = pytest.mark.once
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")


def test_a_run_at_a_place_gives_the_figures_of_one_here_and_its_folder_is_no_result(tmp_path: Path) -> None:
    words = [*imagenet(XNNPACK, pictures=10), "--record_examples=true"]
    run_dir = tmp_path / "run"
    alone = figures_of(words, tmp_path / "alone.json")
    assert figures_of([*words, "--at=here", f"--run_dir={run_dir}"], tmp_path / "there.json") == alone
    done = run(["report", str(run_dir), f"--output={tmp_path / 'page.html'}"])
    assert done.code == 2
    assert f"evaltools resume {run_dir} --output=FILE writes its result" in done.err
    assert "Traceback" not in done.err
