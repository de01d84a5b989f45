"""Traps of GPUs: each is found in a graph that has it and in no other, and the measured one is measured again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.model.gpu_traps import MEASURED, GpuTrap, gpu_traps
from evaltools.runtime import open_session
from tests.tflite_writer import Graph


def save(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def traps_of(folder: Path, content: bytes) -> tuple[GpuTrap, ...]:
    return gpu_traps(read_contents(save(folder, content)).main)


def dense(shape: tuple[int, ...], reshaped: bool = False) -> bytes:
    """FULLY_CONNECTED on an input of that shape, which it flattens itself unless it is ``reshaped`` first."""
    graph = Graph()
    fed = tensor = graph.tensor("input", shape)
    count = int(np.prod(shape))
    if reshaped:
        target = graph.constant("shape", np.array((1, count), np.int32))
        tensor = graph.node("RESHAPE", [fed, target], graph.tensor("flat", (1, count)), "ReshapeOptions")
    random = np.random.default_rng(0)
    weights = graph.constant("weights", random.normal(size=(8, count)).astype(np.float32))
    inputs = [tensor, weights, graph.constant("bias", np.zeros(8, np.float32))]
    given = graph.node("FULLY_CONNECTED", inputs, graph.tensor("given", (1, 8)), "FullyConnectedOptions")
    return graph.to_bytes([fed], [given])


def chain(*operators: str, shape: tuple[int, ...] = (1, 8, 8, 4), signature: tuple[int, ...] = ()) -> bytes:
    graph = Graph()
    fed = tensor = graph.tensor("input", shape, shape_signature=signature)
    for operator in operators:
        tensor = graph.node(operator, [tensor], graph.tensor(operator, shape))
    return graph.to_bytes([fed], [tensor])


def test_a_graph_without_them_has_none(tmp_path: Path) -> None:
    assert traps_of(tmp_path, chain("NEG", "RESHAPE", "RESHAPE", "RESHAPE")) == ()
    assert traps_of(tmp_path, dense((1, 1, 1, 8))) == ()


@pytest.mark.parametrize("operator", ["BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH"])
def test_operators_that_only_move_data_are_named(tmp_path: Path, operator: str) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", operator, operator))
    assert trap.found == f"{operator} x2"
    assert "GPU delegates" in trap.source


def test_many_reshapes_are_counted(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", *["RESHAPE"] * 4))
    assert trap.found == "RESHAPE x4, 80 % of the nodes"


def test_channels_that_are_no_multiple_of_4_are_found_with_what_they_cost(tmp_path: Path) -> None:
    """5 channels are kept as 8: two tensors of 8 instead of 5."""
    (trap,) = traps_of(tmp_path, chain("NEG", shape=(1, 2, 2, 5)))
    assert trap.found.startswith("2 of 2 tensors of 4 dimensions, such as 'input' [1,2,2,5]")
    assert trap.found.endswith("1.60 times the memory")


def test_batches_are_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", shape=(3, 8, 8, 4)))
    assert trap.found == "'input' [3,8,8,4]"


def test_free_sizes_are_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", signature=(-1, 8, 8, 4)))
    assert trap.found == "'input' [-1,8,8,4]"


@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 1, 2, 8), (1, 4, 8)])
def test_a_fully_connected_that_flattens_is_found(tmp_path: Path, shape: tuple[int, ...]) -> None:
    (trap,) = traps_of(tmp_path, dense(shape))
    assert (trap.found, trap.source) == ("FULLY_CONNECTED #0", MEASURED)
    assert traps_of(tmp_path, dense(shape, reshaped=True)) == ()


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize(("reshaped", "is_wrong"), [(False, True), (True, False)])
def test_a_gpu_gives_wrong_values_where_fully_connected_flattens(
    tmp_path: Path, reshaped: bool, is_wrong: bool
) -> None:
    model = save(tmp_path, dense((1, 4, 4, 8), reshaped))
    fed = [np.random.default_rng(1).normal(size=(1, 4, 4, 8)).astype(np.float32)]
    outputs = []
    for flags in ("runtime=litert kernels=builtin", "use_gpu=true gpu_precision_loss_allowed=false"):
        session = open_session(model, Configuration.from_text("side", flags))
        outputs.append(session.run(fed).outputs[0].astype(np.float64))
        session.close()
    assert (np.abs(outputs[0] - outputs[1]).max() > 1) == is_wrong
