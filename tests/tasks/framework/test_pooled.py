"""Metrics of all examples together, and agreement with the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaltools as et
from evaltools.api.frames import example_rows
from evaltools.configuration import Configuration
from evaltools.errors import InferenceError, TaskError
from evaltools.metrics.jackknife import contributions
from evaltools.result.figure import Figure
from evaltools.result.metrics import of_task
from evaltools.result.result import Result
from evaltools.result.section import Table
from evaltools.runs.evaluate import evaluate
from evaltools.tasks.framework.definition import Task, mean, pooled
from evaltools.tasks.framework.figures import FigureTable
from evaltools.tasks.framework.loading import Loaded
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.framework.tensors import Outputs
from tests import tiny_models
from tests.tasks.framework.test_evaluation import sessions
from tests.tasks.framework.test_task import a_task, own_task
from tests.tasks.observers import Silent

Rows = Sequence[npt.NDArray[Any]]
INPUTS = (0.1, 0.4, 0.5, 0.9, 1.0)


def ratio(rows: Rows) -> float:
    parts, wholes = np.sum(rows, axis=0)
    return float(parts / wholes) if wholes else math.nan


def ranks(rows: Rows) -> npt.NDArray[np.float64]:
    return np.array([float(row[0] > 0.5) for row in rows])


def score(outputs: Outputs, target: float) -> dict[str, Any]:
    return {"part": np.array([float(outputs[0].max()), 1 + target])}


def agreement(ours: Outputs, theirs: Outputs, _target: object) -> dict[str, float]:
    return {"same": float(np.array_equal(ours[0], theirs[0]))}


def task_of(figure: Any = ratio) -> Task:
    return Task(
        examples=[et.Example(str(value), value, value) for value in INPUTS],
        prepare=lambda value, tensors: [np.full(tensors[0].shape, value, np.float32)],
        score=score,
        agree=agreement,
        metrics=[pooled("part", figure, bounds=(0.0, 1.0)), mean("same")],
    )


def largest(rows: Rows) -> float:
    return max(float(row[0]) for row in rows)


def first(rows: Rows) -> float:
    return float(len(rows) > 0)


def returned(task: Task) -> Task:
    return task


def result_of(folder: Path, task: Task, **shifts: Any) -> Result:
    """What the task found, with every example."""
    model = folder / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    asked = TaskRequest(
        model_file=model,
        reference=Configuration("reference", kernels="builtin"),
        tests=(Configuration("a"),),
        loaded=Loaded(partial(returned, task), None),
        record_examples=True,
    )
    return evaluate(asked, Silent(), sessions(**shifts))


def figures_of(folder: Path, task: Task, **shifts: Any) -> dict[str, dict[str, Figure]]:
    """What the task found of each configuration."""
    return {entry.name: of_task(entry) for entry in result_of(folder, task, **shifts).rows}


def still(_value: float) -> float:
    return 0.0


def change_of(figure: Figure) -> tuple[float, int]:
    """The change against the reference, and how many examples make it."""
    assert figure.change is not None
    assert figure.change.spread is not None
    return figure.change.value, figure.change.spread.unequal


def test_a_figure_that_an_example_alone_decides_is_0_without_it() -> None:
    rows = [np.array([1.0, 2.0]), np.array([0.0, 0.0])]
    assert contributions(ratio, rows).tolist() == [0.75, 0.25]


def test_a_pooled_metric_has_the_figure_of_all_examples_and_the_interval_of_the_jackknife(tmp_path: Path) -> None:
    found = figures_of(tmp_path, task_of(), reference=still, a=still)
    assert found["reference"]["same"].interval is None, "that of the reference with itself is certain"
    assert found["a"]["same"].interval is not None
    pooled_part = found["a"]["part"]
    assert pooled_part.value == pytest.approx(sum(INPUTS) / sum(1 + value for value in INPUTS))
    without = [
        sum(INPUTS[:place] + INPUTS[place + 1 :]) / sum(1 + value for value in INPUTS[:place] + INPUTS[place + 1 :])
        for place in range(5)
    ]
    error = math.sqrt(4 / 5 * sum((value - np.mean(without)) ** 2 for value in without))
    assert pooled_part.spread is not None
    assert pooled_part.spread.deviation / math.sqrt(5) == pytest.approx(error, rel=1e-5)
    assert pooled_part.interval is None, "five examples are few, and what each adds is not within the stated bounds"


def test_examples_that_differ_are_those_whose_numbers_differ(tmp_path: Path) -> None:
    found = figures_of(tmp_path, task_of(), reference=still, a=lambda value: 0.1 if value > 0.8 else 0.0)
    expected = 0.2 / sum(1 + value for value in INPUTS)
    assert list(change_of(found["a"]["part"])) == pytest.approx([expected, 2], rel=1e-5)
    assert change_of(found["a"]["same"])[0] == pytest.approx(-0.4)


def test_an_example_whose_numbers_differ_without_a_change_of_the_figure_counts_as_the_same(tmp_path: Path) -> None:
    found = figures_of(tmp_path, task_of(largest), reference=still, a=lambda value: -0.05)
    assert list(change_of(found["a"]["part"])) == pytest.approx([-0.05, 1], rel=1e-5)
    none = figures_of(tmp_path, task_of(first), reference=still, a=lambda value: -value / 10)
    assert change_of(none["a"]["part"])[1] == 0


def test_what_examples_contribute_has_the_figure_as_its_mean_and_is_no_score(tmp_path: Path) -> None:
    """Such a number of an example lies outside of what the figure can be, here 0 to 1."""
    result = result_of(tmp_path, task_of(), reference=still, a=lambda value: 5 * value)
    part = result.rows[1].figures["part"]
    assert part.scores == []
    added = [each for each in part.contributions if each is not None]
    assert np.mean(added) == pytest.approx(part.value)
    assert len(added) == 5
    assert result.rows[1].figures["same"].contributions == []
    assert set(result.tables["changed"]["metric"]) == {"part_contribution", "same"}
    assert set(example_rows(result)[0]) == {"example", "model", "configuration", "part_contribution", "same"}
    captions = [block.caption for section in result.blocks for block in section.blocks if isinstance(block, Table)]
    shown = "part_contribution, what each adds to part and no score of it: the examples that a loses most on"
    assert shown in captions
    assert "same: the examples that a loses most on" in captions


def test_a_figure_with_scores_of_its_own_has_these_and_no_contributions(tmp_path: Path) -> None:
    result = result_of(tmp_path, task_of(ranks), reference=still, a=lambda value: value)
    part = result.rows[1].figures["part"]
    assert part.contributions == []
    assert np.mean([each for each in part.scores if each is not None]) == pytest.approx(part.value)


def test_a_figure_may_give_a_score_for_each_example(tmp_path: Path) -> None:
    found = figures_of(tmp_path, task_of(ranks), reference=still, a=lambda value: value)
    assert [found[name]["part"].value for name in ("reference", "a")] == [0.4, 0.8]


def test_there_is_no_mean_where_there_is_no_such_figure(tmp_path: Path) -> None:
    found = figures_of(tmp_path, task_of(lambda rows: math.nan), reference=still, a=still)
    assert [own.keys() for own in found.values()] == [{"same"}] * 2


def test_agreement_is_not_measured_where_the_reference_fails(tmp_path: Path) -> None:
    def failing(value: float) -> float:
        if value > 0.8:
            raise InferenceError("node 7 failed")
        return 0.0

    found = figures_of(tmp_path, task_of(), reference=failing, a=still)
    assert (found["a"]["same"].count, found["a"]["part"].count) == (3, 5)
    assert found["a"]["same"].scores == [1.0, 1.0, 1.0, None, None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "gave error='text' for 'a'; give an array"),
        ([math.nan, 1.0], "gave error=an array with other numbers for 'a'; give finite numbers"),
        ([object()], "gave error an array of object for 'a'; give numbers"),
    ],
)
def test_what_a_pooled_metric_cannot_take_is_told(given: object, message: str) -> None:
    task = own_task(metrics=[pooled("error", ratio)], score=lambda outputs, target: {"error": given})
    with pytest.raises(TaskError, match=message.replace("[", r"\[")):
        task.observe(task.prepare(0), [np.ones((1, 2), np.float32)])


def test_a_task_may_have_agreement_alone() -> None:
    task = replace(a_task(), score=None, agree=lambda ours, theirs, target: {"error": float(target)})
    outputs = [np.ones((1, 2), np.float32)]
    made = own_task(score=None, agree=task.agree)
    assert made.observe(made.prepare(0), outputs, outputs).values[0] == 2.0
    assert made.observe(made.prepare(0), outputs, None).values[0] is None


@pytest.mark.parametrize(
    ("changing", "others", "differing"),
    [
        (range(1000), range(0), 1000),
        (range(0, 1000, 2), range(1, 1000, 2), 500),
        (range(0), range(1000), 0),
        ((4,), range(5, 1004), 5),
        ((5,), (4, *range(6, 1003)), 1),
    ],
    ids=["all that differ", "every second one", "none", "one that is tried", "one that is not"],
)
def test_of_many_examples_some_tell_how_many_change_the_figure(
    changing: Sequence[int], others: Sequence[int], differing: int
) -> None:
    """A row is what counts, and what does not: of 3000, these differ in the first, those in the second number."""
    before = {number: (np.array([1.0, 0.0]),) for number in range(3000)}
    after = dict(before)
    after |= {number: (np.array([0.0, 0.0]),) for number in changing}
    after |= {number: (np.array([1.0, 5.0]),) for number in others}
    table = FigureTable([pooled("part", lambda rows: float(np.sum(rows, axis=0)[0]))], {"a": before, "b": after})
    change = table.changes("a", "b")["part"]
    assert (change.change, change.differing) == (-len(changing), differing)


def test_what_changed_is_counted_over_all_metrics_and_the_largest_loss_is_found_by_its_direction() -> None:
    """Example 3 was finished by one side alone, and example 2 has no second score on either."""
    before = {0: row(0.5, 1.0), 1: row(0.5, 2.0), 2: row(0.5, None), 3: row(0.0, 0.0)}
    after = {0: row(0.5, 1.0), 1: row(0.5, 9.0), 2: row(0.1, None)}
    table = FigureTable([mean("right"), mean("error", better="lower")], {"a": before, "b": after})
    assert table.changed_examples("a", "b") == (2, 3)
    assert table.changed_examples("a", "a") == (0, 4)
    assert [table.worst_example("a", "b", metric) for metric in ("right", "error")] == [2, 1]


def row(*values: float | None) -> tuple[npt.NDArray[np.float64] | None, ...]:
    return tuple(None if value is None else np.array(value) for value in values)
