"""``--executor=ray`` on a Ray that is started here."""

from __future__ import annotations

import importlib.util
import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluate.sample_runs import (
    XNNPACK,
    below,
    figures,
    figures_of,
    imagenet,
    left_after,
    needs_proc,
    run,
    start,
)
from tests.command import evaltools_here

pytestmark = pytest.mark.once

COMMAND = imagenet(XNNPACK, pictures=30)
ON_RAY = ("--executor=ray", "--ray_tasks=3")
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The result of one process."""
    output = tmp_path_factory.mktemp("alone") / "result.json"
    return figures_of([*COMMAND, "--record_examples=true"], output)


@needs_ray
@needs_proc
def test_the_result_is_that_of_one_host_also_where_the_process_of_a_shard_is_killed(alone: Any, tmp_path: Path) -> None:
    output, mark = tmp_path / "result.json", uuid.uuid4().hex
    flags = ("--record_examples=true", "--progress=json", f"--run_dir={tmp_path / 'run'}")
    with start([*COMMAND, *ON_RAY, *flags, f"--output_file_path={output}"], mark) as process:
        killed: int | None = None
        while killed is None and process.poll() is None:
            killed = next((number for number, line in below(process.pid).items() if "carry_out_range" in line), None)
            if killed is not None:
                os.kill(killed, signal.SIGKILL)
            time.sleep(0.02)
        _, errors = process.communicate(timeout=120)
    assert killed is not None, errors
    assert process.returncode == 0, errors
    assert figures(output) == alone
    shards = {path.name for path in (tmp_path / "run").iterdir() if path.is_dir()}
    assert shards == {"shard-0-of-3", "shard-1-of-3", "shard-2-of-3"}
    assert left_after(mark) == []


def test_without_ray_the_way_to_get_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('no Ray')")
    completed = run([*COMMAND, *ON_RAY], environment={"PYTHONPATH": str(tmp_path)})
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == "evaltools: --executor=ray needs Ray: pip install 'evaltools[ray]'\n"


@needs_ray
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            (*ON_RAY, "--shard_count=2", "--run_dir=run"),
            "--shard_count has no effect with --executor=ray; leave one of the two out",
        ),
        (
            ("--executor=ray", "--ray_tasks=-1"),
            "--ray_tasks=-1: use a number of tasks, or 0 for one per CPU",
        ),
    ],
)
def test_flags_that_make_no_sense_on_ray(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    completed = evaltools_here(*COMMAND, *flags)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err
    assert list(tmp_path.iterdir()) == []
