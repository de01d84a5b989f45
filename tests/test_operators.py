"""The benchmark that draws models of one operator: what it draws can be run, and what is wrong or named is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.operators import REFERENCE, Drawn, look, main, names_a_fault
from evaltools.model import ModelFile, read_model
from tests.model.test_gpu_faults import convolution


def save(folder: Path, drawn: Drawn) -> ModelFile:
    path = folder / "drawn.tflite"
    path.write_bytes(drawn.content)
    return read_model(path)


def test_a_run_with_a_seed_is_the_same_and_finds_xnnpack_right(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert main(["--configuration=use_xnnpack=true", "--models=10", "--seed=2"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "wrong, not named: " not in printed[0]


def test_a_model_with_a_fault_is_named(tmp_path: Path) -> None:
    drawn = Drawn("CONV_2D", "", convolution(), [np.ones((1, 8, 8, 4), np.int8)])
    model = save(tmp_path, drawn)
    assert names_a_fault(model)
    assert look(model, REFERENCE, drawn) == "right"
