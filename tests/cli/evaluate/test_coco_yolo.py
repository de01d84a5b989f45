"""``evaltools coco`` on raw heads of YOLO: figures against plain loops, what is recognised, what is refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest
from msgspec import Struct

from evaltools.tasks.coco import boxes, conclude
from evaltools.tasks.coco.result import CocoData
from tests import tiny_yolo
from tests.command import Completed, evaltools_here, one_test
from tests.tasks.coco.yolo_by_hand import POSE, YOLOV5, YOLOV8, YOLOX, Family, map_of
from tests.tiny_yolo import make_yolo_set

TENTH_OF_A_POINT = 0.001


class Converted(Struct, frozen=True):
    """Pictures and annotations as ``evaltools convert yolo`` makes them."""

    folder: Path

    @property
    def images(self) -> Path:
        """The pictures."""
        return self.folder / "images"

    @property
    def annotations(self) -> Path:
        """COCO instances."""
        return self.folder / "instances.json"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    """Twenty pictures, not to be changed."""
    made = make_yolo_set(tmp_path_factory.mktemp("yolo") / "set", count=20)
    folder = made.folder / "converted"
    completed = evaltools_here(
        "convert",
        "yolo",
        f"--images_folder={made.images}",
        f"--labels_folder={made.labels}",
        f"--names_file={made.names}",
        f"--output_folder={folder}",
    )
    assert completed.code == 0, completed.err
    return Converted(folder)


def ran(converted: Converted, folder: Path, model: bytes, *flags: str, truth: bool = True) -> Completed:
    """The command on a model."""
    (folder / "model.tflite").write_bytes(model)
    annotated = [f"--ground_truth={converted.annotations}"] if truth else []
    return evaltools_here(
        "coco",
        str(folder / "model.tflite"),
        f"--images={converted.images}",
        *annotated,
        f"--output={folder / 'result.json'}",
        "--bootstrap_resamples=0",
        *one_test(*flags),
    )


def evaluated(converted: Converted, folder: Path, model: bytes, *flags: str) -> tuple[list[float], CocoData]:
    """The mAP of reference and test, and how the outputs were read."""
    with mock.patch.object(boxes, "concluded", wraps=conclude.concluded) as concluding:
        completed = ran(converted, folder, model, *flags)
    assert completed.code == 0, completed.err
    document = json.loads((folder / "result.json").read_text())
    return [entry["figures"]["ap"]["value"] for entry in document["rows"]], concluding.call_args.args[0].data


@pytest.mark.parametrize(
    ("model", "family", "name", "coordinates", "resize"),
    [
        (tiny_yolo.yolov5(), YOLOV5, "yolov5", "shares", "letterbox"),
        (tiny_yolo.yolov5(quantized=True), YOLOV5, "yolov5", "shares", "letterbox"),
        (tiny_yolo.yolov8(), YOLOV8, "yolov8", "shares", "letterbox"),
        (tiny_yolo.yolov8(quantized=True), YOLOV8, "yolov8", "shares", "letterbox"),
        (tiny_yolo.yolox(), YOLOX, "yolox", "grid", "letterbox_top_left"),
        (tiny_yolo.yolox(quantized=True), YOLOX, "yolox", "grid", "letterbox_top_left"),
    ],
    ids=["v5", "v5 uint8", "v8", "v8 int8", "x", "x int8"],
)
def test_the_map_is_that_of_plain_loops(
    converted: Converted,
    tmp_path: Path,
    model: bytes,
    family: Family,
    name: str,
    coordinates: str,
    resize: str,
) -> None:
    expected = map_of(model, family, converted.images, converted.annotations)
    assert expected > 0.05, "else nothing is shown"
    maps, data = evaluated(converted, tmp_path, model)
    assert maps == pytest.approx([expected] * 2, abs=TENTH_OF_A_POINT)
    assert data.head is not None
    assert (data.head.decoder, data.head.coordinates, data.resize) == (name, coordinates, resize)
    assert (data.nms_iou, data.score_threshold) == (family.iou, family.threshold)
    assert data.channel_order == ("bgr" if family.blue_first else "rgb")
    assert data.output_map is None


def of_persons(converted: Converted, folder: Path, *others: str) -> Converted:
    """The same pictures, in which every object is a person; ``others`` are categories without an object."""
    persons = Converted(folder / "persons")
    shutil.copytree(converted.folder, persons.folder)
    document = json.loads(persons.annotations.read_text())
    names = (*others, "person")
    document["categories"] = [{"id": number, "name": name} for number, name in enumerate(names, 1)]
    for entry in document["annotations"]:
        entry["category_id"] = len(names)
    persons.annotations.write_text(json.dumps(document))
    return persons


@pytest.mark.parametrize("pixels", [False, True])
def test_a_head_with_keypoints_gives_the_boxes_of_persons(converted: Converted, tmp_path: Path, pixels: bool) -> None:
    persons = of_persons(converted, tmp_path)
    expected = map_of(tiny_yolo.pose(), POSE, persons.images, persons.annotations)
    assert expected > 0.05, "else nothing is shown"
    maps, data = evaluated(persons, tmp_path, tiny_yolo.pose(pixels))
    assert maps == pytest.approx([expected] * 2, abs=TENTH_OF_A_POINT)
    assert data.head is not None
    described = data.head.describe()
    assert described.startswith("decoder = yolov8_pose, [1,56,84] in ")
    assert "without its 51 values of keypoints" in described
    beside = of_persons(converted, tmp_path / "beside", "dog", "cat")
    completed = ran(beside, tmp_path, tiny_yolo.pose(pixels))
    assert "mAP is of person alone" in completed.err
    rows = json.loads((tmp_path / "result.json").read_text())["rows"]
    assert [row["figures"]["ap"]["value"] for row in rows] == maps


def test_coefficients_of_masks_do_not_count(converted: Converted, tmp_path: Path) -> None:
    expected = map_of(tiny_yolo.masks(), YOLOV8, converted.images, converted.annotations)
    maps, data = evaluated(converted, tmp_path, tiny_yolo.masks())
    assert maps == pytest.approx([expected] * 2, abs=TENTH_OF_A_POINT)
    assert data.head is not None
    assert "yolov8, [1,40,84] in shares of the input, without its 33 coefficients of masks" in data.head.describe()


def test_turned_boxes_are_refused_by_name(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.turned())
    assert completed.code == 2
    assert "the last of the 8 values of each box goes from -0.75 to 2.3" in completed.err
    assert "oriented boxes (OBB)" in completed.err


def test_an_input_of_planes_finds_the_same(converted: Converted, tmp_path: Path) -> None:
    together, planes = (evaluated(converted, tmp_path, tiny_yolo.yolov8(planes=planes))[0] for planes in (False, True))
    assert together[0] > 0.05, "else nothing is shown"
    assert planes == together


def with_ids(converted: Converted, folder: Path, ids: Sequence[int]) -> Converted:
    """The same pictures with other category ids."""
    other = Converted(folder / "other")
    shutil.copytree(converted.folder, other.folder)
    document = json.loads(other.annotations.read_text())
    for entry in document["categories"]:
        entry["id"] = ids[entry["id"] - 1]
    for entry in document["annotations"]:
        entry["category_id"] = ids[entry["category_id"] - 1]
    other.annotations.write_text(json.dumps(document))
    return other


@pytest.mark.parametrize(("ids", "name"), [((1, 44, 90), "dense"), ((1, 2, 3), "+1")])
def test_confident_boxes_tell_the_category_where_the_head_does_not(
    converted: Converted, tmp_path: Path, ids: tuple[int, ...], name: str
) -> None:
    _, data = evaluated(with_ids(converted, tmp_path, ids), tmp_path, tiny_yolo.suppressing())
    assert data.class_mapping is not None
    assert (data.class_mapping.name, data.class_mapping.source) == (name, "detected")


def test_without_a_ground_truth_the_shape_decides(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.yolov5(), truth=False)
    assert completed.code == 0, completed.err
    assert "decoder = yolov5, [1,252,8] in shares of the input (recognised by shape)\n" in completed.err
    completed = ran(converted, tmp_path, tiny_yolo.yolov8(rows=True), truth=False)
    assert "(default)" in completed.err
    assert "which others fit as well: the evidence is too thin. State it with --decoder" in completed.err
    completed = ran(converted, tmp_path, tiny_yolo.yolox(), "--decoder=yolox", truth=False)
    assert "in raw values of the grid (stated)" in completed.err
    assert "too thin" not in completed.err


def test_a_decoder_that_is_clearly_worse_than_another_is_told(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.yolox(), "--decoder=yolov8")
    assert completed.code == 0
    assert re.search(r"with --decoder=yolov8 \d of the \d+ best boxes .*, with --decoder=yolox \d", completed.err)


def test_flags_overrule_what_a_decoder_takes(converted: Converted, tmp_path: Path) -> None:
    flags = ["--nms_iou=0.5", "--score_threshold=0.25", "--resize=stretch", "--channel_order=rgb", "--decoder=yolox"]
    _, data = evaluated(converted, tmp_path, tiny_yolo.yolox(), *flags, "--normalization=none")
    found = (data.nms_iou, data.score_threshold, data.resize, data.channel_order)
    assert found == (0.5, 0.25, "stretch", "rgb")
    assert data.head is not None
    assert data.head.source == "stated"
