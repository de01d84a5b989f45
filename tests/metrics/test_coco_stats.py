"""COCO figures: equal to pycocotools run by hand, the same from both packages, and right where worked out by hand."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import astuple, fields, replace
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from evaltools.errors import UsageError
from evaltools.metrics.coco_stats import (
    EVALUATORS,
    CocoEvaluation,
    CocoEvaluator,
    CocoStats,
    DetectedObject,
    EvaluatedSet,
    TrueObject,
    evaluate_detections,
    require_evaluator,
)

Box = tuple[float, float, float, float]
Detections = list[DetectedObject]
NAN, INF = float("nan"), float("inf")
NAMES = [field.name for field in fields(CocoStats)]
CUP, DOG = 7, 9
CATEGORIES = [(CUP, "cup"), (DOG, "dog")]
SQUARE: Box = (10.0, 10.0, 50.0, 50.0)


@pytest.fixture(params=EVALUATORS)
def evaluator(request: pytest.FixtureRequest) -> CocoEvaluator:
    if request.param != "pycocotools":
        pytest.importorskip("faster_coco_eval")
    found: CocoEvaluator = request.param
    return found


def true(box: Box = SQUARE, image: int = 1, category: int = CUP, crowd: bool = False) -> TrueObject:
    return TrueObject(image, category, box, box[2] * box[3], crowd)


def found(box: Box = SQUARE, score: float = 0.9, image: int = 1, category: int = CUP) -> DetectedObject:
    return DetectedObject(image, category, box, score)


def on(*truths: TrueObject, images: Sequence[int] = (1, 2)) -> EvaluatedSet:
    return EvaluatedSet(images, CATEGORIES, truths)


def stats(evaluated: EvaluatedSet, detections: Detections, evaluator: CocoEvaluator = "pycocotools") -> CocoStats:
    return evaluate_detections(evaluated, detections, evaluator).stats


def known(result: CocoStats) -> dict[str, float]:
    """Figures that there are, to 9 digits."""
    values = zip(NAMES, astuple(result), strict=True)
    return {name: round(value, 9) for name, value in values if value is not None}


def numbers(result: CocoEvaluation) -> list[float]:
    """All figures; -1, as in the packages, for those that there are not."""
    values = [*astuple(result.stats), *(value for each in result.categories for value in (each.ap, each.ap50))]
    return [-1 if value is None else value for value in values]


def both(evaluated: EvaluatedSet, detections: Detections) -> CocoEvaluation:
    """What pycocotools gives, which must be what faster-coco-eval gives."""
    result, other = (evaluate_detections(evaluated, detections, evaluator) for evaluator in EVALUATORS)
    assert numbers(other) == pytest.approx(numbers(result), rel=0, abs=1e-12)
    assert [(each.category_id, each.name, each.objects) for each in other.categories] == [
        (each.category_id, each.name, each.objects) for each in result.categories
    ]
    return result


def random_set(
    seed: int, images: int = 5, per_image: int = 8, levels: int = 10**6, crowd: float = 0.15, smallest: int = 4
) -> tuple[EvaluatedSet, Detections]:
    """Objects of all sizes on whole and broken pixels, found, found twice, nearly found, missed; the last category
    has no objects."""
    random = np.random.default_rng(seed)
    ids = random.choice(10**6, images, replace=False).tolist()
    categories = sorted(random.choice(90, 4, replace=False).tolist())
    truths: list[TrueObject] = []
    detections: Detections = []

    def score() -> float:
        return float(random.integers(0, levels) / levels)

    for image in ids:
        for _ in range(random.integers(0, per_image + 1)):
            corner, size = random.uniform(0, 300, 2), np.exp(random.uniform(np.log(smallest), np.log(200), 2))
            box = np.concatenate([corner, size])
            box = np.round(box) if seed % 2 else box
            category = int(random.choice(categories[:-1]))
            area = float(box[2] * box[3] * random.choice([1, 0.6]))
            truths.append(TrueObject(image, category, _four(box), area, bool(random.random() < crowd)))
            for _ in range(random.integers(0, 3)):
                moved = box + random.normal(0, 0.06, 4) * box[[2, 3, 2, 3]]
                kind = category if random.random() < 0.9 else int(random.choice(categories))
                detections.append(DetectedObject(image, kind, _four(moved), score()))
        for _ in range(random.integers(0, 4)):
            box = random.uniform(0, 200, 4)
            detections.append(DetectedObject(image, int(random.choice(categories)), _four(box), score()))
    shuffled = [detections[place] for place in random.permutation(len(detections))]
    return EvaluatedSet(ids, [(number, f"class {number}") for number in categories], truths), shuffled


def _four(box: npt.NDArray[np.float64]) -> Box:
    x, y, width, height = box.tolist()
    return x, y, max(width, 0.0), max(height, 0.0)


def by_hand(folder: Path, evaluated: EvaluatedSet, detections: Detections, first_id: int = 1) -> list[float]:
    """The way of pycocotools' own demonstration."""
    document = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in evaluated.image_ids],
        "categories": [{"id": number, "name": name} for number, name in evaluated.categories],
        "annotations": [
            {
                "id": first_id + number,
                "image_id": truth.image_id,
                "category_id": truth.category_id,
                "bbox": list(truth.bbox),
                "area": truth.area,
                "iscrowd": int(truth.is_crowd),
            }
            for number, truth in enumerate(evaluated.truths)
        ],
    }
    (folder / "instances.json").write_text(json.dumps(document))
    truth_set = COCO(str(folder / "instances.json"))
    results = [
        {"image_id": each.image_id, "category_id": each.category_id, "bbox": list(each.bbox), "score": each.score}
        for each in detections
    ]
    run = COCOeval(truth_set, truth_set.loadRes(results), "bbox")
    run.evaluate()
    run.accumulate()
    run.summarize()
    values: list[float] = run.stats.tolist()
    return values


@pytest.mark.parametrize("levels", [2, 10**6])
@pytest.mark.parametrize("seed", range(6))
def test_all_12_figures_are_exactly_those_of_pycocotools_run_by_hand(tmp_path: Path, seed: int, levels: int) -> None:
    evaluated, detections = random_set(seed, levels=levels)
    expected = by_hand(tmp_path, evaluated, detections)
    result = astuple(stats(evaluated, detections))
    assert [-1 if value is None else value for value in result] == expected
    assert len(set(expected)) > 8


def test_annotations_are_numbered_from_1_for_0_would_match_nothing(tmp_path: Path) -> None:
    evaluated = on(true())
    assert by_hand(tmp_path, evaluated, [found()], first_id=0)[0] == 0
    assert by_hand(tmp_path, evaluated, [found()], first_id=1)[0] == pytest.approx(1)
    assert known(stats(evaluated, [found()]))["ap"] == 1


def test_both_packages_give_the_same_on_random_sets() -> None:
    pytest.importorskip("faster_coco_eval")
    for seed in range(24):
        evaluated, detections = random_set(
            seed, levels=(2, 10, 10**6)[seed % 3], crowd=(0, 0.15, 0.6)[seed // 3 % 3], smallest=(4, 25)[seed // 9 % 2]
        )
        both(evaluated, detections)


def test_both_packages_give_the_same_with_more_than_100_detections_per_picture() -> None:
    pytest.importorskip("faster_coco_eval")
    evaluated, detections = random_set(5, images=3, per_image=20)
    category, _ = evaluated.categories[0]
    crowded = [
        replace(each, score=each.score / (1 + copy // 2), category_id=category)
        for each in detections
        for copy in range(20)
    ]
    assert min(sum(each.image_id == image for each in crowded) for image in evaluated.image_ids) > 100
    assert both(evaluated, crowded).stats.ap


def test_figures_worked_out_by_hand(evaluator: CocoEvaluator) -> None:
    """Cups A (100 x 100, picture 1) and B (60 x 60, picture 2); A is found, B with an IoU of 0.62 after a miss.

    At 0.5, 0.55, 0.6: precision 1 up to a recall of 0.5 (51 levels), then 2/3 (50 levels). Above: 1, then 0.
    Among medium objects the miss comes before B: precision 1/2 at three of ten thresholds.
    """
    evaluated = on(true((0, 0, 100, 100)), true((200, 0, 60, 60), image=2))
    detections = [
        found((0, 0, 100, 100), 0.9),
        found((0, 300, 50, 50), 0.8, image=2),
        found((200, 0, 60, 37.2), 0.7, image=2),
    ]
    ap50 = (51 + 50 * 2 / 3) / 101
    assert known(stats(evaluated, detections, evaluator)) == {
        "ap": round((3 * ap50 + 7 * 51 / 101) / 10, 9),
        "ap50": round(ap50, 9),
        "ap75": round(51 / 101, 9),
        "ap_medium": 0.15,
        "ap_large": 1,
        "ar_1": 0.5,
        "ar_10": 0.65,
        "ar_100": 0.65,
        "ar_medium": 0.3,
        "ar_large": 1,
    }


def test_a_category_has_the_figures_of_an_evaluation_of_it_alone(evaluator: CocoEvaluator) -> None:
    evaluated, detections = random_set(4)
    result = evaluate_detections(evaluated, detections, evaluator)
    assert [(each.category_id, each.name) for each in result.categories] == list(evaluated.categories)
    for each in result.categories:
        own = [truth for truth in evaluated.truths if truth.category_id == each.category_id]
        alone = stats(EvaluatedSet(evaluated.image_ids, [(each.category_id, "it")], own), detections, evaluator)
        assert (each.ap, each.ap50) == (alone.ap, alone.ap50)
        assert each.objects == sum(not truth.is_crowd for truth in own)
    assert result.categories[-1].ap is None
    assert [each.ap for each in result.categories[:-1]] != [None] * 3


ALL_OF: dict[str, float] = {
    "ap": 1,
    "ap50": 1,
    "ap75": 1,
    "ap_medium": 1,
    "ar_1": 1,
    "ar_10": 1,
    "ar_100": 1,
    "ar_medium": 1,
}
NONE_OF: dict[str, float] = dict.fromkeys(ALL_OF, 0)
ONE_CUP = on(true())

AWKWARD: dict[str, tuple[EvaluatedSet, Detections, dict[str, float]]] = {
    "nothing": (EvaluatedSet([], [], []), [], {}),
    "no pictures": (on(images=[]), [found()], {}),
    "no categories": (EvaluatedSet([1], [], []), [found()], {}),
    "no objects": (on(), [found()], {}),
    "no detections": (ONE_CUP, [], NONE_OF),
    "an unknown picture": (ONE_CUP, [found(), found(score=1, image=77)], ALL_OF),
    "an unknown category": (ONE_CUP, [found(), found(score=1, category=55)], ALL_OF),
    "only unknown ones": (ONE_CUP, [found(image=77), found(category=55)], NONE_OF),
    "a category without objects": (ONE_CUP, [found(), found(score=1, category=DOG)], ALL_OF),
    "a picture without objects": (ONE_CUP, [found(), found(image=2, score=0.1)], ALL_OF),
    "a NaN score": (ONE_CUP, [found(score=NAN), found(score=0.1)], ALL_OF),
    "an infinite score": (ONE_CUP, [found((0, 0, 9, 9), INF), found(score=0.1)], ALL_OF),
    "a NaN box": (ONE_CUP, [found((NAN, 0, 40, 40), 1), found(score=0.1)], ALL_OF),
    "an infinite box": (ONE_CUP, [found((0, 0, INF, 40), 1), found(score=0.1)], ALL_OF),
    "nothing finite": (ONE_CUP, [found(score=NAN), found((0, 0, 1, -INF))], NONE_OF),
    "a score below 0": (ONE_CUP, [found(score=-3)], ALL_OF),
    "a box without area": (
        on(true((20, 20, 0, 0))),
        [found((20, 20, 0, 0))],
        {"ap_small" if name == "ap_medium" else "ar_small" if name == "ar_medium" else name: 0 for name in NONE_OF},
    ),
    "crowd regions only": (on(true(crowd=True)), [found()], {}),
    "many in a crowd region": (
        on(true((0, 0, 50, 50), crowd=True), true((200, 200, 50, 50))),
        [*(found((place, place, 20, 20), 0.9) for place in range(9)), found((200, 200, 50, 50), 0.1)],
        {**ALL_OF, "ar_1": 0},
    ),
    "the 100th detection": (
        ONE_CUP,
        [*(found((300, 9, 9, 9), 0.9) for _ in range(99)), found(score=0.1)],
        {**ALL_OF, "ap": 0.01, "ap50": 0.01, "ap75": 0.01, "ar_1": 0, "ar_10": 0},
    ),
    "the 101st detection": (ONE_CUP, [*(found((300, 9, 9, 9), 0.9) for _ in range(100)), found(score=0.1)], NONE_OF),
    "the 11th detection": (
        ONE_CUP,
        [*(found((300, 9, 40, 40), 0.9) for _ in range(10)), found(score=0.1)],
        {**ALL_OF, **dict.fromkeys(("ap", "ap50", "ap75", "ap_medium"), round(1 / 11, 9)), "ar_1": 0, "ar_10": 0},
    ),
    "an area of 32 x 32 is small and medium": (
        on(true((0, 0, 32, 32))),
        [found((0, 0, 32, 32))],
        {**ALL_OF, "ap_small": 1, "ar_small": 1},
    ),
    "an area of 96 x 96 is medium and large": (
        on(true((0, 0, 96, 96))),
        [found((0, 0, 96, 96))],
        {**ALL_OF, "ap_large": 1, "ar_large": 1},
    ),
    "of equal scores the first given counts first": (
        ONE_CUP,
        [found((300, 300, 50, 50), 0.5), found(score=0.5)],
        {**ALL_OF, **dict.fromkeys(("ap", "ap50", "ap75", "ap_medium"), 0.5), "ar_1": 0},
    ),
    "pictures of equal scores in the order of their ids": (
        on(true(image=3), images=[8, 3]),
        [found(image=8, score=0.5), found(image=3, score=0.5)],
        ALL_OF,
    ),
    "ids beyond float64": (
        on(true(image=2**62), true(image=2**62 + 1), images=[2**62 + 1, 2**62]),
        [found(image=2**62), found(image=2**62 + 1), found((300, 300, 50, 50), 0.1, image=2**62 + 1)],
        ALL_OF,
    ),
    "negative and zero ids": (
        EvaluatedSet([-3, 0], [(0, "cup")], [true(image=-3, category=0), true(image=0, category=0)]),
        [found(image=-3, category=0), found(image=0, category=0)],
        ALL_OF,
    ),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_sets(name: str, evaluator: CocoEvaluator) -> None:
    evaluated, detections, expected = AWKWARD[name]
    assert known(stats(evaluated, detections, evaluator)) == pytest.approx(expected)


def test_the_package_and_its_version_are_named(evaluator: CocoEvaluator) -> None:
    assert evaluate_detections(ONE_CUP, [], evaluator).evaluator == f"{evaluator} {version(evaluator)}"


def test_a_package_that_is_not_installed_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_coco_eval", None)
    with pytest.raises(UsageError, match=r"--coco_evaluator=faster-coco-eval.*pip install 'evaltools\[fast\]'"):
        evaluate_detections(ONE_CUP, [found()], "faster-coco-eval")
    with pytest.raises(UsageError, match="is not installed here"):
        require_evaluator("faster-coco-eval")
    require_evaluator("pycocotools")
    assert known(stats(ONE_CUP, [found()])) == ALL_OF


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_ids_beyond_what_float64_holds_stay_apart(evaluator: CocoEvaluator) -> None:
    """2^53 + 1 is not a float64: two categories and two pictures would become one."""
    big = 2**53
    box = (0.0, 0.0, 50.0, 50.0)
    truths = [TrueObject(big + place, big + place, box, 2500.0, False) for place in (0, 1)]
    found = [DetectedObject(big, big, box, 0.9), DetectedObject(big, big + 1, box, 0.8)]
    evaluated = EvaluatedSet([big, big + 1], [(big, "even"), (big + 1, "odd")], truths)
    evaluation = evaluate_detections(evaluated, found, evaluator)
    assert [entry.category_id for entry in evaluation.categories] == [big, big + 1]
    assert [entry.ap for entry in evaluation.categories] == pytest.approx([1, 0])
