"""Keypoints: figures compared with pycocotools on files, and both kinds of outputs."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import evaltools as et
from evaltools.errors import DataError, TaskError
from evaltools.model import read_model
from evaltools.tasks.framework.definition import Pooled, Setting, share_of
from evaltools.tasks.framework.tensors import Outputs, TaskTensor
from evaltools.tasks.keypoints import keypoints
from evaltools.tasks.keypoints.examples import Person, Seen, Truth, model_input
from evaltools.tasks.keypoints.scoring import agree, draw, from_heat_maps, located, score
from tests.tasks.declared import SAMPLE, run_sample
from tests.tasks.declared import outputs_of as one_output

FOLDER = SAMPLE / "keypoints"
INPUT = TaskTensor("picture", (1, 64, 64, 3), np.dtype("float32"))
MOVENET = Setting([read_model(SAMPLE / "keypoints" / "model.tflite")])
Found = list[dict[str, Any]]


@pytest.fixture(scope="module")
def result() -> et.Result:
    return run_sample("keypoints")


def outputs_of(values: npt.NDArray[Any]) -> Outputs:
    return one_output(values, inputs=(INPUT,))


def evaluated(annotations: Path, found: Found) -> tuple[float, float]:
    """AP and AP50 by pycocotools, from the file to the figures."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(annotations)
        run = COCOeval(truth, truth.loadRes(found), "keypoints")
        run.evaluate()
        run.accumulate()
        run.summarize()
    return float(run.stats[0]), float(run.stats[1])


def moved(annotations: Path, task: et.Task, chance: np.random.Generator) -> tuple[Found, list[Outputs]]:
    """Annotated keypoints moved at random: as pycocotools takes them, and as MoveNet would give them."""
    document = json.loads(annotations.read_text())
    by_name = {image["file_name"]: image for image in document["images"]}
    found, outputs = [], []
    for example in task.examples:
        image = by_name[example.id]
        people = [each for each in document["annotations"] if each["image_id"] == image["id"]]
        places = np.reshape(people[0]["keypoints"], (17, 3))[:, :2] + chance.normal(0, 1.5, (17, 2))
        scores = chance.random(17)
        flat = np.column_stack([places, scores]).ravel().tolist()
        found.append({"image_id": image["id"], "category_id": 1, "keypoints": flat, "score": float(scores.mean())})
        side = max(image["width"], image["height"])
        border = (side - np.array([image["width"], image["height"]])) / 2
        shares = (places + border) / side
        outputs.append(outputs_of(np.column_stack([shares[:, ::-1], scores])[np.newaxis, np.newaxis]))
    return found, outputs


def with_more_people(folder: Path) -> Path:
    """The annotations of the sample, with a second person in each picture, a crowd, and one without keypoints."""
    document = json.loads((FOLDER / "annotations.json").read_text())
    for number, person in enumerate(list(document["annotations"]), 100):
        other = {**person, "id": number, "keypoints": [value + 3 * (value > 2) for value in person["keypoints"]]}
        document["annotations"].append(other | {"iscrowd": int(number == 104), "num_keypoints": 9})
    document["annotations"][0] |= {"keypoints": [0] * 51, "num_keypoints": 0}
    for person in document["annotations"]:
        person["num_keypoints"] = sum(value > 0 for value in person["keypoints"][2::3])
    path = folder / "annotations.json"
    path.write_text(json.dumps(document))
    return path


def test_the_average_precision_is_that_of_pycocotools(tmp_path: Path) -> None:
    annotations = with_more_people(tmp_path)
    task = keypoints(images=FOLDER / "images", setting=MOVENET, annotations=annotations)
    found, outputs = moved(annotations, task, np.random.default_rng(3))
    rows = [score(0.2, each, example.target) for each, example in zip(outputs, task.examples, strict=True)]
    figures = [
        metric.figure([row[metric.name] for row in rows]) for metric in task.metrics[:2] if isinstance(metric, Pooled)
    ]
    assert figures == pytest.approx(evaluated(annotations, found), rel=1e-12)
    assert 0.1 < float(figures[0]) < 0.9


def test_the_sample_has_the_figures_of_its_heat_maps(result: et.Result) -> None:
    """The model done again in NumPy, on the input that it gets."""
    annotations = json.loads((FOLDER / "annotations.json").read_text())["annotations"]
    numbers = np.arange(17)
    heights, turns = 1 - (2 * numbers + 1) / 17, np.pi * (3 - np.sqrt(5)) * numbers
    around = np.sqrt(1 - heights**2)
    colours = np.stack([around * np.cos(turns), around * np.sin(turns), heights], 1)
    near, annotated, found = 0, 0, []
    task = keypoints(images=FOLDER / "images", setting=MOVENET, annotations=FOLDER / "annotations.json")
    for example, annotation in zip(task.examples, annotations, strict=True):
        [picture] = model_input(example.input, [INPUT], "auto")
        maps = picture[0].astype(np.float64).reshape(32, 2, 32, 2, 3).mean((1, 3)) @ colours.T
        with Image.open(example.input.picture) as image:
            side, border = max(image.size), (max(image.size) - np.array(image.size)) / 2
        points = from_heat_maps(maps)
        places = points[:, :2] * side - border
        expected = np.reshape(annotation["keypoints"], (17, 3))
        is_seen = expected[:, 2] > 0
        distances = np.linalg.norm(places - expected[:, :2], axis=1)[is_seen]
        near, annotated = near + sum(distances <= 0.2 * max(annotation["bbox"][2:])), annotated + len(distances)
        flat = np.column_stack([places, points[:, 2]]).ravel().tolist()
        image_id = annotation["image_id"]
        found.append({"image_id": image_id, "category_id": 1, "keypoints": flat, "score": float(points[:, 2].mean())})
    for entry in result:
        assert entry.pck == pytest.approx(near / annotated)
        assert entry.oks_ap == pytest.approx(evaluated(FOLDER / "annotations.json", found)[0], abs=1e-6)
    assert result["xnnpack"].same_keypoints == 1


def test_keypoints_that_the_reference_is_not_sure_of_do_not_count() -> None:
    """Nine of ten sure ones stay, and all unsure ones land anywhere: 0.9, not 9 of 17."""
    chance = np.random.default_rng(2)
    expected = np.concatenate([chance.random((17, 2)), np.repeat([[0.8], [0.01]], [10, 7], axis=0)], axis=1)
    found = expected.copy()
    found[9:, 0] += 0.5
    given = agree(0.3, outputs_of(found[np.newaxis]), outputs_of(expected[np.newaxis]), None)
    assert given["same_keypoints"].tolist() == [9, 10]
    assert given["keypoint_shift"].tolist() == pytest.approx([0.5, 10])
    unsure = outputs_of(expected[np.newaxis] * [1, 1, 0.1])
    nothing = agree(0.3, outputs_of(found[np.newaxis]), unsure, None)
    assert np.isnan(share_of([nothing["same_keypoints"]]))


def test_boxes_are_examples_of_their_own_and_lead_back_to_the_picture() -> None:
    task = keypoints(images=FOLDER / "images", setting=MOVENET, annotations=FOLDER / "annotations.json", people="boxes")
    example = task.examples[0]
    assert example.id == "01.jpg person 1"
    [person] = example.target.people
    left, top, width, height = person.bbox
    side = max(width, height) * 1.25
    corner = np.array([left - (side - width) / 2, top - (side - height) / 2])
    shares = (np.reshape(person.keypoints, (17, 3))[:, 1::-1] - corner[::-1]) / side
    given = score(0.01, outputs_of(np.column_stack([shares, np.ones(17)])[np.newaxis]), example.target)
    assert given["pck"][0] == given["pck"][1] > 0
    assert given["oks_ap"][2:12].tolist() == [1.0] * 10


def test_outputs_without_keypoints_are_told() -> None:
    with pytest.raises(TaskError, match=r"has the 17 keypoints of a person, but float32\[1, 5, 3\]"):
        located(outputs_of(np.zeros((1, 5, 3), np.float32)))
    with pytest.raises(TaskError, match="17 of 51 numbers of keypoints are not finite"):
        located(outputs_of(np.full((1, 1, 17, 3), [0, 0, np.nan], np.float32)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"annotations": [{"image_id": 1, "bbox": [0, 0, 1, 1], "keypoints": [1, 1, 2], "area": 1}]},
            "1 keypoints; COCO",
        ),
        ({"images": []}, "lists no picture '01.jpg'"),
        ({"annotations": 3}, "is not a file of COCO person keypoints: Expected `array`"),
    ],
)
def test_annotations_that_do_not_fit_are_told(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    document = json.loads((FOLDER / "annotations.json").read_text())
    (tmp_path / "wrong.json").write_text(json.dumps(document | change))
    with pytest.raises(DataError, match=message):
        keypoints(images=FOLDER / "images", setting=MOVENET, annotations=tmp_path / "wrong.json")


def test_boxes_need_annotations() -> None:
    with pytest.raises(DataError, match="takes the boxes of --annotations"):
        keypoints(images=FOLDER / "images", setting=MOVENET, people="boxes")


def test_points_of_both_sides_and_of_the_truth_are_drawn_where_they_are(tmp_path: Path) -> None:
    Image.new("RGB", (100, 50)).save(tmp_path / "a.png")
    person = Person(1, (0.0, 0.0, 9.0, 9.0), (10.0, 40.0, 2.0, *[0.0] * 48), 81.0)
    example = et.Example("a", Seen(tmp_path / "a.png"), Truth(Seen(tmp_path / "a.png"), (person,)))
    found = np.tile(np.array([0.5, 0.8, 1.0], np.float32), (17, 1))[np.newaxis, np.newaxis]  # y, x, score
    expected = np.tile(np.array([0.5, 0.3, 1.0], np.float32), (17, 1))[np.newaxis, np.newaxis]
    assert draw(0.3, outputs_of(found), outputs_of(found), example) is None
    drawing = draw(0.3, outputs_of(found), outputs_of(expected), example)
    assert drawing is not None
    assert drawing.changed == pytest.approx(0.5)
    (panel,) = drawing.panels
    with Image.open(io.BytesIO(panel.png)) as opened:
        shown = np.asarray(opened.convert("RGBA"))
    assert shown.shape == (50, 100, 4)
    kinds = {"test": (80, 25), "reference": (30, 20), "truth": (10, 40), "nothing": (50, 10)}
    blue, orange, white = ((40, 110, 235), (240, 120, 20), (255, 255, 255))
    seen = {kind: shown[y, x].tolist() for kind, (x, y) in kinds.items()}
    assert {kind: tuple(pixel[:3]) for kind, pixel in seen.items() if pixel[3]} == {
        "test": orange, "reference": blue, "truth": white
    }  # fmt: skip
