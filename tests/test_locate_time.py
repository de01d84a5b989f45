"""The benchmark of what a search costs: the linear search beside it opens every prefix once."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import locate_time
from tests import locate_models


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return path


def test_both_searches_are_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert locate_time.main([str(model), "--num_inputs=1", "--num_runs=1"]) == 0
    _, linear, whole = capsys.readouterr().out.splitlines()
    assert linear.split()[:2] == ["net", "linear"]
    assert whole.split()[:2] == ["net", "evaltools"]
    assert int(whole.split()[3]) > 8
