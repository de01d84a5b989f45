"""Which values an input is made for, by what the graph does first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.model import read_model
from evaltools.model.metadata import ValueRange
from tests.tflite_writer import Graph, Quantization

PIXELS, UNIT, SYMMETRIC = (0, 255), (0, 1), (-1, 1)
IMAGENET_MEAN, IMAGENET_STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
Steps = Sequence[tuple[str, Any]]


def shown(folder: Path, graph: Graph, first: int, output: int) -> ValueRange | None:
    (folder / "model.tflite").write_bytes(graph.to_bytes([first], [output]))
    return read_model(folder / "model.tflite").inputs[0].range_by_graph


def chain(steps: Steps, dtype: str = "float32", constant_first: bool = False) -> tuple[Graph, int, int]:
    """A picture, then arithmetic with constants, then what is not an arithmetic."""
    graph = Graph()
    first = total = graph.tensor("image", (1, 4, 4, 3), dtype)
    if dtype != "float32":
        total = graph.node("CAST", [first], graph.tensor("float", (1, 4, 4, 3)), "CastOptions")
    for operator, constant in steps:
        values = graph.constant("constant", np.array(constant, np.float32))
        inputs = [values, total] if constant_first else [total, values]
        options = f"{operator.capitalize()}Options"
        total = graph.node(operator, inputs, graph.tensor("next", (1, 4, 4, 3)), options)
    return graph, first, graph.node("NEG", [total], graph.tensor("negated", (1, 4, 4, 3)), "NegOptions")


@pytest.mark.parametrize(
    ("steps", "ends", "used"),
    [
        ([("MUL", 1 / 255)], PIXELS, 1),
        ([("DIV", 255.0)], PIXELS, 1),
        ([("MUL", 1 / 127.5), ("SUB", 1.0)], PIXELS, 1),
        ([("SUB", 127.5), ("MUL", 1 / 127.5)], PIXELS, 1),
        ([("ADD", [-123.68, -116.78, -103.94])], PIXELS, 1),
        ([("MUL", 1 / 255), ("SUB", IMAGENET_MEAN), ("DIV", IMAGENET_STD)], PIXELS, 1),
        ([("SUB", IMAGENET_MEAN), ("DIV", IMAGENET_STD)], UNIT, 1),
        ([("MUL", 2.0), ("SUB", 1.0)], UNIT, 2),
        ([("SUB", 0.5), ("DIV", 0.5)], UNIT, 1),
        ([("ADD", 1.0), ("MUL", 127.5)], SYMMETRIC, 2),
        ([("MUL", 0.5), ("ADD", 0.5)], SYMMETRIC, 2),
    ],
)
def test_operators_that_normalise_pixels_show_their_range(
    tmp_path: Path, steps: Steps, ends: tuple[float, float], used: int
) -> None:
    operators = tuple(operator for operator, _ in steps[:used])
    assert shown(tmp_path, *chain(steps)) == ValueRange(*ends, operators)


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [("MUL", 3.0)],
        [("ADD", 0.5)],
        [("MUL", 1e-9)],
        [("MUL", 0.0)],
        [("DIV", 0.0)],
        [("SUB", float("nan"))],
        [("MUL", [1 / 255, 1.0, 1 / 255])],
        [("MUL", np.full((4, 4, 3), 1 / 255).tolist())],
    ],
)
def test_other_arithmetic_shows_nothing(tmp_path: Path, steps: Steps) -> None:
    assert shown(tmp_path, *chain(steps)) is None


def test_whole_numbers_that_are_cast_first_are_pixels_too(tmp_path: Path) -> None:
    assert shown(tmp_path, *chain([("MUL", 1 / 255)], "int32")) == ValueRange(0, 255, ("MUL",))


def test_constants_of_half_precision_are_read_behind_their_dequantize(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.tensor("image", (1, 4, 4, 3))
    half = graph.constant("half", np.array([1 / 255], np.float16))
    scale = graph.node("DEQUANTIZE", [half], graph.tensor("scale", (1,)), "DequantizeOptions")
    scaled = graph.node("MUL", [first, scale], graph.tensor("scaled", (1, 4, 4, 3)), "MulOptions")
    assert shown(tmp_path, graph, first, scaled) == ValueRange(0, 255, ("MUL",))


def test_a_quantize_takes_what_its_type_holds(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.tensor("image", (1, 4))
    whole = graph.tensor("whole", (1, 4), "int8", Quantization(0.5, -128))
    graph.node("QUANTIZE", [first], whole, "QuantizeOptions")
    assert shown(tmp_path, graph, first, whole) == ValueRange(0, 127.5, ("QUANTIZE",))
