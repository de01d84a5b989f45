"""Two models that have the same outputs in another order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution
from evaltools.errors import UsageError
from evaltools.result.result import Result
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.result import OutputOrder
from tests.runtime.fake import open_here
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import material_of, request_for
from tests.tflite_writer import Graph

SIZES = {"boxes": 5, "scores": 5, "angles": 5, "wide": 7}
"""Outputs by name: three of one shape."""


def write(path: Path, names: Mapping[str, str], seed: int = 0) -> Path:
    """A model with the outputs in the order of ``names``, under other names; the same seed gives the same numbers."""
    graph = Graph()
    features = graph.tensor("x", (1, 6))
    outputs = {}
    for number, (output, size) in enumerate(SIZES.items()):
        chance = np.random.default_rng([seed, number])
        weights = graph.constant(f"weights {number}", chance.normal(size=(size, 6)).astype(np.float32))
        bias = graph.constant(f"bias {number}", chance.normal(size=size).astype(np.float32))
        made = graph.tensor(names[output], (1, size))
        graph.node("FULLY_CONNECTED", [features, weights, bias], made, "FullyConnectedOptions")
        outputs[output] = made
    path.write_bytes(graph.to_bytes([features], [outputs[output] for output in names]))
    return path


def diff(test: Path, reference: Path, **changes: Any) -> Result:
    made = {
        "model_file": test,
        "reference": Configuration("reference", kernels="reference"),
        "tests": (Configuration("test"),),
        "inputs": InputOptions(num_runs=4),
        "reference_model_file": reference,
        "noise_floor_runs": 2,
    }
    return evaluate(request_for(**{**made, **changes}), Observer(), open_here)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write(tmp_path / "old.tflite", {name: name for name in SIZES})


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The same outputs in another order, under names that say nothing."""
    order = ("wide", "angles", "boxes", "scores")
    return write(tmp_path / "new.tflite", {name: f"call:{place}" for place, name in enumerate(order)})


def order_of(result: Result) -> OutputOrder:
    order = diff_of(result).output_order
    assert order is not None
    return order


def test_outputs_in_another_order_have_the_figures_of_those_in_the_same(old: Path, new: Path, tmp_path: Path) -> None:
    expected = diff_of(diff(old, old)).comparisons[0].outputs
    run = Execution(run_dir=tmp_path / "run")
    result = diff(new, old, execution=run)
    order = order_of(result)
    assert (order.positions, order.matched_by) == ([3, 2, 0, 1], ["shape", "values", "values", "values"])
    found = diff_of(result).comparisons[0].outputs
    for judged, place in zip(found, order.positions, strict=True):
        assert replace(judged.difference, output=expected[place].difference.output) == expected[place].difference
        assert judged.verdict.grade == expected[place].verdict.grade
    assert any(judged.difference.max for judged in found)
    assert "output 1 call:1 is compared with its output 2 angles" in str(result.blocks)
    assert not result.warnings
    resumed = diff(new, old, execution=run)
    assert diff_of(resumed).output_order == order
    assert [each.difference for each in diff_of(resumed).comparisons[0].outputs] == [each.difference for each in found]


def test_an_order_that_values_do_not_tell_is_said_to_be_open_and_can_be_stated(old: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.tflite", {name: f"call:{name}" for name in SIZES}, seed=1)
    result = diff(other, old)
    assert order_of(result).positions == [0, 1, 2, 3]
    assert order_of(result).open == [0, 1, 2]
    assert [text for text in result.warnings if "--output_map=0:0,1:1,2:2, which states another order" in text]
    stated = diff(other, old, output_map="0:1,1:2,2:0")
    assert order_of(stated).positions == [1, 2, 0, 3]
    assert not [text for text in stated.warnings if "output_map" in text]
    backwards = diff(old, other, output_map="1:0,2:1,0:2")
    figures = [
        [diff_of(result).comparisons[0].outputs[place].difference.max for place in places]
        for result, places in ((stated, (0, 1, 2)), (backwards, (1, 2, 0)))
    ]
    assert figures[0] == pytest.approx(figures[1], rel=1e-5)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0:1:2", "'0:1:2' is not two numbers"),
        ("scores:1", "'scores:1' is not two numbers"),
        ("0:4", "'0:4' names an output that there is not"),
        ("0:1,2:1", "'2:1' names an output a second time"),
        ("3:0", r"'3:0' joins wide: float32\[1,7\] and boxes: float32\[1,5\], whose shapes differ"),
    ],
)
def test_maps_that_do_not_fit_are_refused_with_the_outputs_that_there_are(old: Path, text: str, problem: str) -> None:
    request = request_for(model_file=old, reference_model_file=old, tests=(Configuration("test"),), output_map=text,
                          reference=Configuration("reference"))  # fmt: skip
    with pytest.raises(UsageError, match=f"^--output_map={re.escape(text)}: {problem}; use .* The model has 0 boxes: "):
        material_of(request)
