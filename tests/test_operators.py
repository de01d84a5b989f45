"""The benchmark that draws models of one operator: what it draws can be run, and what is wrong or named is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.operators import FAMILIES, REFERENCE, Draw, Drawn, is_right, look, main, names_a_fault, output_of
from evaltools.model import ModelFile, read_model
from evaltools.runtime import open_session
from evaltools.runtime.session import Array
from tests.model.test_gpu_faults import convolution

DRAWN = 12


def save(folder: Path, drawn: Drawn) -> ModelFile:
    path = folder / "drawn.tflite"
    path.write_bytes(drawn.content)
    return read_model(path)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_drawn_can_be_run_by_the_reference(tmp_path: Path, family: object) -> None:
    draw = Draw(4)
    assert callable(family)
    for _ in range(DRAWN):
        drawn = family(draw)
        model = save(tmp_path, drawn)
        assert [tuple(tensor.shape) for tensor in model.inputs] == [values.shape for values in drawn.inputs]
        assert np.isfinite(output_of(model, REFERENCE, drawn, open_session).astype(np.float64)).all()


def test_a_run_with_a_seed_is_the_same_and_finds_xnnpack_right(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert main(["--configuration=use_xnnpack=true", "--models=10", "--seed=2"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "wrong, not named: " not in printed[0]


@pytest.mark.parametrize(
    ("expected", "given", "is_near"),
    [
        (np.array([1, 4], np.int8), np.array([3, 2], np.int8), True),
        (np.array([1, 4], np.int8), np.array([1, 7], np.int8), False),
        (np.array([-128], np.int8), np.array([127], np.int8), False),
        (np.array([0.0, 10.0]), np.array([0.009, 10.0]), True),
        (np.array([0.0, 10.0]), np.array([0.011, 10.0]), False),
        (np.array([1.0]), np.array([np.nan]), False),
    ],
)
def test_how_far_an_answer_may_be_away(expected: Array, given: Array, is_near: bool) -> None:
    assert is_right(expected, given) == is_near


def test_a_model_with_a_fault_is_named(tmp_path: Path) -> None:
    drawn = Drawn("CONV_2D", "", convolution(), [np.ones((1, 8, 8, 4), np.int8)])
    model = save(tmp_path, drawn)
    assert names_a_fault(model)
    assert look(model, REFERENCE, drawn) == "right"
