"""Numbers that fp16 does not hold, against NumPy's own fp16 and values at the limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.half_precision import constants_outside_half, count_outside_half
from tests.tflite_writer import Graph


def counts(*values: float) -> tuple[int, int, int]:
    found = count_outside_half(np.array(values, np.float64))
    return found.too_large, found.vanish, found.subnormal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (65504.0, (0, 0, 0)),
        (65504.5, (1, 0, 0)),
        (-1e30, (1, 0, 0)),
        (2.0**-14, (0, 0, 0)),
        (np.nextafter(2.0**-14, 0), (0, 0, 1)),
        (-(2.0**-24), (0, 0, 1)),
        (np.nextafter(2.0**-24, 0), (0, 1, 0)),
        (1e-38, (0, 1, 0)),
        (0.0, (0, 0, 0)),
        (np.inf, (0, 0, 0)),
        (np.nan, (0, 0, 0)),
    ],
)
def test_the_limits_are_those_of_binary16(value: float, expected: tuple[int, int, int]) -> None:
    assert counts(value) == expected


def test_what_is_inside_keeps_eleven_bits_in_numpys_fp16() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=5000) * 10.0 ** random.integers(-9, 7, 5000)
    inside = np.array([value for value in values if counts(value) == (0, 0, 0)])
    assert 1000 < len(inside) < 5000
    assert (np.abs(inside.astype(np.float16) / inside - 1) <= 2.0**-11).all()


def test_magnitudes_are_those_of_finite_nonzero_numbers() -> None:
    found = count_outside_half(np.array([[0, -3], [np.inf, 1e-9]], np.float32))
    assert (found.values, found.largest, found.smallest) == (4, 3.0, float(np.float32(1e-9)))
    empty = count_outside_half(np.zeros(3, np.float32))
    assert (empty.values, empty.largest, empty.smallest, empty.outside) == (3, None, None, 0)


def test_an_epsilon_is_named_with_the_operator_that_adds_it(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("input", (1, 2))
    safe = graph.node(
        "ADD", [fed, graph.constant("one", np.array([[1, 1]], np.float32))], graph.tensor("a", (1, 2)), "AddOptions"
    )
    epsilon = graph.constant("epsilon", np.array([[1e-5, 1e-9]], np.float32))
    total = graph.node("ADD", [safe, epsilon], graph.tensor("b", (1, 2)), "AddOptions")
    ids = graph.constant("whole numbers", np.array([1], np.int32))
    graph.node("RESHAPE", [total, ids], graph.tensor("c", (1, 2)))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.to_bytes([fed], [total]))
    (found,) = constants_outside_half(read_contents(read_model(path)).graphs)
    assert (found.graph, found.tensor, found.consumers) == (0, "epsilon", ("ADD #1",))
    assert (found.count.too_large, found.count.vanish, found.count.subnormal) == (0, 1, 1)


def test_a_constant_with_subnormal_numbers_alone_is_held(tmp_path: Path) -> None:
    """Nearly all weights have some; fp16 holds them with fewer digits."""
    graph = Graph()
    fed = graph.tensor("input", (1, 2))
    small = graph.constant("small", np.array([[1e-5, 1.0]], np.float32))
    total = graph.node("ADD", [fed, small], graph.tensor("a", (1, 2)), "AddOptions")
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.to_bytes([fed], [total]))
    assert constants_outside_half(read_contents(read_model(path)).graphs) == ()
