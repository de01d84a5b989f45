"""What the operators one by one show of a configuration, on real kernels and with real faults."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.operators.decide import ByOperators, cuttable, decide
from tests import locate_models
from tests.tflite_writer import Graph

CPU = Configuration.from_text("cpu", "use_xnnpack=false num_threads=1")
XNNPACK = Configuration.from_text("xnnpack", "use_xnnpack=true")
PLENTY = 600.0


def written(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def shown(model: ModelFile, tested: Configuration, seconds: float = PLENTY, level: int = 0) -> ByOperators:
    """What operators show on three inputs of noise, behind ``level`` inputs that are 0 everywhere."""
    tensor = model.inputs[0]
    random = np.random.default_rng(3)
    inputs = [np.zeros(tensor.shape, tensor.dtype)] * level
    if tensor.is_quantized:
        inputs += [random.integers(-128, 128, tensor.shape).astype(tensor.dtype) for _ in range(3)]
    else:
        inputs += [random.standard_normal(tensor.shape).astype(np.float32) for _ in range(3)]
    parts = cuttable(model)
    assert parts is not None
    return decide(model, parts, CPU, tested, [(values,) for values in inputs], seconds)


@pytest.mark.parametrize("content", [locate_models.net(), locate_models.quantized_net()], ids=["float32", "int8"])
def test_right_kernels_are_within_rounding_operator_by_operator(content: bytes, tmp_path: Path) -> None:
    found = shown(written(tmp_path, content), XNNPACK)
    count = len(locate_models.NET_OPERATORS)
    assert (found.grade, found.operators) == ("equivalent", ())
    assert found.text.startswith(f"each of {count} operators by itself is within rounding, and together they give")


@pytest.mark.parametrize("level", [0, 10])
def test_a_delegate_in_fp16_is_within_that(level: int) -> None:
    """The sample's model: of a net of eight operators too few would be off to tell a precision from a fault.

    What operators give one by one is known of every input, also where the first ten show nothing.
    """
    sample = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models" / "float32.tflite"
    half = Configuration.from_text("half", "use_xnnpack=true xnnpack_force_fp16=true")
    found = shown(read_model(sample), half, level=level)
    assert found.grade == "fp16"
    assert "operators by itself is within rounding of fp16, and together they give what the model gives" in found.text


@pytest.mark.parametrize(("tensor", "place"), [("project", 2), ("logits", 6)])
def test_a_wrong_operator_is_named(tensor: str, place: int, faulty_delegate: Path, tmp_path: Path) -> None:
    options = f"tensor:{tensor};fault:step;amount:3"
    faulty = f"external_delegate_path={faulty_delegate} external_delegate_options={options}"
    found = shown(written(tmp_path, locate_models.quantized_net()), Configuration.from_text("faulty", faulty))
    assert (found.grade, found.operators) == ("diverged", (place,))
    assert found.text == f"operator at fault: #{place} {locate_models.NET_OPERATORS[place]}"


def test_a_delegate_that_is_gone_is_no_pass(tmp_path: Path, faulty_delegate: Path) -> None:
    nowhere = f"external_delegate_path={faulty_delegate}.missing"
    found = shown(written(tmp_path, locate_models.net()), Configuration.from_text("missing", nowhere))
    assert found.grade == "not decided"


def test_what_takes_longer_is_given_up(tmp_path: Path) -> None:
    found = shown(written(tmp_path, locate_models.net()), XNNPACK, seconds=1e-3)
    assert found.grade == "not decided"
    assert re.match("the operators one by one (take more than 0 s|were not looked at: no answer within)", found.text)


def test_only_numbers_that_operators_make_can_be_looked_at(tmp_path: Path) -> None:
    assert cuttable(written(tmp_path, locate_models.net())) is not None
    assert cuttable(written(tmp_path, locate_models.svdf())) is None
    graph = Graph()
    given = graph.tensor("given", (1, 2))
    assert cuttable(written(tmp_path, graph.to_bytes([given], [given]))) is None
