"""The benchmarks that no other test runs: each prints what it says, of small models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import locate_faults, locate_time, operators, page
from benchmarks.locate_faults import Answer, Planted, delegate_options, faults_of
from evaltools.delegates import parse_external_options
from evaltools.model import read_model
from tests import interpreters, locate_models
from tests.model.test_gpu_faults import convolution


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return path


def test_the_delegate_understands_each_fault_that_is_planted(model: Path, faulty_delegate: Path) -> None:
    for planted in faults_of(model, 2):
        options = parse_external_options(delegate_options(planted))
        delegate = interpreters.load_delegate("ai_edge_litert", faulty_delegate, **options)
        interpreter = interpreters.make_interpreter("ai_edge_litert", model.read_bytes(), delegate)
        assert interpreters.delegated_outputs(interpreter) == [["scores"]]


def test_faults_that_are_found_are_counted_by_fault_and_by_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a command that finds what is large alone."""

    def answer(planted: Planted, *_rest: object) -> Answer:
        found = planted.operator if planted.size == "large" else None
        return Answer("confirmed", () if found is None else (found,), 2.0)

    monkeypatch.setattr(locate_faults, "answer_of", answer)
    assert locate_faults.main([str(model), "--operators=3", f"--delegate={model}"]) == 0
    rows = {line[:44].strip(): line[44:].split() for line in capsys.readouterr().out.splitlines() if line}
    assert rows["none"] == ["1", "1", "0", "0", "0", "2.0"]
    assert rows["small"] == ["3", "0", "0", "3", "0", "2.0"]
    assert rows["large"] == ["3", "3", "0", "0", "0", "2.0"]
    assert rows["net"] == ["16", "4", "0", "12", "0", "2.0"]


def test_the_linear_search_opens_every_prefix_beside_ours(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert locate_time.main([str(model), "--num_inputs=1", "--num_runs=1"]) == 0
    _, linear, whole = capsys.readouterr().out.splitlines()
    assert linear.split()[:2] == ["net", "linear"]
    assert whole.split()[:2] == ["net", "evaltools"]
    assert int(whole.split()[3]) > 8


def test_models_of_one_operator_with_a_seed_are_the_same_and_right_on_xnnpack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = []
    for _ in range(2):
        assert operators.main(["--configuration=use_xnnpack=true", "--models=10", "--seed=2"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "wrong, not named: " not in printed[0]


def test_a_model_of_one_operator_with_a_fault_is_named(tmp_path: Path) -> None:
    drawn = operators.Drawn("CONV_2D", "", convolution(), [np.ones((1, 8, 8, 4), np.int8)])
    path = tmp_path / "drawn.tflite"
    path.write_bytes(drawn.content)
    assert operators.names_a_fault(read_model(path))
    assert operators.look(read_model(path), operators.REFERENCE, drawn) == "right"


def test_records_that_are_made_up_are_summed_up_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert page.main(["--examples=40", "--configurations=2", "--rounds=1"]) == 0
    assert "40 examples, 2 configurations, the result with every answer:" in capsys.readouterr().out
