"""What is suggested next fits the machine, the model and the flags that were given."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.metrics.output_difference import KindFigures, Scores
from evaltools.report.words.next_steps import after_evaluation
from evaltools.result.facts import Tensor
from evaltools.result.result import Result
from tests.report.tables.cases import REFERENCE, judged
from tests.results import configuration, result, row_with
from tests.tasks.inference_diff.results import DIFFERENCE, comparison
from tests.tasks.inference_diff.results import judged as output
from tests.tasks.inference_diff.results import result as diff_result

SCORES = Scores(4, 3, None)
KEYPOINTS: dict[str, float | None] = {
    "points": 17,
    "confident": 9,
    "lost": 0,
    "new": 0,
    "displaced": 0,
    "mean_move": None,
    "largest_move": None,
    "largest_move_of_others": None,
}


def typed(made: Result, *command: str) -> Result:
    return replace(made, environment=replace(made.environment, command=["evaltools", *command]))


def steps_of(made: Result) -> str:
    return "\n".join(step.line for step in after_evaluation(made, made.rows[-1]))


def worse(*command: str) -> Result:
    return typed(result(REFERENCE, judged("gpu", "worse", "top1")), *command)


def test_outputs_are_compared_with_the_same_pictures_given_in_the_same_way() -> None:
    found = steps_of(worse("imagenet", "m.tflite", "--images=val", "--channel_order", "bgr"))
    assert "evaltools diff m.tflite" in found
    assert "--input_images=val --channel_order=bgr" in found


def test_what_ran_on_a_phone_is_not_tried_on_this_computer() -> None:
    on_phone = ("device", "run", "imagenet", "m.tflite", "--serials=R58")
    assert "evaltools device run diff m.tflite" in steps_of(worse(*on_phone))
    assert "--serials=R58" in steps_of(worse(*on_phone))
    refused = replace(configuration("gpu"), status="not measured", reason="failed to delegate CONV", runtime=None)
    assert "locate" in steps_of(typed(result(REFERENCE, refused), "imagenet", "m.tflite"))
    assert "locate" not in steps_of(typed(result(REFERENCE, refused), *on_phone))


@pytest.mark.parametrize(
    "changes",
    [
        {"crashes": 2},
        {
            "status": "not measured",
            "runtime": None,
            "reason": "the process of this configuration died while the model was loaded (SIGSEGV)",
        },
    ],
)
def test_after_a_crash_the_operator_is_looked_for(changes: dict[str, Any]) -> None:
    crashed = row_with(configuration("gpu"), **changes)
    made = typed(result(REFERENCE, crashed), "imagenet", "m.tflite")
    assert "evaltools locate m.tflite" in steps_of(made)


@pytest.mark.parametrize("reason", ["failed to delegate CONV", "the process of this configuration died (SIGSEGV)"])
def test_a_search_has_every_flag_that_was_typed_about_inputs(reason: str) -> None:
    entry = row_with(configuration("gpu"), status="not measured", runtime=None, reason=reason)
    flags = ["--input_shape=image:8,16,16,3", "--seed=4", "--normalization=unit"]
    found = steps_of(typed(result(REFERENCE, entry), "diff", "m.tflite", *flags, "--num_runs=3"))
    assert "evaltools locate m.tflite" in found
    assert " ".join(flags) in found
    assert "--num_runs" not in found


def test_a_shape_that_meets_a_reshape_of_fixed_sizes_leads_nowhere_else() -> None:
    reason = "reshape_utils.h num_input_elements != num_output_elements (1568 != 196). Node number 1 (RESHAPE) failed"
    reference = replace(configuration("reference", role="reference"), status="not measured", reason=reason)
    entry = row_with(configuration("gpu"), status="not measured", runtime=None, reason="failed to prepare")
    (step,) = after_evaluation(typed(result(reference, entry), "diff", "m.tflite"), entry)
    assert step.line.startswith("#1 RESHAPE has fixed sizes, of 196 numbers, and is fed 1568: export the model with -1")


@pytest.mark.parametrize(
    ("dtype", "shape", "known", "task"),
    [
        ("float32", [1, 224, 224, 3], {"scores": SCORES}, "imagenet"),
        ("float32", [1, 16000], {"scores": SCORES}, "audio"),
        ("int32", [1, 128], {"scores": SCORES}, "text"),
        ("float32", [1, 192, 192, 3], {"of_kind": KindFigures("keypoints", KEYPOINTS, {})}, "keypoints"),
    ],
)
def test_the_task_is_named_that_fits_the_model(dtype: str, shape: list[int], known: dict[str, Any], task: str) -> None:
    found = diff_result(comparison("fast", output(replace(DIFFERENCE, **known))))
    one = replace(found.model, inputs=[Tensor("in", dtype, shape, None, None)], outputs=found.model.outputs[:1])
    made = replace(found, models=[one])
    entry = judged("fast", "diverged")
    steps = after_evaluation(made, entry)
    assert any(f"evaltools {task}," in step.text for step in steps)


def test_a_model_with_landmarks_beside_their_scores_is_no_classifier() -> None:
    """It has pictures as its input, and an output of many numbers, as a classifier has."""
    found = diff_result(comparison("fast", output(replace(DIFFERENCE, scores=SCORES))))
    landmarks = Tensor("landmarks", "float32", [1, 1404], None, None)
    picture = Tensor("in", "float32", [1, 192, 192, 3], None, None)
    beside = replace(found.model, inputs=[picture], outputs=[landmarks, replace(landmarks, name="score", shape=[1, 1])])
    steps = after_evaluation(replace(found, models=[beside]), judged("fast", "diverged"))
    assert not any("imagenet" in step.line for step in steps)
    assert any("a task of your own (evaltools run) can say whether" in step.text for step in steps)
