"""Which inputs a model gets where nobody says: the range it is made for, and pictures beside noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.datasets.image_folder import list_images
from evaltools.errors import DataError, UsageError
from evaltools.model import InputNormalization, ModelFile, TensorInfo, read_model
from evaltools.model.metadata import ValueRange
from evaltools.result.result import Result
from evaltools.tasks.coco.detector import DetectorOptions
from evaltools.tasks.coco.heads import candidates_of
from evaltools.tasks.framework.image_input import load_picture
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.inputs import InputPlan, plan_inputs
from evaltools.tasks.inference_diff.result import InputUsed
from evaltools.tasks.inference_diff.value_ranges import default_range
from tests import tiny_models, tiny_yolo
from tests.runtime.fake import open_here
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import material_of, request_for
from tests.tasks.inference_diff.test_inputs import model, tensor
from tests.tasks.observers import Silent
from tests.tflite_writer import Graph

REFERENCE = Configuration("reference", kernels="builtin")
TEST = Configuration("test", kernels="reference")
PICTURE = tensor("image", shape=(1, 32, 32, 3))
GREY = tensor("grey", shape=(1, 32, 32, 1))
NOISE_ALONE, PHOTOS_ALONE = ("noise",) * 4, ("photos",) * 4
IN_TURNS = ("noise", "photos", "noise", "photos")


def planned(*inputs: TensorInfo, **options: Any) -> InputPlan:
    return plan_inputs(model(*inputs), inputs, InputOptions(**({"num_runs": 4} | options)))


def values(plan: InputPlan, runs: Sequence[int], place: int = 0) -> Any:
    return np.stack([plan.source.inputs(run)[place] for run in runs])


# ----- pictures of a YOLO


def test_a_yolo_is_fed_with_the_pixels_that_coco_feeds_it(tmp_path: Path) -> None:
    file = tmp_path / "v8.tflite"
    file.write_bytes(tiny_yolo.yolov8())
    yolo, folder = read_model(file), sample.detection_images_dir()
    candidate = candidates_of(yolo, DetectorOptions())["yolov8"]
    plan = plan_inputs(yolo, yolo.inputs, InputOptions(num_runs=2, images=folder))
    picture = load_picture(list_images(folder, "--images").paths[0], candidate.to_tensor).values
    np.testing.assert_array_equal(plan.source.inputs(0)[0], picture)
    assert (picture.min(), picture.max()) == pytest.approx((0.0, 1.0), abs=0.2)


# ----- ranges


@pytest.mark.parametrize(
    ("info", "facts", "ends", "origin"),
    [
        (PICTURE, {"normalization": InputNormalization((0,), (255,))}, (0, 1), "metadata"),
        (PICTURE, {"normalization": InputNormalization((0, 51, 0), (1, 51, 1))}, (-1, 255), "metadata"),
        (tensor(), {"normalization": InputNormalization((0,), (255,))}, (-1, 1), "default"),
        (replace(PICTURE, stated_range=ValueRange(0, 9)), {}, (0, 9), "metadata"),
        (
            replace(PICTURE, stated_range=ValueRange(0, 255)),
            {"normalization": InputNormalization((127.5,), (127.5,))},
            (-1, 1),
            "metadata",
        ),
        (tensor(range_by_graph=ValueRange(0, 127.5, ("QUANTIZE",))), {}, (0, 127.5), "quantization"),
        (tensor(range_by_graph=ValueRange(0, 255, ("MUL",))), {}, (0, 255), "operators"),
        (tensor(dtype="int32", range_by_graph=ValueRange(0, 255, ("MUL",))), {}, (0, 255), "operators"),
        (tensor(dtype="int8", scale=0.5, zero_point=-128), {}, (-128, 127), "quantization"),
        (tensor(dtype="int8"), {}, (-128, 127), "type"),
        (tensor(rows=7), {}, (0, 6), "table"),
        (tensor(dtype="int64"), {}, (0, 127), "default"),
        (tensor(), {}, (-1, 1), "default"),
    ],
)
def test_the_range_is_what_the_model_tells(
    info: TensorInfo, facts: dict[str, Any], ends: tuple[float, float], origin: str
) -> None:
    found = default_range(model(info, **facts), info)
    assert (found.low, found.high, found.origin) == (*ends, origin)


def test_what_the_user_states_wins_over_what_the_model_tells() -> None:
    told = replace(PICTURE, stated_range=ValueRange(0, 9))
    assert planned(told, ranges=("-5:5",)).ranges[0].origin == "flag"
    by_normalization = planned(told, normalization="unit").ranges[0]
    assert (by_normalization.low, by_normalization.high, by_normalization.origin) == (0, 1, "flag")


def test_numbers_of_the_quantised_range_are_told_in_real_ones() -> None:
    described = planned(tensor(dtype="uint8", scale=1 / 128, zero_point=128)).described
    assert described == ("Gaussian in 0..255, which stand for -1..0.9922",)


# ----- noise that overflows


def compared(folder: Path, content: bytes, **changes: Any) -> Result:
    (folder / "model.tflite").write_bytes(content)
    fields: dict[str, Any] = {"inputs": InputOptions(num_runs=4), "noise_floor_runs": 2} | changes
    request = request_for(model_file=folder / "model.tflite", reference=REFERENCE, tests=(TEST,), **fields)
    return evaluate(request, Silent(), open_here)


def verdict_and_input(result: Result) -> tuple[str, InputUsed]:
    verdict = result.rows[-1].verdict
    assert verdict is not None
    return verdict.kind, diff_of(result).inputs[0]


def test_noise_that_overflows_gives_way_to_numbers_from_0_to_1(tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    kind, used = verdict_and_input(compared(tmp_path, tiny_models.brighten(), save_outputs=saved))
    assert kind == "identical"
    assert (used.low, used.high, used.range_from) == (0, 1, "probe")
    assert used.source == "Gaussian in 0..1, because outputs overflow with -1..1"
    inputs = [np.load(saved / "inputs" / f"{run:05d}.npz")["arr_0"] for run in range(4)]
    assert all(array.min() >= 0 and array.max() <= 1 for array in inputs)


@pytest.mark.parametrize("changes", [{"warmup_runs": 0}, {"inputs": InputOptions(num_runs=4, ranges=("-1:1",))}])
def test_a_range_that_is_stated_and_a_run_without_warm_up_stay_as_they_are(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    _, used = verdict_and_input(compared(tmp_path, tiny_models.brighten(), **changes))
    assert (used.low, used.high) == (-1, 1)


def test_a_narrower_range_that_overflows_as_well_is_no_better(tmp_path: Path) -> None:
    graph = Graph()
    first = graph.tensor("input", (1, 4))
    large = graph.constant("large", np.array([1e30], np.float32))
    output = graph.node("MUL", [first, large], graph.tensor("scaled", (1, 4)), "MulOptions")
    kind, used = verdict_and_input(compared(tmp_path, graph.to_bytes([first], [output])))
    assert (kind, used.low, used.high, used.range_from) == ("identical", -1, 1, "default")


def test_pictures_get_the_narrower_range_too(tmp_path: Path) -> None:
    result = compared(tmp_path, tiny_models.brighten((1, 16, 16, 3)))
    kind, used = verdict_and_input(result)
    assert (kind, used.range_from) == ("identical", "probe")
    assert used.source.endswith("values 0..1 (normalization mean=0;std=255) (2 runs)")
    (comparison,) = diff_of(result).comparisons
    for found in comparison.by_kind:
        (difference,) = found.outputs
        assert (difference.reference.high or 0.0) <= 1, found.kind


# ----- kinds


@pytest.mark.parametrize(
    ("inputs", "options", "kinds"),
    [
        ([PICTURE], {}, IN_TURNS),
        ([PICTURE, tensor()], {}, IN_TURNS),
        ([GREY], {}, IN_TURNS),
        ([replace(PICTURE, dtype="uint8")], {}, IN_TURNS),
        ([PICTURE], {"ranges": ("0:1",)}, IN_TURNS),
        ([PICTURE], {"kind": "noise"}, NOISE_ALONE),
        ([PICTURE], {"kind": "photos"}, PHOTOS_ALONE),
        ([PICTURE], {"images": sample.images_dir()}, PHOTOS_ALONE),
        ([PICTURE], {"images": sample.images_dir(), "kind": "both"}, IN_TURNS),
        ([PICTURE], {"native": True}, NOISE_ALONE),
        ([PICTURE, PICTURE], {}, NOISE_ALONE),
        ([tensor("small", shape=(1, 8, 8, 3))], {}, NOISE_ALONE),
        ([tensor("small", shape=(1, 8, 8, 3))], {"kind": "both"}, IN_TURNS),
        ([tensor("spectrogram", shape=(1, 49, 40, 1))], {}, NOISE_ALONE),
        ([tensor("spectrogram", shape=(1, 49, 40, 1))], {"kind": "both"}, IN_TURNS),
        ([replace(PICTURE, dtype="uint8")], {"ranges": ("0:9",)}, NOISE_ALONE),
        ([replace(PICTURE, dtype="int16")], {}, NOISE_ALONE),
        ([tensor()], {}, NOISE_ALONE),
    ],
)
def test_pictures_take_turns_with_noise_where_the_input_is_shaped_like_one(
    inputs: list[TensorInfo], options: dict[str, Any], kinds: tuple[str, ...]
) -> None:
    plan = planned(*inputs, **options)
    assert plan.kinds == kinds
    assert [" " in name.removeprefix("run ") for name in plan.example_ids] == [kind == "photos" for kind in kinds]
    assert [array.shape for array in plan.source.inputs(3)] == [info.shape for info in inputs]


def test_noise_in_turns_is_that_of_noise_alone(tmp_path: Path) -> None:
    both, alone = planned(PICTURE, num_runs=8), planned(PICTURE, kind="noise")
    assert both.example_ids[:4] == ("run 0", "run 1: 0001.jpg", "run 2", "run 3: 0002.jpg")
    np.testing.assert_array_equal(values(both, (0, 2, 4, 6)), values(alone, range(4)))
    np.testing.assert_array_equal(values(both, (7, 1, 2)), values(both, (7, 1, 2)))


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 50),
        ({"kind": "photos"}, 50),
        ({"images": True}, 3),
        ({"images": True, "kind": "both"}, 6),
        ({"images": True, "num_runs": 7}, 7),
    ],
)
def test_without_a_number_of_runs_each_picture_is_used_once(
    tmp_path: Path, options: dict[str, Any], count: int
) -> None:
    for name in "abc":
        Image.new("RGB", (40, 40)).save(tmp_path / f"{name}.png")
    given = options | ({"images": tmp_path} if "images" in options else {})
    plan = planned(PICTURE, **{"num_runs": None, **given})
    assert len(plan.kinds) == count
    if count == 6:
        assert [path.name for path in plan.pictures[1::2]] == ["a.png", "b.png", "c.png"]


def test_a_grey_picture_is_the_luminance(tmp_path: Path) -> None:
    Image.new("RGB", (40, 40), (200, 100, 50)).save(tmp_path / "a.png")
    luminance = Image.open(tmp_path / "a.png").convert("L").getpixel((0, 0))
    whole = planned(replace(GREY, dtype="uint8"), images=tmp_path).source.inputs(0)[0]
    assert set(whole.ravel().tolist()) == {luminance}
    unit = values(planned(GREY, images=tmp_path, normalization="unit"), (0,))
    np.testing.assert_allclose(unit, (0.299 * 200 + 0.587 * 100 + 0.114 * 50) / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("info", "ends"),
    [
        (PICTURE, (-1, 1)),
        (replace(PICTURE, range_by_graph=ValueRange(0, 255, ("MUL",))), (0, 255)),
        (replace(PICTURE, stated_range=ValueRange(0, 1)), (0, 1)),
        (replace(PICTURE, range_by_graph=ValueRange(-2, 3, ("QUANTIZE",))), (-2, 3)),
    ],
)
def test_black_and_white_are_the_ends_of_the_range(tmp_path: Path, info: TensorInfo, ends: tuple[float, float]) -> None:
    Image.new("RGB", (40, 40), "black").save(tmp_path / "a.png")
    Image.new("RGB", (40, 40), "white").save(tmp_path / "b.png")
    plan = planned(info, images=tmp_path)
    for run, end in enumerate(ends):
        np.testing.assert_allclose(values(plan, (run,)), end, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "noise", "images": Path("x")}, "--inputs=noise and --input_images contradict each other"),
        ({"kind": "noise", "normalization": "unit"}, "--normalization has no effect without --input_images or"),
        ({"kind": "photos", "files": True}, "--input_files and --inputs=photos are both for the input image"),
        ({"images": True, "files": True}, "--input_files and --input_images are both for the input image"),
        ({"ranges": ("0:1",), "files": True}, "--input_range and --input_files are both for the input image"),
        ({"ranges": ("0:1",), "images": True}, "--input_range and --input_images are both for the input image"),
        (
            {"kind": "both", "ranges": ("0:9",), "dtype": "uint8"},
            "--input_range and --inputs=both are both for the input image",
        ),
    ],
)
def test_inputs_that_contradict_each_other_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 32, 32, 3), np.float32))
    Image.new("RGB", (40, 40)).save(tmp_path / "a.png")
    ours = {"files": (f"{tmp_path}/x.npy",), "images": tmp_path}
    given = {name: ours[name] if value is True else value for name, value in options.items()}
    picture = replace(PICTURE, dtype=given.pop("dtype", "float32"))
    with pytest.raises(UsageError, match=message):
        planned(picture, **given)


def test_files_take_the_place_of_pictures(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 32, 32, 3), np.float32))
    assert planned(PICTURE, num_runs=None, files=(f"{tmp_path}/x.npy",)).kinds == ("files", "files")


# ----- what becomes of kinds


def test_figures_of_noise_and_photos_stand_apart(tmp_path: Path) -> None:
    """Those of all runs are the sums of both."""
    result = compared(tmp_path, sample.model_file("int8").read_bytes(), inputs=InputOptions(num_runs=7))
    (comparison,) = diff_of(result).comparisons
    whole = comparison.outputs[0].difference
    assert [(found.kind, found.runs) for found in comparison.by_kind] == [("noise", 4), ("photos", 3)]
    parts = [found.outputs[0] for found in comparison.by_kind]
    assert sum(part.elements for part in parts) == whole.elements
    assert sum(part.different for part in parts) == whole.different
    assert max(part.max or 0 for part in parts) == whole.max


def test_saved_inputs_keep_their_kinds(tmp_path: Path) -> None:
    content = sample.model_file("float32").read_bytes()
    compared(tmp_path, content, inputs=InputOptions(num_runs=5), save_outputs=tmp_path / "saved")
    loading = request_for(
        model_file=tmp_path / "model.tflite", reference=None, tests=(TEST,), load_reference=tmp_path / "saved"
    )
    assert material_of(loading).plan.kinds == ("noise", "photos", "noise", "photos", "noise")
    result = evaluate(loading, Silent(), open_here)
    assert [(found.kind, found.runs) for found in diff_of(result).comparisons[0].by_kind] == [
        ("noise", 3),
        ("photos", 2),
    ]


def test_the_detectors_of_the_sample_get_their_own_pictures() -> None:
    detector: ModelFile = read_model(sample.detection_model_file("int8"))
    plan = plan_inputs(detector, detector.inputs, InputOptions())
    first = next(path.name for path in sorted(sample.detection_images_dir().iterdir()))
    assert plan.example_ids[1] == f"run 1: {first}"
    assert plan.described[0].endswith("not cropped (detection) (25 runs)")


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no pictures"):
        planned(PICTURE, kind="both", images=tmp_path)
