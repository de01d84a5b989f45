"""Figures of weighted images: those of COCOeval on data sets in which the images really are there so many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import astuple, fields, replace

from evaltools.metrics.coco_bootstrap import (
    ImageMatches,
    coco_figures,
)
from evaltools.metrics.coco_stats import (
    DetectedObject,
    EvaluatedSet,
    TrueObject,
    evaluate_detections,
    evaluate_with_matches,
)
from evaltools.metrics.resampled import resample_weights
from tests.metrics.test_coco_stats import CATEGORIES, CUP, found, random_set, true

Detections = list[DetectedObject]
Floats = npt.NDArray[np.float64]
NAN = float("nan")


def matches_of(evaluated: EvaluatedSet, detections: Detections) -> ImageMatches:
    return evaluate_with_matches(evaluated, detections)[1]


def of_cocoeval(evaluated: EvaluatedSet, detections: Detections) -> Floats:
    return np.array(
        [NAN if value is None else value for value in astuple(evaluate_detections(evaluated, detections).stats)]
    )


def copied(evaluated: EvaluatedSet, detections: Detections, weights: Sequence[int]) -> tuple[EvaluatedSet, Detections]:
    """Each image as often as its weight says, all under new ids, the copies of an image next to each other."""
    ids = sorted(set(evaluated.image_ids))
    ends = np.cumsum(weights).tolist()
    copies = {image: range(end - count, end) for image, count, end in zip(ids, weights, ends, strict=True)}
    truths = [replace(truth, image_id=copy) for truth in evaluated.truths for copy in copies[truth.image_id]]
    objects = [replace(each, image_id=copy) for each in detections for copy in copies[each.image_id]]
    return EvaluatedSet(range(sum(weights)), evaluated.categories, truths), objects


def assert_equal(values: Floats, expected: Floats) -> None:
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


def crowded_set(seed: int) -> tuple[EvaluatedSet, Detections]:
    """More than 100 detections of one category in every image, with ties."""
    evaluated, detections = random_set(seed, images=3, per_image=20, levels=100)
    category, _ = evaluated.categories[0]
    many = [
        replace(each, score=each.score / (1 + copy // 2), category_id=category)
        for each in detections
        for copy in range(60)
    ]
    assert min(sum(each.image_id == image for each in many) for image in evaluated.image_ids) > 100
    return evaluated, many


@pytest.mark.parametrize("levels", [2, 10**6])
@pytest.mark.parametrize("seed", [0, 1, 2, 9, 10, 11])
def test_weights_give_what_cocoeval_gives_for_images_that_are_there_so_often(seed: int, levels: int) -> None:
    evaluated, detections = random_set(
        seed, images=7, levels=levels, crowd=(0, 0.15, 0.6)[seed % 3], smallest=(4, 25)[seed // 9]
    )
    weights = np.vstack([np.ones((1, 7), np.int64), np.random.default_rng(seed).integers(0, 4, (3, 7))])
    figures = coco_figures(matches_of(evaluated, detections), weights)
    for row, values in zip(weights, figures, strict=True):
        assert_equal(values, of_cocoeval(*copied(evaluated, detections, row.tolist())))


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_more_than_100_detections_of_an_image(seed: int) -> None:
    evaluated, detections = crowded_set(seed)
    weights = np.array([[1, 1, 1], [0, 2, 1], [4, 0, 0]])
    figures = coco_figures(matches_of(evaluated, detections), weights)
    assert figures[0, 6] < figures[0, 7] < figures[0, 8]
    for row, values in zip(weights, figures, strict=True):
        assert_equal(values, of_cocoeval(*copied(evaluated, detections, row.tolist())))


def test_equal_scores_in_an_image_that_is_drawn_twice_worked_out_by_hand() -> None:
    """Found, missed, found, missed: precision 1 up to a recall of 0.5 (51 levels), then 2/3 (50 levels)."""
    evaluated = EvaluatedSet([1], CATEGORIES, [true()])
    matches = matches_of(evaluated, [found(score=0.5), found((300, 300, 50, 50), score=0.5)])
    figures = coco_figures(matches, np.array([[1], [2]]))
    assert figures[:, 1] == pytest.approx([1, (51 + 50 * 2 / 3) / 101])


def test_figures_that_a_resample_does_not_have_are_nan() -> None:
    """The only cup is in image 3, and it is medium; images stand in the order of their ids."""
    evaluated = EvaluatedSet([8, 3], CATEGORIES, [true(image=3)])
    figures = coco_figures(matches_of(evaluated, [found(image=3)]), np.array([[1, 0], [0, 1]]))
    known = [0, 1, 2, 4, 6, 7, 8, 10]
    assert figures[0, known] == pytest.approx(1)
    assert np.isnan(np.delete(figures[0], known)).all()
    assert np.isnan(figures[1]).all()


def test_a_recall_is_reached_where_numpy_searchsorted_says() -> None:
    """A hit and a miss in turn, for 1 to 300 objects: each count divides the 101 recalls in another way."""
    most = 300
    places = np.arange(2 * most)
    hits = np.where(places % 2, 0, 1023).astype(np.uint16)
    matches = ImageMatches(
        image_count=most,
        category_count=1,
        images=(places // 2).astype(np.int32),
        categories=np.zeros(2 * most, np.int32),
        ranks=(places % 2).astype(np.uint8),
        scores=1 - places / 1000,
        matched=np.tile(hits, (4, 1)),
        ignored=np.zeros((4, 2 * most), np.uint16),
        truth_images=np.arange(most, dtype=np.int32),
        truth_categories=np.zeros(most, np.int32),
        truth_counts=np.ones((4, most), np.int32),
    )
    figures = coco_figures(matches, np.tri(most, dtype=np.int64))
    for count in range(1, most + 1):
        true_positives = np.cumsum(hits[: 2 * count] > 0)
        precision = true_positives / (np.arange(1, 2 * count + 1) + np.spacing(1))
        highest = [precision[place:].max() for place in range(2 * count)]
        reached = np.searchsorted(true_positives / count, np.linspace(0, 1, 101), side="left")
        assert figures[count - 1, 0] == pytest.approx(np.mean([highest[place] for place in reached]), abs=1e-12)


def test_the_matches_do_not_depend_on_the_package() -> None:
    pytest.importorskip("faster_coco_eval")
    evaluated, detections = random_set(8)
    evaluation, matches = evaluate_with_matches(evaluated, detections, "faster-coco-eval")
    assert evaluation == evaluate_detections(evaluated, detections, "faster-coco-eval")
    expected = matches_of(evaluated, detections)
    for field in fields(ImageMatches):
        np.testing.assert_array_equal(getattr(matches, field.name), getattr(expected, field.name))


def test_matches_of_one_image() -> None:
    """An IoU of 0.62 counts at 0.5, 0.55 and 0.6; the object is medium, so the match is ignored among other sizes."""
    evaluated = EvaluatedSet([1], [(CUP, "cup")], [true((0, 0, 50, 50)), TrueObject(1, CUP, (200, 0, 9, 9), 81, True)])
    matches = matches_of(
        evaluated, [found((0, 0, 50, 31), 0.5), found((200, 0, 9, 9), 0.25), found((90, 0, 9, 9), 0.75)]
    )
    every = 1023
    assert matches.scores.tolist() == [0.75, 0.5, 0.25]
    assert matches.ranks.tolist() == [0, 1, 2]
    assert matches.matched.tolist() == [[0, 0b111, every]] * 4
    assert matches.ignored.tolist() == [[0, 0, every], [0, every, every], [every, 0, every], [every, every, every]]
    assert matches.truth_counts.tolist() == [[1], [0], [1], [0]]


def test_resamples_have_as_many_images_as_the_set_and_repeat_with_their_seed() -> None:
    weights = resample_weights(300, 2000, seed=7)
    assert weights.dtype == np.uint16
    assert weights.shape == (2000, 300)
    assert set(weights.sum(axis=1).tolist()) == {300}
    np.testing.assert_array_equal(weights, resample_weights(300, 2000, seed=7))
    np.testing.assert_array_equal(weights[:5], resample_weights(300, 5, seed=7))
    assert (weights[:5] != resample_weights(300, 5, seed=8)).any()
    assert resample_weights(0, 3, seed=1).shape == (3, 0)


def test_each_image_is_drawn_as_often_as_a_binomial_count() -> None:
    """Over 600000 counts with p = 1/300: variance 299/300, and a share of (1 - p)^300 that is 0."""
    weights = resample_weights(300, 2000, seed=7)
    assert weights.var() == pytest.approx(299 / 300, abs=0.01)
    assert (weights == 0).mean() == pytest.approx((299 / 300) ** 300, abs=0.003)
    assert weights.mean(axis=0) == pytest.approx(np.ones(300), abs=0.12)
