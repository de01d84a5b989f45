"""Copies in which every operator rounds once more, on real kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import Graph, read_graphs
from evaltools.model.dither import dithered
from evaltools.runtime import open_session
from tests import locate_models

CPU = Configuration.from_text("cpu", "use_xnnpack=false num_threads=1")


def biases(content: bytes) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    graph: Graph = read_graphs(memoryview(content))[0]
    return {each.name: each.values("int32") for each in graph.tensors if each.name.endswith(" bias")}


def outputs_of(content: bytes, folder: Path, values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    path = folder / "model.tflite"
    path.write_bytes(content)
    session = open_session(read_model(path), CPU)
    try:
        (given,) = session.run([values]).outputs
        return np.asarray(given)
    finally:
        session.close()


@pytest.fixture
def model(tmp_path: Path) -> ModelFile:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return read_model(path)


def test_each_bias_moves_by_at_most_half_a_step_of_the_output(model: ModelFile) -> None:
    """The step is worked out from the scales that the file states."""
    content = model.read()
    copy, count = dithered(content, seed=1)
    graph = read_graphs(memoryview(content))[0]
    by_name = {each.name: each for each in graph.tensors}
    moved = {name: values - biases(content)[name] for name, values in biases(copy).items()}
    assert set(moved) == {"stem bias", "spread bias", "project bias", "logits bias"}
    assert count == sum(len(each) for each in moved.values())
    for name, moves in moved.items():
        step, scales = by_name[name.split()[0]].scales[0], np.array(by_name[name].scales)
        share = np.abs(moves) * scales / step
        assert 0.1 < share.max() < 0.51


def test_the_weights_and_the_rest_of_the_file_stay(model: ModelFile) -> None:
    content = model.read()
    copy, count = dithered(content, seed=1)
    different = sum(one != other for one, other in zip(content, copy, strict=True))
    assert 0 < different <= 4 * count
    assert dithered(content, seed=1)[0] == copy
    assert dithered(content, seed=2)[0] != copy


def test_outputs_move_by_a_few_steps(model: ModelFile, tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(-128, 128, model.inputs[0].shape).astype(np.int8)
    plain = outputs_of(model.read(), tmp_path, values).astype(int)
    moved = outputs_of(dithered(model.read(), seed=1)[0], tmp_path, values).astype(int)
    assert 0 < np.abs(plain - moved).max() < 16


def test_a_float_model_has_nothing_to_move() -> None:
    content = locate_models.net()
    assert dithered(content, seed=1) == (content, 0)
