"""Boxes matched between two detectors, against areas worked out by hand and brute force."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evaltools.metrics.boxes import BoxAgreement, Detections, compare_boxes, detections, intersection_over_union

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

Box = Sequence[float]
UNIT: Box = (0, 0, 1, 1)
FAR: Box = (5, 5, 6, 6)


def found(*boxes: Box, classes: Sequence[float] | None = None, scores: Sequence[float] | None = None) -> Detections:
    return Detections(
        np.array(boxes, np.float64).reshape(-1, 4),
        np.array(classes if classes is not None else [1.0] * len(boxes)),
        np.array(scores if scores is not None else [0.5] * len(boxes)),
    )


def counts(agreement: BoxAgreement) -> tuple[int, int, int, int]:
    return agreement.matched, agreement.lost, agreement.new, agreement.class_changes


def test_overlap_equals_counting_cells_of_a_grid() -> None:
    random = np.random.default_rng(1)
    corners = [(random.integers(0, 12, 2), random.integers(0, 12, 2)) for _ in range(30)]
    boxes = np.array([np.concatenate([np.minimum(a, b), np.maximum(a, b)]) for a, b in corners], np.float64)
    grids = np.zeros((30, 12, 12), bool)
    for grid, (top, left, bottom, right) in zip(grids, boxes.astype(int), strict=True):
        grid[top:bottom, left:right] = True
    overlaps = intersection_over_union(boxes, boxes)
    for first in range(30):
        for second in range(first):
            union = (grids[first] | grids[second]).sum()
            common = (grids[first] & grids[second]).sum()
            same = bool((boxes[first] == boxes[second]).all())
            expected = 1.0 if same else common / union if union else 0.0
            assert overlaps[first, second] == overlaps[second, first] == pytest.approx(expected)


def test_a_half_covered_box_matches_and_a_smaller_part_does_not() -> None:
    assert counts(compare_boxes(found((0, 0, 1, 0.5)), found(UNIT))) == (1, 0, 0, 0)
    assert counts(compare_boxes(found((0, 0, 1, 0.49)), found(UNIT))) == (0, 1, 1, 0)


def test_equal_empty_boxes_match_and_other_degenerate_ones_do_not() -> None:
    point, line, swapped = (2, 2, 2, 2), (2, 2, 2, 3), (1, 1, 0, 0)
    assert intersection_over_union(np.array([point]), np.array([point, line])).tolist() == [[1.0, 0.0]]
    assert counts(compare_boxes(found(swapped), found(UNIT))) == (0, 1, 1, 0)


def test_boxes_with_nan_or_a_nan_score_match_nothing() -> None:
    broken = found((0, 0, np.nan, 1))
    assert counts(compare_boxes(broken, broken)) == (0, 1, 1, 0)
    unscored = compare_boxes(found(UNIT, scores=[np.nan]), found(UNIT))
    assert (counts(unscored), unscored.score_shift) == ((0, 1, 1, 0), 0.0)


def test_infinite_boxes_match_only_their_equals() -> None:
    infinite = found((0, 0, np.inf, np.inf))
    assert counts(compare_boxes(infinite, infinite)) == (1, 0, 0, 0)
    assert counts(compare_boxes(infinite, found((0, 0, np.inf, 1)))) == (0, 1, 1, 0)


def test_a_partner_of_the_same_class_comes_before_a_better_overlap() -> None:
    test = found(UNIT, (0, 0, 1, 0.8), classes=[2, 1])
    agreement = compare_boxes(test, found(UNIT, classes=[1]))
    assert counts(agreement) == (1, 0, 1, 0)
    assert agreement.mean_iou == pytest.approx(0.8)
    assert agreement.moved == pytest.approx(0.2)


def test_within_a_class_the_best_overlap_comes_first() -> None:
    test = found((0, 0, 1, 0.6), (0, 0, 1, 0.9))
    agreement = compare_boxes(test, found(UNIT, FAR))
    assert counts(agreement) == (1, 1, 1, 0)
    assert agreement.sum_iou == pytest.approx(0.9)


def test_a_change_of_class_is_a_pair_that_does_not_count_as_shared() -> None:
    agreement = compare_boxes(found(UNIT, FAR, classes=[1, 2]), found(UNIT, FAR, classes=[1, 3]))
    assert (counts(agreement), agreement.share) == ((2, 0, 0, 1), 0.5)


def test_the_changes_of_scores_of_pairs_are_summed_whatever_their_sign() -> None:
    test, reference = found(UNIT, FAR, scores=[0.75, 0.5]), found(UNIT, FAR, scores=[0.5, 0.625])
    agreement = compare_boxes(test, reference)
    assert (agreement.sum_score_shift, agreement.mean_score_shift, agreement.score_shift) == (0.375, 0.1875, 0.25)
    assert compare_boxes(reference, test).sum_score_shift == 0.375


def test_no_box_at_all_is_agreement() -> None:
    nothing = compare_boxes(found(), found())
    assert (nothing.share, nothing.mean_iou, nothing.moved, nothing.score_shift) == (1.0, None, 0.0, 0.0)
    assert (nothing.sum_score_shift, nothing.mean_score_shift) == (0.0, None)
    assert nothing == BoxAgreement.nothing()
    assert (compare_boxes(found(UNIT), found()).share, compare_boxes(found(), found(UNIT)).lost) == (0.0, 1)


def test_agreements_add_up_and_keep_the_largest_move() -> None:
    total = BoxAgreement(2, 1, 1, 1, 1.5, 0.3, 0.1, 0.5) + BoxAgreement(2, 2, 3, 1, 1.7, 0.1, 0.2, 0.25)
    assert total == BoxAgreement(4, 3, 4, 2, 3.2, 0.3, 0.2, 0.75)
    assert total.mean_score_shift == 0.1875
    assert total.share == 4 / 15
    assert total.mean_iou == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("count", "kept"), [(2.0, [0.9, 0.1]), (9.0, [0.9, 0.1, 0.3]), (-1.0, []), (np.nan, [0.9, 0.1, 0.3])]
)
def test_entries_from_the_count_on_are_left_out(count: float, kept: list[float]) -> None:
    boxes = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    scores = np.array([[0.9, 0.1, 0.3]])
    assert detections(boxes, np.zeros((1, 3)), scores, np.array([count])).scores.tolist() == kept


def test_empty_entries_are_left_out_with_their_boxes_and_classes() -> None:
    boxes = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    entries = detections(boxes, np.array([[7, 8, 9]]), np.array([[0.5, 0.0, np.nan]]), np.array([3.0]))
    assert entries.classes.tolist() == [7, 9]
    assert entries.boxes.tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
