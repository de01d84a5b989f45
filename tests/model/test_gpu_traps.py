"""Traps of GPUs: each is found in a graph that has it and in no other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.model.gpu_faults import IN_SOFTWARE, GpuTrap, gpu_traps
from tests.tflite_writer import Graph


def save(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def traps_of(folder: Path, content: bytes) -> tuple[GpuTrap, ...]:
    return gpu_traps(read_contents(save(folder, content)).main)


def chain(*operators: str, shape: tuple[int, ...] = (1, 8, 8, 4), signature: tuple[int, ...] = ()) -> bytes:
    graph = Graph()
    fed = tensor = graph.tensor("input", shape, shape_signature=signature)
    for operator in operators:
        tensor = graph.node(operator, [tensor], graph.tensor(operator, shape))
    return graph.to_bytes([fed], [tensor])


def test_a_graph_without_them_has_none(tmp_path: Path) -> None:
    assert traps_of(tmp_path, chain("NEG", "RESHAPE", "RESHAPE", "RESHAPE")) == ()


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


def test_operators_with_a_fault_are_counted_by_number(tmp_path: Path) -> None:
    graph = Graph()
    made = graph.tensor("input", (5,))
    fed = made
    for number in range(5):
        constant = graph.constant(f"constant {number}", np.ones(5, np.float32))
        made = graph.node("ADD", [made, constant], graph.tensor(f"sum {number}", (5,)), "AddOptions")
    (trap,) = [trap for trap in traps_of(tmp_path, graph.to_bytes([fed], [made])) if "constant" in trap.trap]
    assert (trap.found, trap.source) == ("ADD #0, ADD #1, ADD #2 and 2 more", IN_SOFTWARE)
