"""A task of one's own from its request to its result, with sessions that are not there."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, UsageError
from evaltools.model import ModelFile
from evaltools.result.figure import Figure
from evaltools.result.metrics import of_task
from evaltools.result.result import exit_code_of
from evaltools.runs.evaluate import evaluate
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import ProcessSession, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.framework.beside import OTHER_KERNELS
from evaltools.tasks.framework.definition import Task
from evaltools.tasks.framework.loading import Loaded, load_task
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.framework.steps import prepared_for, recipe_of
from tests import tiny_models
from tests.runtime.fake import FakeSession
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task, write_values
from tests.tasks.observers import Silent

VALUES = TensorSpec("input", np.dtype("float32"), (1, 4))
EXAMPLES = 12


class Shifting(FakeSession):
    """Gives its inputs back, with a number added."""

    def __init__(self, shift: Callable[[float], float]) -> None:
        def outputs(inputs: Sequence[Array]) -> tuple[Array, ...]:
            return (inputs[0].astype(np.float32) + shift(float(inputs[0].max())),)

        super().__init__(outputs)
        self.inputs = (VALUES,)  # type: ignore[misc]
        self.outputs = (VALUES,)  # type: ignore[misc]


def sessions(**shifts: Callable[[float], float]) -> Callable[[ModelFile, Configuration], ProcessSession]:
    """Opens those of these names; no other can be created."""

    def opened(_model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name not in shifts:
            raise ConfigurationUnavailable(f"{configuration.name} is not here")
        return Shifting(shifts[configuration.name])

    return opened


@pytest.fixture
def asked(tmp_path: Path) -> TaskRequest:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    return TaskRequest(
        model_file=model,
        reference=Configuration("reference", kernels="builtin"),
        tests=(Configuration("a"),),
        loaded=load_task(f"{write_task(tmp_path)}:brightness"),
        values={"values": write_values(tmp_path, EXAMPLES), "times": 1.0},
    )


def figures_of(asked: TaskRequest, **shifts: Callable[[float], float]) -> dict[str, Figure]:
    """Those of the configuration ``a``."""
    return evaluate(asked, Silent(), sessions(**shifts)).rows[1].figures


def test_each_metric_has_its_mean_and_of_few_examples_without_bounds_no_interval(asked: TaskRequest) -> None:
    figures = figures_of(asked, reference=lambda _value: 0.0, a=lambda value: value)
    distances = [abs(number / 10 - 0.25) for number in range(EXAMPLES)]
    found, share = figures["distance"], figures["near"]
    assert found.value == pytest.approx(np.mean(distances), rel=1e-6)
    assert found.spread is not None
    assert found.spread.deviation == pytest.approx(np.std(distances, ddof=1), rel=1e-5)
    assert (found.count, found.interval) == (EXAMPLES, None)
    assert share.spread is not None
    assert share.spread.bounds is None
    assert share.interval is not None


@pytest.mark.parametrize(
    ("shift", "not_clean"),
    [(0.02, "gave other outputs when the same input came again"), (1e-7, ""), (0.0, "")],
)
def test_outputs_that_change_when_the_same_input_comes_again_are_no_clean_pass(
    asked: TaskRequest, shift: float, not_clean: str
) -> None:
    """A delegate that moves every third inference; a few roundings of floats are none."""
    calls = itertools.count()
    moving = sessions(reference=lambda _value: 0.5, a=lambda _value: 0.5 + shift * (next(calls) % 3 == 0))
    result = evaluate(asked, Silent(), moving)
    assert [entry.not_clean for entry in result.rows] == ["", not_clean]
    assert (exit_code_of(result) == exit_codes.EXAMPLES_FAILED) == bool(not_clean)


def test_changes_are_of_the_same_examples(asked: TaskRequest) -> None:
    change = figures_of(asked, reference=lambda _value: 0.0, a=lambda value: -value)["distance"].change
    differences = [number / 10 + 0.25 - 0.25 for number in range(EXAMPLES)]
    assert change is not None
    assert change.spread is not None
    assert change.against == "reference"
    assert change.value == pytest.approx(np.mean(differences), rel=1e-5)
    assert change.spread.unequal == EXAMPLES - 1
    assert change.spread.deviation == pytest.approx(np.std(differences, ddof=1), rel=1e-4)
    assert change.interval is None


@pytest.mark.parametrize(
    ("shift", "margin", "verdicts"),
    [
        (-1.0, 0.005, ["worse", "worse"]),
        (0.2, 0.005, ["better", "unchanged"]),
        (0.2, 0.3, ["equivalent", "unchanged"]),
    ],
)
def test_the_verdict_knows_which_direction_is_better(
    asked: TaskRequest, shift: float, margin: float, verdicts: list[str]
) -> None:
    values = {"values": write_values(Path(asked.values["values"]).parent, 60), "times": 1.0}
    request = replace(asked, values=values, margin=margin)
    result = evaluate(request, Silent(), sessions(reference=lambda _value: 0.0, a=lambda value: shift + 1e-3 * value))
    assert [entry.kind for entry in result.rows[1].verdicts] == verdicts
    assert of_task(result.rows[1]).keys() == {"distance", "near"}


def test_scores_without_a_metric_are_a_warning(asked: TaskRequest, tmp_path: Path) -> None:
    file = write_task(tmp_path, task_files.BRIGHTNESS.replace(', et.mean("near")', ""))
    request = replace(asked, loaded=load_task(f"{file}:brightness"))
    result = evaluate(request, Silent(), sessions(reference=float, a=float))
    [warning] = result.warnings
    assert "score also gives 'near'; add evaltools.mean(\"near\") to the metrics to see it" in warning


@pytest.mark.usefixtures("busy_machine")
def test_a_busy_machine_is_a_warning_beside_the_latencies(asked: TaskRequest) -> None:
    result = evaluate(asked, Silent(), sessions(reference=float, a=float))
    assert result.environment.load is not None
    assert result.environment.load.others_running == 100_000
    assert [text for text in result.warnings if text.startswith("the machine was busy: 100000 other processes on ")]


def test_a_run_that_is_to_be_resumed_needs_a_task_in_a_file(asked: TaskRequest, tmp_path: Path) -> None:
    loaded = Loaded(lambda: Task(examples=[], prepare=str, score=dict), None)  # type: ignore[arg-type]
    request = replace(asked, loaded=loaded, values={}, execution=replace(asked.execution, run_dir=tmp_path / "run"))
    with pytest.raises(UsageError, match="is in no file that could be loaded again, so its run cannot be resumed"):
        TaskRun(request)


SAME = """
    def same(outputs, reference, target):
        return {"same": 1 - abs(float(outputs[0].mean() - reference[0].mean()))}

    return et.Task("""
AGREEMENT = (
    task_files.BRIGHTNESS.replace("    return et.Task(", SAME)
    .replace("score=score,", "agree=same,")
    .replace('et.mean("distance", better="lower"), et.mean("near")', 'et.mean("same", bounds=(0, 1))')
)


@pytest.mark.parametrize(("shift", "other_kernels", "verdict"), [
    (0.08, 0.05, "equivalent"), (0.08, 0.0, "worse"), (0.2, 0.05, "worse"),
])  # fmt: skip
def test_a_delegate_may_agree_as_little_as_twice_what_other_cpu_kernels_do(
    asked: TaskRequest, tmp_path: Path, shift: float, other_kernels: float, verdict: str
) -> None:
    task = load_task(f"{write_task(tmp_path, AGREEMENT, 'agreeing.py')}:brightness")
    values = {"values": write_values(tmp_path, 400), "times": 1.0}
    request = replace(asked, loaded=task, values=values)
    shifts = {"reference": float, "a": lambda value: value + shift, OTHER_KERNELS: lambda value: value + other_kernels}
    result = evaluate(request, Silent(), sessions(**shifts))
    assert [entry.kind for entry in result.rows[1].verdicts] == [verdict]
    assert (f"plain C++ kernels change it by {-other_kernels:+.3g} on" in str(result.blocks)) == (other_kernels > 0)


def test_other_kernels_are_not_run_where_nothing_agrees_with_a_reference(asked: TaskRequest) -> None:
    observer = Silent()
    evaluate(asked, observer, sessions(reference=float, a=float))
    assert OTHER_KERNELS not in observer.phases


CHOOSING = """
import evaltools as et

@et.task
def brightness(values: str = "", factor: int = 1) -> et.Task:
    def task(factor: int) -> et.Task:
        def prepare(number, tensors):
            return et.WithContext([[[factor * number] * 4]], {"factor": factor})

        def check(trial):
            (tried,) = trial.run([0])
            return et.Checked(["it was looked at"], {"factor": 1 + round(float(tried.outputs[0].max()))})

        return et.Task(
            examples=[et.Example(str(number), float(number)) for number in range(1, 4)],
            prepare=prepare,
            score=lambda outputs, target: {"factor": outputs.context["factor"]},
            metrics=[et.mean("factor")],
            check=check,
            chosen=lambda choice: task(choice["factor"]),
        )

    return task(factor)
"""


@pytest.fixture
def choosing(asked: TaskRequest, tmp_path: Path) -> TaskRequest:
    """A task that sees 1 + what its first example gives, and multiplies by that."""
    (tmp_path / "choosing.py").write_text(CHOOSING)
    loaded = load_task(f"{tmp_path / 'choosing.py'}:brightness")
    return replace(asked, loaded=loaded, values={"values": "", "factor": 1})


def test_what_a_task_chooses_by_its_first_outputs_is_carried_out(choosing: TaskRequest) -> None:
    """The first example is 1, the reference adds 5: the task takes the factor 7."""
    result = evaluate(choosing, Silent(), sessions(reference=lambda _value: 5.0, a=lambda _value: 5.0))
    assert [entry.value("factor") for entry in result.rows] == [7.0, 7.0]
    assert result.warnings[0] == "it was looked at"


def test_another_process_prepares_what_was_chosen(choosing: TaskRequest) -> None:
    run = TaskRun(choosing)
    assert run.task.chosen is not None
    for task, choice, value in ((run.task, None, 2.0), (run.task.chosen({"factor": 3}), {"factor": 3}, 6.0)):
        recipe = recipe_of(choosing.loaded, choosing.values, task, run.tensors, choice)
        assert recipe is not None
        for prepared in (prepared_for(task, run.tensors, 1), pickle.loads(pickle.dumps(recipe(1)))()):
            assert prepared.inputs[0].tolist() == [[value] * 4]


def test_a_check_that_needs_outputs_which_nothing_gives_leaves_nothing_to_measure(choosing: TaskRequest) -> None:
    assert choosing.loaded.origin is not None
    file = choosing.loaded.origin.file
    file.write_text(
        CHOOSING.replace(
            "            (tried,)", "            if not trial.run([0]): raise trial.trouble\n            (tried,)"
        )
    )
    request = replace(choosing, loaded=load_task(f"{file}:brightness"))

    def broken(_value: float) -> float:
        raise InferenceError("no such kernel")

    result = evaluate(request, Silent(), sessions(reference=broken, a=broken))
    assert [(entry.status, entry.reason) for entry in result.rows] == [("not measured", "no such kernel")] * 2
    assert result.examples_done == 0
