"""References that give no numbers, and the values that a picture input is made for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evaltools as et
from tests.tasks.declared import SAMPLE
from tests.tflite_writer import Graph

SHAPE = (1, 16, 16, 3)
IMAGES = SAMPLE / "noise" / "images"


def overflowing(path: Path, factor: float = 1e38) -> Path:
    """A model that gives back what it gets, and makes huge numbers of values below 0."""
    graph = Graph()
    picture = graph.tensor("picture", SHAPE)
    zero, huge = (graph.constant(name, np.array([value], np.float32)) for name, value in (("0", 0), ("huge", factor)))
    below = graph.node("MINIMUM", [picture, zero], graph.tensor("below", SHAPE), "MaximumMinimumOptions")
    large = graph.node("MUL", [below, huge], graph.tensor("large", SHAPE), "MulOptions")
    output = graph.node("ADD", [large, picture], graph.tensor("output", SHAPE), "AddOptions")
    path.write_bytes(graph.to_bytes([picture], [output]))
    return path


def normalising(path: Path) -> Path:
    """A model of values 0..1, which it normalises first."""
    graph = Graph()
    picture = graph.tensor("picture", SHAPE)
    half = graph.constant("half", np.array([0.5], np.float32))
    centred = graph.node("SUB", [picture, half], graph.tensor("centred", SHAPE), "SubOptions")
    scaled = graph.node("DIV", [centred, half], graph.tensor("scaled", SHAPE), "DivOptions")
    output = graph.node("LOGISTIC", [scaled], graph.tensor("output", SHAPE))
    path.write_bytes(graph.to_bytes([picture], [output]))
    return path


def run(model: Path, normalization: str = "auto") -> et.Result:
    return et.run(
        "image_to_image",
        model,
        images=IMAGES,
        num_images=2,
        normalization=normalization,
        tests={"xnnpack": "use_xnnpack=true"},
    )


def test_a_reference_that_overflows_is_said_first_and_has_no_perfect_figure(tmp_path: Path) -> None:
    model = overflowing(tmp_path / "model.tflite")
    result = run(model)
    assert result.warnings[0].startswith("reference: in 2 of 2 examples its outputs hold NaN, infinite numbers or such")
    assert result.warnings[1] == "outputs overflow where pictures are fed as -1..1; --normalization=unit fits"
    for entry in result:
        assert not {"error_to_reference", "ssim_to_reference"} & set(entry.figures)
    assert result["xnnpack"].verdict is None
    fitting = run(model, normalization="unit")
    assert not [text for text in fitting.warnings if "1e30" in text or "--normalization" in text]
    assert fitting["xnnpack"].ssim_to_reference == pytest.approx(1, abs=1e-6)


def test_a_picture_input_that_is_fed_other_values_than_its_operators_show_is_said(tmp_path: Path) -> None:
    model = normalising(tmp_path / "model.tflite")
    told = "is made for 0..1, as its first operators (SUB) say, and pictures are fed as -1..1; --normalization=unit"
    assert [text for text in run(model).warnings if told in text]
    assert not [text for text in run(model, normalization="unit").warnings if "--normalization" in text]


def test_a_diff_says_first_that_its_reference_gives_no_numbers(tmp_path: Path) -> None:
    model = overflowing(tmp_path / "model.tflite", factor=np.inf)
    result = et.diff(model, num_runs=3, input_range="-1:1", inputs="noise", tests={"xnnpack": "use_xnnpack=true"})
    assert result.warnings[0].startswith("reference: in 3 of 3 examples its outputs hold NaN")
