"""Segmentation of photos: DeepLab against masks drawn of COCO's polygons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor, decode_image
from evaltools.runtime import open_session
from tests.command import evaltools_here

PASCAL = {5: 1, 2: 2, 16: 3, 9: 4, 44: 5, 6: 6, 3: 7, 17: 8, 62: 9, 21: 10, 67: 11, 18: 12, 19: 13, 4: 14, 1: 15,
          64: 16, 20: 17, 63: 18, 7: 19, 72: 20}  # fmt: skip
"""COCO's categories as classes of PASCAL VOC, which the model knows."""
PHOTOS = 10
LIMITS = ["miou >= 30 %", "latency_ratio <= 5"]
"""A pooled figure of ten photos has no interval, so that no drop is decided."""


@pytest.fixture(scope="module")
def data(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos, and masks of the same names."""
    folder = tmp_path_factory.mktemp("segmentation")
    (folder / "images").mkdir()
    (folder / "masks").mkdir()
    coco = shared / "realdata" / "coco"
    document = json.loads((coco / "instances.json").read_text())
    objects = [each for each in document["annotations"] if each["category_id"] in PASCAL and not each["iscrowd"]]
    known = {each["image_id"] for each in objects}
    for photo in [each for each in document["images"] if each["id"] in known][:PHOTOS]:
        mask = Image.new("L", (photo["width"], photo["height"]))
        for each in sorted((each for each in objects if each["image_id"] == photo["id"]), key=_size):
            for polygon in each["segmentation"]:
                ImageDraw.Draw(mask).polygon(polygon, fill=PASCAL[each["category_id"]])
        mask.save(folder / "masks" / Path(photo["file_name"]).with_suffix(".png").name)
        (folder / "images" / photo["file_name"]).symlink_to(coco / "images" / photo["file_name"])
    return folder


def _size(annotation: dict[str, Any]) -> float:
    return -float(annotation["area"])


@pytest.fixture(scope="module")
def result(data: Path, zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """XNNPACK and the reference on all photos."""
    output = tmp_path_factory.mktemp("result") / "result.json"
    model = zoo / "deeplabv3_mnv2_dm05_pascal_quant.tflite"
    options = [f"--images={data / 'images'}", f"--masks={data / 'masks'}", "--use_xnnpack=true"]
    done = evaltools_here("segmentation", str(model), *options, f"--output_file_path={output}")
    assert done.code == 0, done.err
    return output


def test_the_figures_are_those_of_a_confusion_matrix(result: Path, data: Path, zoo: Path) -> None:
    model = read_model(zoo / "deeplabv3_mnv2_dm05_pascal_quant.tflite")
    session = open_session(model, Configuration.from_text("reference", "kernels=builtin"))
    to_tensor = ImageToTensor(513, 513, np.dtype("uint8"), crop_fraction=None)
    matrix = np.zeros((21, 21), np.int64)
    for photo in sorted((data / "images").iterdir()):
        found = session.run((to_tensor(decode_image(photo)),)).outputs[0][0]
        truth = np.asarray(Image.open(data / "masks" / f"{photo.stem}.png"))
        rows, columns = (((np.arange(size) + 0.5) * 513 / size).astype(int) for size in truth.shape)
        np.add.at(matrix, (truth.ravel(), found[np.ix_(rows, columns)].ravel()), 1)
    session.close()
    both, either = np.diag(matrix), matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    figures = json.loads(result.read_text())["rows"][0]["figures"]
    assert figures["miou"]["count"] == PHOTOS
    assert figures["miou"]["value"] == pytest.approx((both[either > 0] / either[either > 0]).mean(), rel=1e-9)
    assert figures["pixel_accuracy"]["value"] == pytest.approx(both.sum() / matrix.sum(), rel=1e-9)


def test_limits_are_kept(result: Path) -> None:
    gates = result.with_name("gates.toml")
    gates.write_text(f'[[gates]]\ntask = "segmentation"\nconfiguration = "test"\nlimits = {json.dumps(LIMITS)}\n')
    judged = evaltools_here("gate", f"--gates={gates}", str(result))
    assert judged.code == 0, judged.out + judged.err
    assert judged.out.startswith("All 2 limits are kept.")
