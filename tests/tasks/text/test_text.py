"""Texts: figures of a model done again in NumPy, regressions, and tables that do not fit."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import evaltools as et
from evaltools.errors import DataError, TaskError
from evaltools.model import read_model
from evaltools.tasks.framework.tensors import TaskTensor
from evaltools.tasks.text import text
from evaltools.tasks.text.rows import agree, correlation, model_inputs
from tests import tiny_models
from tests.tasks.declared import SAMPLE, outputs_of, run_sample

FOLDER = SAMPLE / "text"
TOKENS = TaskTensor("tokens", (1, 4), np.dtype("int32"))


def looked_up() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """The table of the model: the bytes of 20 rows of 3 numbers, of which the first is 0."""
    content = (FOLDER / "model.tflite").read_bytes()
    chance = np.random.default_rng([411, 5])
    table = np.concatenate([np.zeros((1, 3)), chance.normal(0, 2, (19, 3))]).astype(np.float32)
    assert table.tobytes() in content
    return table


def test_the_sample_has_the_figures_of_its_table() -> None:
    result = run_sample("text")
    right = []
    for row in csv.DictReader((FOLDER / "texts.csv").read_text().splitlines()):
        scores = looked_up()[[int(word) for word in row["tokens"].split()]].sum(axis=0)
        right.append(int(scores.argmax()) == int(row["label"]))
    for entry in result:
        assert entry.accuracy == pytest.approx(np.mean(right))
    assert result["xnnpack"].same_answer == 1
    assert 0.3 < np.mean(right) < 1


def test_a_regression_has_its_error_and_correlation(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.add_chain(shape=(1, 1), length=1))
    assert [each.name for each in read_model(model).inputs] == ["input"]
    (tmp_path / "table.csv").write_text("input,right\n1,2.5\n2,4\n-3,-7\n")
    result = et.run(
        "text", model, table=tmp_path / "table.csv", label="right", answer="number", tests={"a": "use_xnnpack=true"}
    )
    assert result["a"].absolute_error == pytest.approx(1.5 / 3)
    assert result["a"].figures["correlation"] == pytest.approx(np.corrcoef([2, 4, -6], [2.5, 4, -7])[0, 1])
    assert result["a"].number_shift == 0
    assert np.isnan(correlation([np.array([1.0, 2.0]), np.array([1.0, 3.0])]))


def test_cells_are_inputs_by_their_names_and_filled_up() -> None:
    mask = TaskTensor("mask", (1, 2), np.dtype("float32"))
    made = model_inputs({"mask": np.array([0.5]), "tokens": np.array([3.0, 4.0])}, [TOKENS, mask])
    assert [each.tolist() for each in made] == [[[3, 4, 0, 0]], [[0.5, 0.0]]]
    assert model_inputs({"anything": np.array([1.0])}, [TOKENS])[0].tolist() == [[1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"a": [1.0], "b": [1.0]}, "has no column for the input 'tokens'; it has a, b"),
        ({"tokens": [1.0] * 5}, "has 5 numbers; the input takes 4, so cut the texts"),
        ({"tokens": [1.5]}, "has numbers that int32 cannot hold; give whole ones"),
    ],
)
def test_cells_that_do_not_fit_are_told(cells: dict[str, list[float]], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        model_inputs({name: np.array(values) for name, values in cells.items()}, [TOKENS])


@pytest.mark.parametrize(
    ("content", "label", "message"),
    [
        ("tokens\n1 2\n", "label", "has no column 'label' for --label; it has tokens"),
        ("tokens,label\n1 2\n", "label", "row 1: it has not 2 cells"),
        ("tokens,label\n1 x,0\n", "label", "row 1: could not convert string to float: 'x'; a cell has numbers"),
        ("tokens,label\n1,good\n", "label", "row 1: the label is 'good'; give the number of the output"),
        ("tokens,label\n1,-1\n", "label", "row 1: the label is -1; the first label is 0"),
        ("tokens\n", "", "has no rows"),
    ],
)
def test_tables_that_do_not_fit_are_told(content: str, label: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        text(table=tmp_path / "table.csv", label=label)


def test_a_label_that_is_not_finite_is_told(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("tokens,label\n1,inf\n")
    with pytest.raises(DataError, match="row 1: the label is 'inf'; give a finite number"):
        text(table=tmp_path / "table.csv", label="label", answer="number")


def test_an_output_of_several_numbers_is_no_regression() -> None:
    two = outputs_of(np.zeros((1, 2), np.float32))
    with pytest.raises(TaskError, match=r"the output float32\[1, 2\] is not a finite number"):
        agree(two, two, None)
