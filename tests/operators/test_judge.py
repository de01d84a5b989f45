"""The verdict rule for one operator: how far off is too far, and which precision explains it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.operators.arithmetic import Arithmetic, arithmetic_of
from evaltools.operators.difference import RunOff, difference, size_beyond_a_quantum, sizes
from evaltools.operators.judge import Limit, found_precisions, limit_of, precision_needed
from evaltools.operators.part import TensorRuns
from tests import locate_models
from tests.tflite_writer import Graph, Quantization

PLAIN = Arithmetic()


def floats(size: float, rounded: tuple[str, ...] = (), **variants: float) -> TensorRuns:
    return TensorRuns(0, "x", "absolute", (size,), (size,), magnitude=1.0, variants=variants, rounded=rounded)


def steps(largest: float, size: float, **variants: float) -> TensorRuns:
    return TensorRuns(0, "x", "steps", (largest,), (size,), variants=variants)


def is_wrong(runs: TensorRuns, arithmetic: Arithmetic = PLAIN, precision: str = "fp32") -> bool:
    return limit_of(runs, arithmetic, precision).beyond(runs) > 0


def test_one_step_is_no_difference_and_two_are_but_where_kernels_of_the_cpu_do_so() -> None:
    assert not is_wrong(steps(1, 0.5))
    assert is_wrong(steps(2, 0.01))
    assert not is_wrong(steps(2, 0.01, kernels=0.006))
    assert not is_wrong(steps(4, 0.05), precision="fp16"), "sums of whole numbers are not exact in float16"
    assert is_wrong(steps(8, 0.05), precision="fp16")
    biased = replace(steps(1, 0.05), bias=0.4)
    assert is_wrong(biased)
    assert not is_wrong(replace(biased, bias=0.1)), "XNNPACK's sums are 0.09 steps off at most"
    assert not is_wrong(biased, Arithmetic(most_bias=0.9)), "means of few numbers lie in the middle of two steps"


def test_floats_may_be_off_by_twice_what_the_cpu_itself_does() -> None:
    assert is_wrong(floats(1e-5))
    assert is_wrong(floats(1e-5, kernels=4e-6))
    assert not is_wrong(floats(1e-5, kernels=6e-6))
    assert not is_wrong(floats(1e-5), Arithmetic(sums=10_000)), "roundings of sums grow with the root of their number"
    assert not is_wrong(floats(9e-5), Arithmetic(approximated=True))
    assert is_wrong(floats(math.inf, kernels=math.inf)), "kernels that overflow excuse nothing"


@pytest.mark.parametrize(
    ("runs", "arithmetic", "needed"),
    [
        (floats(5e-4), PLAIN, "fp16"),
        (floats(3e-3, fp16=1e-3, bf16=8e-3), PLAIN, "bf16"),
        (floats(0.01, int8=0.006), Arithmetic(hybrid=True), "int8"),
        (floats(0.01, int8=0.006), PLAIN, ""),
        (floats(0.3, fp16=1e-4, bf16=1e-3), PLAIN, ""),
        (floats(1e-8), PLAIN, "fp32"),
    ],
)
def test_the_first_precision_that_explains_an_operator(runs: TensorRuns, arithmetic: Arithmetic, needed: str) -> None:
    assert precision_needed(runs, arithmetic) == needed


def test_where_rounding_alone_moves_values_too_far_nothing_is_decided() -> None:
    assert math.isinf(limit_of(floats(0.15, float32=0.1), PLAIN, "fp32").size)


@pytest.mark.parametrize(("arithmetic", "size"), [(Arithmetic(hybrid=True), 0.012), (PLAIN, 2e-6)])
def test_only_weights_of_8_bits_beside_floats_widen_the_limit_to_that_of_int8(
    arithmetic: Arithmetic, size: float
) -> None:
    limit = limit_of(floats(0.01, float32=1e-6, int8=0.006), arithmetic, "fp32")
    assert limit.size == pytest.approx(size, rel=0.5)
    assert limit.precision == ("int8" if arithmetic.hybrid else "fp32")


def test_one_operator_that_is_off_among_exact_ones_is_no_precision() -> None:
    exact, half, written = floats(0.0), floats(5e-4), floats(5e-4, ("fp16",))
    needed = {0: "fp16", 1: "fp32", 2: "fp32"}
    assert found_precisions({0: [half], 1: [exact], 2: [exact]}, needed) == {0: "fp32", 1: "fp32", 2: "fp32"}
    assert found_precisions({0: [written], 1: [exact], 2: [exact]}, needed)[0] == "fp16"


def test_sizes_of_runs() -> None:
    runs = [
        difference(np.array([2.0, 2.0]), np.array([1.0, 1.0])),
        difference(np.array([np.nan]), np.array([1.0])),
        difference(np.array([np.inf, np.nan, 1.0]), np.array([np.inf, np.nan, 1.0])),
    ]
    assert sizes(runs, 0.0) == [1.0, math.inf, 0.0]
    assert [run.not_finite for run in runs] == [False, True, False]
    assert size_beyond_a_quantum([RunOff(1, 9, 100, 9, 3)], in_steps=True) == 0
    assert size_beyond_a_quantum([RunOff(2, 9, 100, 9, 3)], in_steps=True) > 0
    assert difference(np.zeros(3), np.zeros(4)).largest == math.inf


def test_an_element_is_wrong_within_half_of_the_worst_one() -> None:
    """Else a fault in all elements, which the root mean square shows, would have no wrong element."""
    runs = TensorRuns(0, "x", "absolute", (1e-3,), (0.01,), magnitude=10.0)
    assert Limit(1e-3).of_element(runs) == 5e-4


def test_a_loop_has_the_arithmetic_of_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "hybrid.tflite").write_bytes(locate_models.hybrid(4))
    graphs = read_contents(read_model(tmp_path / "hybrid.tflite")).graphs
    found = arithmetic_of(graphs, 0)
    assert (found.hybrid, found.sums) == (True, 32)


@pytest.mark.parametrize(
    ("operator", "scales", "most"),
    [
        ("ADD", (0.11, 0.07, 0.13), 0.25),
        ("ADD", (0.5, 0.07, 1.0), math.inf),
        ("SUB", (1.0, 0.5, 1.0), math.inf),
        ("MAX_POOL_2D", (0.1, 0.1), 0.25),
        ("AVERAGE_POOL_2D", (0.1, 0.1), 0.9),
    ],
)
def test_the_bias_that_rounding_makes_depends_on_how_often_results_lie_in_the_middle(
    operator: str, scales: tuple[float, ...], most: float, tmp_path: Path
) -> None:
    graph = Graph()
    *fed, given = [graph.tensor(str(scale), (1, 4, 4, 1), "int8", Quantization(scale, 0)) for scale in scales]
    graph.node(operator, fed, given)
    (tmp_path / "one.tflite").write_bytes(graph.to_bytes(fed, [given]))
    assert arithmetic_of(read_contents(read_model(tmp_path / "one.tflite")).graphs, 0).most_bias == most
