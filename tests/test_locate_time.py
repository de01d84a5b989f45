"""The benchmark of what a search costs: the linear search beside it opens every prefix once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import locate_time
from benchmarks.detector import detector
from benchmarks.locate_time import linear_search
from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.runtime.registry import open_session
from tests import locate_models
from tests.locate.causes.cases import random


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return path


def test_the_linear_search_opens_a_prefix_for_each_operator(model: Path) -> None:
    cost = linear_search(model, Configuration.from_text("xnnpack", "use_xnnpack=true"), 1)
    assert (cost.compiles, cost.operators) == (8, 36)


def test_the_detector_has_200_operators_and_numbers_that_differ(tmp_path: Path) -> None:
    path = tmp_path / "detector.tflite"
    path.write_bytes(detector())
    graph = read_contents(read_model(path)).main
    assert len(graph.nodes) == 200
    session = open_session(read_model(path), Configuration.from_text("CPU", "kernels=builtin num_threads=1"))
    scores, boxes = session.run([random((1, 128, 128, 3))]).outputs
    session.close()
    assert (scores.shape, boxes.shape) == ((1, 1023, 20), (1, 1023, 4))
    assert 0.1 < scores.astype(np.float64).std() < 0.4
    assert 0.1 < boxes.astype(np.float64).std() < 10


def test_both_searches_are_printed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert locate_time.main([str(model), "--num_inputs=1", "--num_runs=1"]) == 0
    _, linear, whole = capsys.readouterr().out.splitlines()
    assert linear.split()[:2] == ["net", "linear"]
    assert whole.split()[:2] == ["net", "evaltools"]
    assert int(whole.split()[3]) > 8
