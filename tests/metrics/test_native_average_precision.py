"""Average precision of the native tool: its published test values, values worked out by hand, and a plain retelling.

The retelling goes through levels, detections and objects one by one with float32 scalars, as the C++ code does.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics import native_average_precision as module
from evaltools.metrics.native_average_precision import (
    IOU_THRESHOLDS,
    NativeAveragePrecision,
    Objects,
    native_average_precision,
    order_by_score,
    overlap,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

F = np.float32
Box = tuple[float, float, float, float]
Found = tuple[int, Box, float]
Order = Callable[[Sequence[float]], list[int]]
WHOLE: Box = (0, 0, 1, 1)


def objects(*found: Found) -> Objects:
    """From (class, box, score) each."""
    return Objects(
        np.array([class_id for class_id, _, _ in found], np.int64),
        np.array([box for _, box, _ in found], np.float32).reshape(-1, 4),
        np.array([score for _, _, score in found], np.float32),
    )


def ten(value: float) -> tuple[float, ...]:
    return (float(F(value)),) * 10


def stable(scores: Sequence[float]) -> list[int]:
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def retold_overlap(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> np.float32:
    def length(low: np.float32, high: np.float32) -> np.float32:
        return max(F(0), high - low)

    common = length(max(first[0], second[0]), min(first[2], second[2]))
    common *= length(max(first[1], second[1]), min(first[3], second[3]))
    areas = [length(box[0], box[2]) * length(box[1], box[3]) for box in (first, second)]
    union = areas[0] + areas[1] - common
    return common / union if union > 0 else F(0)


def retold_curve(curve: Sequence[tuple[np.float32, np.float32]]) -> np.float32:
    """From (precision, recall) after each detection."""
    best, total, level = F(0), F(0), 100
    for precision, recall in reversed(curve):
        while recall * F(100) < level:
            total += best
            level -= 1
        best = max(best, precision)
    for _ in range(level + 1):
        total += best
    return total / F(101)


def retold_class(
    truths: Sequence[Objects], detections: Sequence[Objects], class_id: int, threshold: np.float32, order: Order
) -> np.float32:
    free = [list(truth.boxes[truth.class_ids == class_id]) for truth in truths]
    count = sum(map(len, free))
    if not count:
        return F(0)
    found = [
        (picture, box, float(score))
        for picture, each in enumerate(detections)
        for box, score, own in zip(each.boxes, each.scores, each.class_ids, strict=True)
        if own == class_id
    ]
    curve, right = [], 0
    for number, place in enumerate(order([score for _, _, score in found]), start=1):
        picture, box, _ = found[place]
        best, best_overlap = -1, F(-np.inf)
        for index, truth in enumerate(free[picture]):
            share = retold_overlap(box, truth)
            if share > best_overlap:
                best, best_overlap = index, share
        if best >= 0 and best_overlap >= threshold:
            right += 1
            del free[picture][best]
        curve.append((F(right) / F(number), F(right) / F(count)))
    return retold_curve(curve)


def retold(truths: Sequence[Objects], detections: Sequence[Objects], order: Order) -> tuple[tuple[float, ...], float]:
    seen = sorted({int(number) for picture in (*truths, *detections) for number in picture.class_ids})
    each, overall = [], F(0)
    for step in range(10):
        total = F(0)
        for class_id in seen:
            value = retold_class(truths, detections, class_id, F(0.5) + F(0.05) * F(step), order)
            total += value
            overall += value
        each.append(float(total / F(len(seen))))
    return tuple(each), float(overall / F(10 * len(seen)))


def averages(found: NativeAveragePrecision) -> tuple[tuple[float, ...], float]:
    return found.thresholds, found.overall


def random_pictures(
    seed: int, levels: int, pictures: int = 5, grid: int = 0, classes: int = 4
) -> tuple[list[Objects], list[Objects]]:
    """Class 0 has no objects, class ``classes`` no detections; scores are ``levels`` values; every third is empty."""
    rng = np.random.default_rng(seed)

    def box() -> npt.NDArray[np.float64]:
        top, left = rng.uniform(0, 0.6, 2)
        found = np.array([top, left, top + rng.uniform(0.1, 0.4), left + rng.uniform(0.1, 0.4)])
        return np.round(found * grid) / grid if grid else found

    truths, detections = [], []
    for picture in range(pictures):
        true: list[Found] = []
        found: list[Found] = []
        for _ in range(0 if picture % 3 == 2 else rng.integers(0, 9)):
            class_id, place = int(rng.integers(1, classes + 1)), box()
            true.append((class_id, _four(place), 1.0))
            for _ in range(rng.integers(0, 3)):
                moved = place + rng.normal(0, 0.02, 4) if not grid else place + rng.integers(-1, 2, 4) / grid
                found.append((class_id, _four(moved), _score(rng, levels)))
        found += [(int(rng.integers(0, classes)), _four(box()), _score(rng, levels)) for _ in range(rng.integers(0, 4))]
        random.Random(seed).shuffle(found)
        truths.append(objects(*true))
        detections.append(objects(*(each for each in found if each[0] != classes)))
    return truths, detections


def _four(box: npt.NDArray[np.float64]) -> Box:
    top, left, bottom, right = box.tolist()
    return top, left, bottom, right


def _score(rng: np.random.Generator, levels: int) -> float:
    return float(rng.integers(1, levels + 1) / levels)


def test_the_values_of_the_native_tools_own_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its three pictures one after the other: nothing found, everything found, three boxes of which two overlap."""
    monkeypatch.setattr(module, "IOU_THRESHOLDS", (F(0.5), F(0.999)))
    quarter = (0.5, 0.5, 1.0, 1.0)
    truth = objects((1, quarter, 1), (1, WHOLE, 1), (2, quarter, 1))
    near = (0.474, 0.474, 1.0, 1.0)
    found = objects((1, (0.091, 0.091, 1.0, 1.0), 0.8), (1, near, 0.9), (1, near, 0.95))
    pictures = [objects(), truth, found]
    assert native_average_precision([truth], pictures[:1]).overall == 0
    assert F(native_average_precision([truth] * 2, pictures[:2]).overall) == F(0.50495052)
    figures = native_average_precision([truth] * 3, pictures)
    assert [F(value) for value in figures.thresholds] == [F(0.4841584), F(0.33663365)]
    assert F(figures.overall) == F(0.41039604)


def test_right_and_wrong_by_hand() -> None:
    """Right, wrong, right of 2 objects: precision 1 up to a recall of 0.5 (51 levels), then 2/3 (50 levels)."""
    left, right = (0.0, 0.0, 1.0, 0.4), (0.0, 0.6, 1.0, 1.0)
    found = objects((3, left, 0.9), (3, (0.0, 0.4, 1.0, 0.6), 0.8), (3, right, 0.7))
    figures = native_average_precision([objects((3, left, 1), (3, right, 1))], [found])
    assert figures.overall == pytest.approx((51 + 50 * 2 / 3) / 101, rel=1e-6)
    assert (figures.class_count, figures.classes_without_truth) == (1, 0)


@pytest.mark.parametrize(
    ("share", "reached"), [(0.45, 0), (0.5, 1), (0.52, 1), (0.68, 4), (0.75, 6), (0.95, 9), (0.96, 10)]
)
def test_a_detection_counts_up_to_its_overlap(share: float, reached: int) -> None:
    """The last threshold is a little more than 0.95 in float32."""
    found = objects((1, (0.0, 0.0, share, 1.0), 0.9))
    figures = native_average_precision([objects((1, WHOLE, 1))], [found])
    assert list(figures.thresholds) == [1.0] * reached + [0.0] * (10 - reached)
    assert figures.overall == pytest.approx(reached / 10)


def test_thresholds_are_sums_in_float32() -> None:
    assert [f"{value:g}" for value in IOU_THRESHOLDS] == [f"{0.5 + step / 20:g}" for step in range(10)]
    assert all(isinstance(value, np.float32) for value in IOU_THRESHOLDS)
    assert [value for value in IOU_THRESHOLDS if value != F(f"{value:g}")] == [F(0.950000048)]


def test_classes_without_objects_and_without_detections_count_as_0() -> None:
    truth = objects((1, WHOLE, 1), (2, WHOLE, 1))
    figures = native_average_precision([truth], [objects((1, WHOLE, 0.5), (7, WHOLE, 0.9))])
    assert figures == NativeAveragePrecision(ten(1 / 3), float(F(1 / 3)), 3, 1)


def test_of_equal_overlaps_the_first_object_is_taken() -> None:
    """The first detection lies in the middle of two objects; the second one fits only the other."""
    upper, lower, middle = (0.0, 0.0, 0.8, 1.0), (0.2, 0.0, 1.0, 1.0), (0.1, 0.0, 0.9, 1.0)
    assert len(set(overlap(objects((1, middle, 1)).boxes, objects((1, upper, 1), (1, lower, 1)).boxes)[0])) == 1
    found = objects((1, middle, 0.9), (1, lower, 0.8))
    at_075 = [
        native_average_precision([objects(*((1, box, 1.0) for box in truth))], [found]).thresholds[5]
        for truth in ((upper, lower), (lower, upper))
    ]
    assert at_075 == [1.0, float(F(51 / 101))]


def test_nothing_at_all() -> None:
    nothing = NativeAveragePrecision((), 0.0, 0, 0)
    assert native_average_precision([], []) == nothing
    assert native_average_precision([objects(), objects()], [objects(), objects()]) == nothing


def grid_boxes(count: int) -> list[Box]:
    """Boxes that do not overlap."""
    return [(row / 16, column / 16, (row + 1) / 16, (column + 1) / 16) for row in range(16) for column in range(16)][
        :count
    ]


def test_recalls_of_whole_hundredths() -> None:
    """k of 100 objects, then nothing: levels 0 .. k have precision 1, but where float32 of k/100 * 100 is below k."""
    boxes = grid_boxes(100)
    truth = objects(*((1, box, 1.0) for box in boxes))
    short = []
    for count in range(1, 101):
        found = objects(*((1, box, 1 - place / 128) for place, box in enumerate(boxes[:count])))
        levels = round(native_average_precision([truth], [found]).thresholds[0] * 101)
        assert levels in (count + 1, count)
        short += [count] if levels == count else []
    # float32 of k/100 as an exact fraction, times 100, rounded to float32 (24 bits) by hand.
    expected = []
    for count in range(1, 101):
        exact = Fraction(float(F(count / 100))) * 100
        spacing = Fraction(2) ** ((count - 1).bit_length() - 1 - 23)
        if exact < count and count - exact > spacing / 2:
            expected.append(count)
    assert short == expected == [53, 59]


@pytest.mark.parametrize("grid", [0, 20])
@pytest.mark.parametrize("levels", [4, 10**6])
def test_as_retold_on_random_pictures(levels: int, grid: int) -> None:
    """Up to 16 detections per class, which keep their order where scores are equal."""
    compared = 0
    for seed in range(12):
        truths, found = random_pictures(seed, levels, grid=grid)
        every = np.concatenate([picture.class_ids for picture in found])
        if not len(every) or np.bincount(every).max() > 16:
            continue
        assert averages(native_average_precision(truths, found)) == retold(truths, found, stable)
        compared += 1
    assert compared > 6


def test_as_retold_on_many_detections_in_the_native_order() -> None:
    different = 0
    for seed in range(4):
        truths, found = random_pictures(100 + seed, 3, pictures=30, grid=20, classes=2)
        expected = retold(truths, found, order_by_score)
        assert averages(native_average_precision(truths, found)) == expected
        different += expected != retold(truths, found, stable)
    assert different


def test_overlap_equals_the_retelling_for_boxes_of_every_kind() -> None:
    rng = np.random.default_rng(3)
    boxes = rng.uniform(-0.5, 1.5, (60, 4)).astype(np.float32)  # half of the sides are the wrong way round
    boxes[:20] = np.round(boxes[:20] * 4) / 4
    boxes[20:40, 2:] = boxes[20:40, :2] + np.abs(boxes[20:40, 2:])
    found = overlap(boxes, boxes)
    assert found.dtype == np.float32
    assert found.tolist() == [[float(retold_overlap(one, other)) for other in boxes] for one in boxes]


def test_overlap_of_boxes_that_are_no_finite_numbers_is_0() -> None:
    broken = np.array([[np.nan] * 4, [0, 0, np.inf, np.inf], [0, 0, np.nan, 1]], np.float32)
    assert overlap(broken, np.array([WHOLE], np.float32)).tolist() == [[0.0], [0.0], [0.0]]
    assert overlap(broken[1:2], broken[1:2]).tolist() == [[0.0]]
