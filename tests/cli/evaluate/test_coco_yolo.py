"""``evaltools coco`` on raw heads of YOLO: figures against plain loops, what is recognised, what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from PIL import Image

from tests import tiny_models, tiny_yolo
from tests.command import Completed, evaltools_here
from tests.tasks.coco.yolo_by_hand import YOLOV5, YOLOV8, YOLOX, Family, map_of
from tests.tiny_detectors import postprocess_detector
from tests.tiny_yolo import make_yolo_set

ROOT = Path(__file__).resolve().parent.parent.parent.parent
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
        *flags,
    )


def part_of(folder: Path) -> dict[str, Any]:
    part: dict[str, Any] = json.loads((folder / "result.json").read_text())["part"]
    return part


def evaluated(converted: Converted, folder: Path, model: bytes, *flags: str) -> dict[str, Any]:
    """The task's part of the result."""
    completed = ran(converted, folder, model, *flags)
    assert completed.code == 0, completed.err
    return part_of(folder)


def maps_of(part: dict[str, Any]) -> list[float]:
    """mAP of reference and test."""
    return [figures["evaluation"]["stats"]["ap"] for figures in part["figures"]]


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
    part = evaluated(converted, tmp_path, model)
    assert maps_of(part) == pytest.approx([expected] * 2, abs=TENTH_OF_A_POINT)
    data = part["data"]
    assert (data["head"]["decoder"], data["head"]["coordinates"], data["resize"]) == (name, coordinates, resize)
    assert (data["nms_iou"], data["score_threshold"]) == (family.iou, family.threshold)
    assert data["channel_order"] == ("bgr" if family.blue_first else "rgb")
    assert data["output_map"] is None


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


def test_junk_of_low_scores_does_not_hide_which_category_a_class_is(converted: Converted, tmp_path: Path) -> None:
    """Ids with gaps, as COCO has them, and a box of each class in every cell."""
    other, model = with_ids(converted, tmp_path, (1, 44, 90)), tiny_yolo.yolov8(junk=True)
    expected = map_of(model, YOLOV8, other.images, other.annotations)
    assert expected > 0.05, "else nothing is shown"
    part = evaluated(other, tmp_path, model)
    assert maps_of(part) == pytest.approx([expected] * 2, abs=TENTH_OF_A_POINT)
    mapping = part["data"]["class_mapping"]
    assert (mapping["name"], mapping["source"], mapping["better"]) == ("dense", "decoder", None)
    assert mapping["agreeing"]["dense"] == max(mapping["agreeing"].values())


@pytest.mark.parametrize(("ids", "name"), [((1, 44, 90), "dense"), ((1, 2, 3), "+1"), ((0, 1, 2), "0")])
def test_confident_boxes_tell_the_category_where_the_head_does_not(
    converted: Converted, tmp_path: Path, ids: tuple[int, ...], name: str
) -> None:
    part = evaluated(with_ids(converted, tmp_path, ids), tmp_path, tiny_yolo.suppressing())
    mapping = part["data"]["class_mapping"]
    assert (mapping["name"], mapping["source"]) == (name, "detected")


@pytest.mark.once
@pytest.mark.parametrize(
    ("model", "same"),
    [
        (tiny_yolo.yolov5(pixels=True), tiny_yolo.yolov5()),
        (tiny_yolo.yolov8(pixels=True), tiny_yolo.yolov8()),
        (tiny_yolo.yolov8(rows=True), tiny_yolo.yolov8()),
        (tiny_yolo.yolov8(rows=True, pixels=True), tiny_yolo.yolov8()),
        (tiny_yolo.yolox(decoded=True), tiny_yolo.yolox()),
    ],
    ids=["v5 pixels", "v8 pixels", "v8 rows", "v8 rows in pixels", "x pixels"],
)
def test_other_units_and_layouts_are_recognised(
    converted: Converted, tmp_path: Path, model: bytes, same: bytes
) -> None:
    found = maps_of(evaluated(converted, tmp_path, model))
    assert found == pytest.approx(maps_of(evaluated(converted, tmp_path, same)), abs=1e-6)


def test_a_model_that_suppresses_boxes_itself_is_read_as_it_is(converted: Converted, tmp_path: Path) -> None:
    part = evaluated(converted, tmp_path, tiny_yolo.suppressing())
    assert part["data"]["head"]["decoder"] == "yolo_nms"
    assert part["data"]["nms_iou"] is None
    assert min(maps_of(part)) > 0.05


def test_boxes_in_pixels_are_recognised_where_the_first_pictures_show_nothing(
    converted: Converted, tmp_path: Path
) -> None:
    later = Converted(tmp_path / "later")
    shutil.copytree(converted.folder, later.folder)
    for path in sorted(later.images.iterdir())[:5]:
        with Image.open(path) as picture:
            Image.new("RGB", picture.size).save(path)
    part = evaluated(later, tmp_path, tiny_yolo.suppressing(pixels=True))
    assert part["data"]["head"]["coordinates"] == "pixels"
    assert maps_of(part) == pytest.approx(maps_of(evaluated(later, tmp_path, tiny_yolo.suppressing())), abs=1e-6)
    assert min(maps_of(part)) > 0.02


def test_what_was_recognised_is_said(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.yolov8())
    assert re.search(
        r"\ndecoder = yolov8, \[1,7,84\] in shares of the input \(recognised by shape; right of the \d+ best boxes "
        r"with yolov8: \d+\)\npictures: letterbox, mean=0;std=255 \(as yolov8 is trained\), rgb; boxes: "
        r"scores from 0.001, NMS at IoU 0.7 by class\n",
        completed.err,
    ), completed.err
    completed = ran(converted, tmp_path, tiny_yolo.yolox())
    assert re.search(r"\(recognised by the ground truth; .* yolov8: \d, yolox: \d\)", completed.err), completed.err
    assert "letterbox_top_left, mean=0;std=1 (as yolox is trained), bgr" in completed.err


def test_flags_overrule_what_a_decoder_takes(converted: Converted, tmp_path: Path) -> None:
    flags = ["--nms_iou=0.5", "--score_threshold=0.25", "--resize=stretch", "--channel_order=rgb", "--decoder=yolox"]
    data = evaluated(converted, tmp_path, tiny_yolo.yolox(), *flags, "--normalization=none")["data"]
    assert (data["nms_iou"], data["score_threshold"], data["resize"], data["channel_order"]) == (
        0.5,
        0.25,
        "stretch",
        "rgb",
    )
    assert data["head"]["source"] == "stated"


@pytest.mark.once
def test_every_score_counts_with_a_threshold_of_zero(converted: Converted, tmp_path: Path) -> None:
    default = evaluated(converted, tmp_path, tiny_yolo.yolox())
    every = evaluated(converted, tmp_path, tiny_yolo.yolox(), "--score_threshold=0")
    assert every["data"]["score_threshold"] == 0
    assert every["figures"][0]["detections"] > default["figures"][0]["detections"]


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


def test_where_too_few_boxes_tell_the_number_of_classes_does(converted: Converted, tmp_path: Path) -> None:
    """Read as YOLOv8, which stands first, the output would have four classes; there are three categories."""
    completed = ran(converted, tmp_path, tiny_yolo.yolox(), "--num_images=1", "--reference=none")
    assert "decoder = yolox, [1,84,8] in raw values of the grid (default;" in completed.err
    assert "warning: decoder = yolox is taken for the output [1, 84, 8], which others fit as well" in completed.err


def test_a_decoder_that_is_clearly_worse_than_another_is_told(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.yolox(), "--decoder=yolov8")
    assert completed.code == 0
    assert re.search(r"with --decoder=yolov8 \d of the \d+ best boxes .*, with --decoder=yolox \d", completed.err)


@pytest.mark.parametrize(
    ("model", "flags", "message"),
    [
        (
            tiny_yolo.yolov5(),
            ["--decoder=yolov8"],
            "has no head of yolov8: its outputs are output0: float32[1,252,8]; expected is one, [1,4+classes,N] or "
            "[1,N,4+classes] with 1 box per cell; for its input of 64x64, N is the number of cells of the strides 8, "
            "16, 32. If this is another model, state --decoder=yolov5, which fits, or leave the flag out",
        ),
        (postprocess_detector(), ["--decoder=yolov5"], "its outputs are read with --decoder=ssd"),
        (tiny_yolo.yolov8(), ["--decoder=ssd"], "is no detector"),
        (tiny_yolo.yolov8(), ["--decoder=none"], "is no detector"),
        (tiny_yolo.yolov8(), ["--decoder=yolo8"], "Did you mean yolov8?"),
        (tiny_yolo.yolov8(), ["--output_map=boxes=0,classes=0,scores=0"], "is a raw head (yolov8), which is decoded"),
        (tiny_yolo.yolov8(), ["--compat=native"], "is read with --decoder, without --compat=native"),
        (tiny_yolo.yolov8(), ["--compat=native", "--decoder=yolov8"], "the native tool decodes no raw heads"),
        (postprocess_detector(), ["--compat=native", "--channel_order=bgr"], "the native tool feeds RGB"),
        (postprocess_detector(), ["--nms_iou=0.5"], "--nms_iou=0.5 has no effect on a model that suppresses boxes"),
        (tiny_yolo.suppressing(), ["--nms_iou=0.5"], "has no effect on a yolo_nms model"),
        (tiny_yolo.yolov8(), ["--nms_iou=1.5"], "--nms_iou=1.5: use an overlap above 0 and up to 1"),
        (tiny_yolo.yolov8(), ["--decoder=ssd", "--nms_iou=0.5"], "--nms_iou has no effect with --decoder=ssd"),
        (
            tiny_models.classifier(),
            [],
            "(at 640x640: 8400, or 25200 with 3 boxes per cell), and is read with --decoder",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    converted: Converted, tmp_path: Path, model: bytes, flags: list[str], message: str
) -> None:
    completed = ran(converted, tmp_path, model, *flags)
    assert completed.code == 2
    assert message in completed.err.replace("\n", " ")


def test_raw_boxes_read_as_decoded_ones_are_refused(converted: Converted, tmp_path: Path) -> None:
    """Those of large maps are less than a cell wide, so that their logarithms are negative."""
    completed = ran(converted, tmp_path, shrunk(tiny_yolo.yolox), "--decoder=yolov8")
    assert completed.code == 2
    assert "read as yolov8, boxes have negative widths or heights" in completed.err
    assert "They may be those of --decoder=yolox" in completed.err
    completed = ran(converted, tmp_path, shrunk(tiny_yolo.yolox))
    assert "decoder = yolox, [1,84,8] in raw values of the grid (recognised by shape and values" in completed.err


def test_pixels_and_scores_in_the_same_eight_bits_are_told(converted: Converted, tmp_path: Path) -> None:
    completed = ran(converted, tmp_path, tiny_yolo.yolov8(pixels=True, quantized=True))
    assert "in pixels of the input" in completed.err
    assert "a score is a multiple of 0.333333. Export the model with boxes in shares" in completed.err


@pytest.mark.once
def test_the_path_from_a_yolo_data_set_runs_as_the_docs_show_it(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "coco.md").read_text().split("## 8. My model is a YOLO")[1]
    commands = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)[0].splitlines()
    made = make_yolo_set(tmp_path / "valid", count=4)
    names = ", ".join(made.names.read_text().split())
    (tmp_path / "data.yaml").write_text(f"names: [{names}]\nnc: {len(tiny_yolo.NAMES)}\n")
    (tmp_path / "best.tflite").write_bytes(tiny_yolo.yolov8())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        completed = subprocess.run(
            command,
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert completed.returncode == 0, completed.stderr
    assert "INFO: Overall mAP: 0." in completed.stdout
    assert "decoder = yolov8" in completed.stderr


def shrunk(make: Callable[[], bytes]) -> bytes:
    """The model with boxes that are smaller than their cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny_yolo, "_SIZES", {1: (0.8,), 3: (0.8, 0.8, 0.8)})
        return make()


def of_two(shard: int, folder: Path) -> list[str]:
    return [f"--shard_index={shard}", "--shard_count=2", f"--run_dir={folder}"]


@pytest.mark.once
def test_a_run_goes_on_and_shards_merge_as_it_was_read(converted: Converted, tmp_path: Path) -> None:
    whole = evaluated(converted, tmp_path, tiny_yolo.yolox())
    for shard in range(2):
        folder = tmp_path / f"shard {shard}"
        completed = ran(converted, tmp_path, tiny_yolo.yolox(), *of_two(shard, folder))
        assert completed.code == 0, completed.err
    merged = tmp_path / "merged.json"
    completed = evaltools_here("merge", str(tmp_path / "shard 0"), str(tmp_path / "shard 1"), f"--output={merged}")
    assert completed.code == 0, completed.err
    part = json.loads(merged.read_text())["part"]
    assert part["data"]["head"] == whole["data"]["head"]
    assert maps_of(part) == maps_of(whole)
    again = evaltools_here("resume", str(tmp_path / "shard 0"))
    assert again.code == 0, again.err
    assert "decoder = yolox" in again.err
