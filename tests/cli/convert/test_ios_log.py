"""``evaltools convert ios-log``: a result from the console of the app."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import evaltools
from tests.benchmark.ios.ios_console import ON_METAL, started
from tests.command import evaltools_here

MODEL = Path(__file__).resolve().parents[3] / "datasets" / "sample" / "models" / "float32.tflite"


def converted(log: str, folder: Path, *flags: str):  # type: ignore[no-untyped-def]
    (folder / "console.txt").write_text(log)
    return evaltools_here(
        "convert", "ios-log", "console.txt", f"--graph={MODEL}", "--output=r.json", *flags, cwd=folder
    )


def test_the_result_is_one_of_a_benchmark(tmp_path: Path) -> None:
    log = started("Num threads: [4]", "Use gpu: [1]", delegates=ON_METAL) + started("Num threads: [4]", average=4000)
    done = converted(log, tmp_path)
    assert (done.code, done.out) == (0, "")
    assert "17/19" in done.err
    found = evaltools.load(tmp_path / "r.json")
    assert [entry.name for entry in found] == ["gpu", "cpu"]
    assert found["gpu"].latency_average_ms == pytest.approx(1.8474)
    assert found.result.models[0].node_count == 19
    assert found.result.warnings[0].startswith("measured by the benchmark app for iOS, as its log says")


def test_a_delegate_that_is_not_proven_is_exit_code_3_and_in_the_result(tmp_path: Path) -> None:
    done = converted(started("Use coreml: [1]".replace("coreml", "CoreML")), tmp_path)
    assert done.code == 3
    (row,) = json.loads((tmp_path / "r.json").read_text())["rows"]
    assert (row["name"], row["status"]) == ("coreml", "not measured")
    assert converted(started("Use CoreML: [1]"), tmp_path, "--allow_fallback=true").code == 0
