"""What a native tool is given, and material that it could not take."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.datasets.native_ground_truth import parse_ground_truth
from evaltools.device.native_inputs import (
    NativeInputs,
    normalization_warnings,
    prepare_coco,
    prepare_diff,
    prepare_imagenet,
    prepare_native,
)
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.model.metadata import InputNormalization
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.inference_diff.input_options import InputOptions
from tests import tiny_models
from tests.device.native.runs import PLAIN, REFERENCE
from tests.tasks.built_in import coco_options, imagenet_options
from tests.tasks.inference_diff.fakes import request_for


def imagenet_request(**changes: Any) -> TaskRequest:
    options = imagenet_options(sample.images_dir(), sample.ground_truth_file(), sample.labels_file())
    return replace(
        TaskRequest(model_file=sample.model_file("int8"), reference=REFERENCE, tests=(PLAIN,), **options),
        **changes,
    )


def imagenet_with(**changes: Any) -> TaskRequest:
    made = imagenet_request()
    return replace(made, values={**made.values, **changes})


def coco_request(truth: bool = True, **changes: Any) -> TaskRequest:
    options = coco_options(
        sample.detection_images_dir(),
        ground_truth_annotations=sample.detection_annotations_file() if truth else None,
        model_output_labels=sample.detection_labels_file(),
    )
    return replace(
        TaskRequest(model_file=sample.detection_model_file("int8"), reference=REFERENCE, tests=(PLAIN,), **options),
        **changes,
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"bootstrap_resamples": 5}, "--bootstrap_resamples=5: use 100 to 100000, or 0 to judge no change"),
        ({"ground_truth_annotations": None, "coco_evaluator": "pycocotools"}, "--coco_evaluator has no effect without"),
        ({"num_images": -1}, "--num_images=-1: use 0 for all pictures"),
    ],
)
def test_what_coco_cannot_judge_is_refused_before_it_runs(option: dict[str, Any], message: str) -> None:
    made = coco_request()
    with pytest.raises(UsageError, match=message):
        prepare_coco(replace(made, values={**made.values, **option}))
    with pytest.raises(UsageError, match="--margin=200 points: use less than 100 points"):
        prepare_coco(replace(made, margin=2.0))
    with pytest.raises(UsageError, match="--margin=0.5 has no unit: 0.5 points or 50 points"):
        prepare_coco(replace(made, margin=0.5, margin_has_unit=False))


def diff_request(**changes: Any) -> TaskRequest:
    made = {
        "model_file": sample.model_file("int8"),
        "reference": Configuration("reference"),
        "tests": (PLAIN,),
        "inputs": InputOptions(num_runs=5),
    }
    return request_for(**{**made, **changes})


def test_imagenet_has_all_pictures_with_their_labels() -> None:
    inputs = prepare_imagenet(imagenet_with(num_images=7))
    labels = dict(zip(inputs.data.paths, inputs.data.truths, strict=True))
    assert set(inputs.pictures) == set(labels)
    assert inputs.truth == "".join(f"{labels[picture]}\n" for picture in inputs.pictures).encode()
    assert inputs.label_text == sample.labels_file().read_bytes()


def test_labels_lose_the_line_ends_of_windows(tmp_path: Path) -> None:
    for name, file in (("labels", sample.labels_file()), ("truth", sample.ground_truth_file())):
        (tmp_path / name).write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    inputs = prepare_imagenet(
        imagenet_with(model_output_labels=tmp_path / "labels", ground_truth_labels=tmp_path / "truth")
    )
    assert inputs.label_text == sample.labels_file().read_bytes()
    assert inputs.truth == sample.ground_truth_file().read_bytes()


def write_png_folder(folder: Path) -> TaskRequest:
    shutil.copytree(sample.images_dir(), folder / "images")
    first = sorted((folder / "images").iterdir())[0]
    Image.open(first).save(first.with_suffix(".png"))
    first.unlink()
    return imagenet_with(ground_truth_images_path=folder / "images")


def write_foreign_labels(folder: Path) -> TaskRequest:
    (folder / "labels").write_text("".join(f"other {number}\n" for number in range(12)))
    return imagenet_with(model_output_labels=folder / "labels")


def write_short_labels(folder: Path) -> TaskRequest:
    (folder / "labels").write_text("one\ntwo\n")
    return imagenet_with(model_output_labels=folder / "labels")


def write_mixed_model(folder: Path) -> TaskRequest:
    (folder / "m.tflite").write_bytes(tiny_models.classifier(classes=12, input_dtype="uint8"))
    return imagenet_request(model_file=folder / "m.tflite")


def write_small_model(folder: Path) -> TaskRequest:
    (folder / "m.tflite").write_bytes(tiny_models.classifier(classes=9))
    return imagenet_request(model_file=folder / "m.tflite")


@pytest.mark.parametrize(
    ("write", "kind", "said"),
    [
        (write_png_folder, DataError, "the native tool reads pictures that end in .jpeg, .jpg, .rgb8 only"),
        (write_foreign_labels, DataError, "not one label in"),
        (write_short_labels, DataError, "has 2 lines, the model's output has 12, and the native tool wants as many"),
        (
            write_mixed_model,
            ModelError,
            "input uint8, output float32. The native tool takes the output for the input's",
        ),
        (write_small_model, ModelError, "expected [1,N] with N >= 10"),
    ],
)
def test_what_imagenet_could_not_evaluate_is_refused(
    tmp_path: Path, write: Callable[[Path], TaskRequest], kind: type[UsageError], said: str
) -> None:
    with pytest.raises(kind) as caught:
        prepare_imagenet(write(tmp_path))
    assert said in str(caught.value)


def test_coco_gets_the_ground_truth_in_the_native_form_and_room_for_every_class() -> None:
    inputs = prepare_coco(coco_request())
    content = inputs.truth
    assert content is not None
    truth = parse_ground_truth(content, "the ground truth")
    assert [picture.name for picture in truth.pictures] == [picture.name for picture in inputs.pictures]
    assert inputs.label_text is not None
    lines = inputs.label_text.decode().split("\n")[:-1]
    assert len(lines) >= 1000
    assert lines[:3] == ["???", "checkerboard", "cross"]
    assert prepare_coco(coco_request(truth=False)).truth is None


def test_a_classifier_is_no_detector() -> None:
    with pytest.raises(ModelError, match="is not a detector"):
        prepare_coco(coco_request(model_file=sample.model_file("int8")))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reference": None}, "the native tool always compares with its own reference"),
        ({"reference": REFERENCE}, "--reference: --kernels=builtin: the native tool's reference is one thread"),
        ({"reference": Configuration("reference", num_threads=2)}, "--num_interpreter_threads=2"),
        ({"max_quanta": ("1",)}, "gives only avg_error; use --max_avg_error"),
        ({"max_avg_error": ("nothing=1",)}, "nothing"),
    ],
)
def test_what_inference_diff_could_not_compare_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        prepare_diff(diff_request(**changes))
    assert said in str(caught.value)


def test_inference_diff_has_the_native_number_of_runs_unless_another_is_asked_for() -> None:
    assert prepare_diff(diff_request()).num_runs == 5
    assert prepare_diff(diff_request(inputs=InputOptions())).num_runs == 50
    limited = diff_request(max_avg_error=("0=1",))
    assert prepare_native(limited).model.sha256 == prepare_diff(limited).model.sha256


def test_what_a_native_tool_is_given_is_asked_for_in_the_same_words() -> None:
    imagenet: NativeInputs[Any] = prepare_native(imagenet_with(num_images=7))
    coco: NativeInputs[Any] = prepare_native(coco_request())
    diff: NativeInputs[Any] = prepare_native(diff_request())
    assert [inputs.num_runs for inputs in (imagenet, coco, diff)] == [None, None, 5]
    assert [inputs.example_count for inputs in (imagenet, coco, diff)] == [7, len(coco.pictures), 5]
    assert [inputs.label_text is None for inputs in (imagenet, coco, diff)] == [False, False, True]


@pytest.mark.parametrize(
    ("stated", "warned"),
    [
        (None, False),
        (InputNormalization((127.5,), (127.5,)), False),
        (InputNormalization((127.5, 127.5, 127.5), (127.5, 127.5, 127.5)), False),
        (InputNormalization((0.0,), (255.0,)), True),
    ],
)
def test_a_model_that_asks_for_other_values_gets_a_warning(stated: InputNormalization | None, warned: bool) -> None:
    inputs = prepare_imagenet(imagenet_request(model_file=sample.model_file("float32")))
    warnings = normalization_warnings(replace(inputs.model, normalization=stated))
    assert [("mean=0;std=255" in warning) for warning in warnings] == [True] * warned
