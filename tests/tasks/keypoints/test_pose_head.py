"""Heads of YOLOs with keypoints: figures of a whole run against a decoder of plain loops and pycocotools."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from evaltools.result_file import read_result
from tests import tiny_yolo
from tests.command import evaltools_here, one_test
from tests.interpreters import make_interpreter
from tests.tiny_yolo import SIDE, make_yolo_set


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures that need no scaling, and every object a person with keypoints along the diagonal of the box."""
    folder = tmp_path_factory.mktemp("people")
    made = make_yolo_set(folder / "set", count=30)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for path in sorted(made.images.iterdir()):
        width, height = Image.open(path).size
        if max(width, height) > SIDE:
            path.unlink()
            continue
        images.append({"id": len(images) + 1, "file_name": path.name, "width": width, "height": height})
        for line in (made.labels / f"{path.stem}.txt").read_text().splitlines():
            x, y, w, h = np.array([*map(float, line.split()[1:])]) * (width, height, width, height)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": len(images),
                    "category_id": 1,
                    "bbox": [x - w / 2, y - h / 2, w, h],
                    "area": w * h * 0.5,
                    "iscrowd": 0,
                    "num_keypoints": 17,
                    "keypoints": [
                        value for step in np.linspace(-0.4, 0.4, 17) for value in (x + step * w, y + step * h, 2)
                    ],
                }
            )
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    (folder / "set" / "people.json").write_text(json.dumps(document))
    return folder / "set"


def by_hand(model: bytes, folder: Path) -> tuple[float, float]:
    """AP and AP50 of the best box of each picture."""
    interpreter = make_interpreter("ai_edge_litert", model)
    found = []
    for image in json.loads((folder / "people.json").read_text())["images"]:
        pixels = np.asarray(Image.open(folder / "images" / image["file_name"]).convert("RGB"))
        canvas = np.full((SIDE, SIDE, 3), 114, np.uint8)
        top, left = ((SIDE - size) // 2 for size in pixels.shape[:2])
        canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], canvas[None].astype(np.float32) / 255)
        interpreter.invoke()
        columns = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0].astype(float)
        best = max(range(columns.shape[1]), key=lambda cell: columns[4, cell])
        points = [
            value
            for number in range(17)
            for value in (
                columns[5 + 3 * number, best] * SIDE - left,
                columns[6 + 3 * number, best] * SIDE - top,
                columns[7 + 3 * number, best],
            )
        ]
        found.append({"image_id": image["id"], "category_id": 1, "keypoints": points, "score": columns[4, best]})
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(folder / "people.json"))
        run = COCOeval(truth, truth.loadRes(found), "keypoints")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return float(run.stats[0]), float(run.stats[1])


@pytest.mark.parametrize(("pixels", "rows"), [(False, False), (True, True)], ids=["shares", "pixels in rows"])
def test_the_figures_are_those_of_a_decoder_of_plain_loops(
    people: Path, tmp_path: Path, pixels: bool, rows: bool
) -> None:
    expected = by_hand(tiny_yolo.pose(), people)
    assert 0.05 < expected[0] < 0.95, "else nothing is shown"
    (tmp_path / "model.tflite").write_bytes(tiny_yolo.pose(pixels, rows))
    words = (f"--images={people / 'images'}", f"--annotations={people / 'people.json'}", "--output=result.json")
    done = evaltools_here("keypoints", str(tmp_path / "model.tflite"), *words, *one_test(), cwd=tmp_path)
    assert done.code == 0, done.err
    for row in read_result(tmp_path / "result.json").rows:
        assert (row.value("oks_ap"), row.value("oks_ap50")) == pytest.approx(expected, abs=1e-6)
        assert row.value("same_keypoints") == 1.0
