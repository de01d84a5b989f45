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
from tests.cli.evaluate.sample_runs import figures_of
from tests.command import evaltools

PASCAL = {5: 1, 2: 2, 16: 3, 9: 4, 44: 5, 6: 6, 3: 7, 17: 8, 62: 9, 21: 10, 67: 11, 18: 12, 19: 13, 4: 14, 1: 15,
          64: 16, 20: 17, 63: 18, 7: 19, 72: 20}  # fmt: skip
"""COCO's categories as classes of PASCAL VOC, which the model knows."""
PHOTOS = 16
LIMITS = ["miou >= 0.3", "miou drop <= 20 points at 95 %", "latency ratio <= 5"]


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
def command(data: Path, zoo: Path) -> list[str]:
    model = zoo / "deeplabv3_mnv2_dm05_pascal_quant.tflite"
    options = [f"--images={data / 'images'}", f"--masks={data / 'masks'}", "--use_xnnpack=true"]
    return ["segmentation", str(model), *options]


@pytest.fixture(scope="module")
def expected(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return figures_of(command, tmp_path_factory.mktemp("whole") / "result.json")


def test_the_figures_are_those_of_a_confusion_matrix(expected: Any, data: Path, zoo: Path) -> None:
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
    figures = {entry["metric"]: entry for entry in expected["part"]["means"] if entry["configuration"] == "reference"}
    assert figures["miou"]["examples"] == PHOTOS
    assert figures["miou"]["mean"] == pytest.approx((both[either > 0] / either[either > 0]).mean(), rel=1e-9)
    assert figures["pixel_accuracy"]["mean"] == pytest.approx(both.sum() / matrix.sum(), rel=1e-9)


def test_two_shards_give_the_same_figures_and_keep_the_same_limits(
    command: list[str], expected: Any, tmp_path: Path
) -> None:
    for index in range(2):
        words = [f"--run_dir={tmp_path / str(index)}", f"--shard_index={index}", "--shard_count=2"]
        done = evaltools(*command, *words)
        assert done.code == 0, done.err
    output = tmp_path / "merged.json"
    assert figures_of(["merge", str(tmp_path / "0"), str(tmp_path / "1")], output) == expected
    gates = tmp_path / "gates.toml"
    gates.write_text(f'[[gates]]\ntask = "segmentation"\nconfiguration = "test"\nlimits = {json.dumps(LIMITS)}\n')
    judged = evaltools("gate", f"--gates={gates}", str(output))
    assert judged.code == 0, judged.out + judged.err
    assert "3 pass" in judged.out
