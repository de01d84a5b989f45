"""Detection on drawn pictures: recall and matched boxes as sums over pictures, against pycocotools and whole runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import evaltools as et
from evaltools.datasets import sample
from evaltools.datasets.object_annotations import AnnotatedImage, Category, ObjectAnnotation
from evaltools.engine.task import Example
from evaltools.errors import UsageError
from evaltools.gates.check import evidence_of
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import decide
from evaltools.metrics.boxes import compare_boxes
from evaltools.metrics.coco_stats import evaluate_detections
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Table
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.figures import coco_sets
from evaltools.tasks.coco.page import sections
from evaltools.tasks.coco.sampling import drawn_figures, lead
from evaltools.tasks.coco.task import FoundObjects
from evaltools.tasks.coco.truth import Truth
from tests.tasks.coco.test_findings import found, truth

SIDE = 300
PICTURES = 12
SAME = ClassMapping("0", 0)
RECALLS = ("ar_1", "ar_10", "ar_100", "ar_small", "ar_medium", "ar_large")


def random_truth(chance: np.random.Generator) -> Truth:
    """Up to six objects in each picture, of three categories and all sizes, a few of them crowds."""
    images = []
    for number in range(PICTURES):
        objects = []
        for _ in range(int(chance.integers(0, 7))):
            x, y = chance.uniform(0, 150, 2)
            width, height = chance.uniform(10, 150, 2)
            is_crowd = bool(chance.random() < 0.1)
            category = int(chance.integers(1, 4))
            objects.append(ObjectAnnotation(category, (x, y, width, height), width * height, is_crowd))
        images.append(AnnotatedImage(number + 1, f"{number}.jpg", SIDE, SIDE, tuple(objects)))
    categories = tuple(Category(number, str(number)) for number in (1, 2, 3, 4))
    return replace(truth(PICTURES), images=tuple(images), categories=categories)


def random_boxes(chance: np.random.Generator, image: AnnotatedImage) -> FoundObjects:
    """Boxes near the objects, some of a wrong class, and some beside them."""
    boxes, classes = [], []
    for entry in image.annotations:
        for _ in range(int(chance.integers(0, 3))):
            x, y, width, height = np.array(entry.bbox) + chance.normal(0, 6, 4)
            boxes.append((y / SIDE, x / SIDE, (y + max(height, 1)) / SIDE, (x + max(width, 1)) / SIDE))
            classes.append(entry.category_id if chance.random() < 0.9 else 4)
    return found(boxes, classes, chance.random(len(classes)).tolist(), width=SIDE, height=SIDE)


@pytest.mark.parametrize("seed", range(4))
def test_losses_of_pictures_add_up_to_the_change_of_the_figures_of_pycocotools(seed: int) -> None:
    chance = np.random.default_rng(seed)
    known = random_truth(chance)
    reference, other = ([random_boxes(chance, image) for image in known.images] for _ in range(2))
    examples = [Example(number, image.file_name) for number, image in enumerate(known.images)]
    figures = drawn_figures(known, SAME, (1, 2, 3, 4), examples, reference)
    before, after = (evaluate_detections(*coco_sets(list(enumerate(seen)), known, SAME)).stats
                     for seen in (reference, other))  # fmt: skip
    assert figures.keys() == {"matched_boxes", *(name for name in RECALLS if getattr(before, name) is not None)}
    for name, figure in figures.items():
        own = figure.of_reference(list(zip(examples, reference, strict=True)))
        scores = [figure.score(*each) for each in zip(examples, reference, other, strict=True)]
        losses = np.array([figure.loss(own, number, score) for number, score in enumerate(scores)])
        low, high = figure.bounds(own)
        assert ((low - 1e-12 <= losses) & (losses <= high + 1e-12)).all()
        value = figure.known(own, float(losses.mean()), 0.0, 0.0)
        if name == "matched_boxes":
            pairs = [compare_boxes(two.as_detections(), one.as_detections())
                     for one, two in zip(reference, other, strict=True)]  # fmt: skip
            matched, lost = sum(pair.matched for pair in pairs), sum(pair.lost for pair in pairs)
            assert [value.reference, value.value] == pytest.approx([1.0, matched / (matched + lost)])
        else:
            assert value.reference == pytest.approx(getattr(before, name))
            assert value.value == pytest.approx(getattr(after, name))


def test_a_picture_is_unsure_where_scores_are_low_or_objects_near_a_threshold() -> None:
    example = Example(0, "a.jpg")
    whole = found([(0.1, 0.1, 0.9, 0.3)], [0], [0.8])
    object_of_it = replace(truth().native[0], class_ids=np.array([1]), boxes=np.array([[0.1, 0.1, 0.9, 0.3]], "f4"))
    near = replace(object_of_it, boxes=np.array([[0.1, 0.1, 0.9, 0.1 + 0.2 / 0.7001]], "f4"))
    assert lead(None, example, whole) == pytest.approx(0.8)
    assert lead(replace(truth(1), native=(object_of_it,)), example, whole) == pytest.approx(0.8)
    assert lead(replace(truth(1), native=(near,)), example, whole) < 0.1
    assert lead(None, example, found([], [], [])) == 1.0


def test_where_the_reference_finds_nothing_there_is_no_share_of_its_boxes() -> None:
    examples = [Example(number, f"{number}.jpg") for number in range(3)]
    nothing = [found([], [], [])] * 3
    figure = drawn_figures(None, None, (), examples, nothing)["matched_boxes"]
    assert not figure.of_reference(list(zip(examples, nothing, strict=True))).weights.any()


def run(**options: Any) -> EvaluationResult:
    return et.coco(
        sample.detection_model_file("int8"),
        images=sample.detection_images_dir(),
        ground_truth=sample.detection_annotations_file(),
        tests={"xnnpack": "use_xnnpack=true"},
        **options,
    ).result


@pytest.fixture(scope="module")
def whole() -> EvaluationResult:
    return run()


@pytest.mark.once
@pytest.mark.parametrize(("limit", "figure"), [("ar_100 drop <= 20 points", "ar_100"), ("matched_boxes >= 30 %", "")])
def test_a_limit_is_decided_as_by_all_pictures_with_a_part_of_them(
    whole: EvaluationResult, limit: str, figure: str
) -> None:
    result = run(sample="informed", stop="decided", limit=limit)
    assert result.sampling is not None
    answer = result.sampling.answers["xnnpack"]
    assert (answer.answer, answer.decided_after) == ("kept", result.examples_done)
    assert result.examples_done < 60
    of_all = whole.configurations[1].figures
    for name, known in answer.figures.items():
        value = of_all[name]
        assert value is not None
        assert 0 <= known.low <= value <= known.high <= 1
    figures = result.configurations[1].figures
    assert figures["ap"] is None
    assert figures["ar_100"] == answer.figures["ar_100"].value
    assert decide(parse_criterion(limit), evidence_of(result, result.configurations[1])).verdict == "pass"
    assert not [text for text in result.warnings if "different pictures" in text]
    (table,) = sections(result)[0].blocks
    assert isinstance(table, Table)
    assert table.caption == f"Limit: {limit}"


@pytest.mark.once
def test_all_pictures_give_the_figures_of_a_run_in_order(whole: EvaluationResult) -> None:
    result = run(sample="informed", limit="ar_100 drop <= 1 point")
    assert result.part.figures == whole.part.figures
    assert [entry.boxes for entry in result.part.comparisons] == [entry.boxes for entry in whole.part.comparisons]


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("ap drop <= 1 point", "ap ranks the detections of all pictures together"),
        ("matched_boxes <= 1", "a part of the examples decides limits"),
        ("", "needs a limit to decide, such as --limit='ar_100 drop <= 1 point'"),
    ],
)
def test_a_limit_that_drawn_pictures_cannot_decide_is_refused(limit: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(sample="informed", limit=limit)
