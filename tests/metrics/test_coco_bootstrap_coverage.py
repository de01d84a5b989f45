"""How often the interval of a change of mAP holds the change in the population that the pictures are drawn from."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.coco_bootstrap import (
    IOU_THRESHOLDS,
    ImageMatches,
    coco_figures,
)
from evaltools.metrics.resampled import resample_weights

POPULATION = 12_000
PICTURES = 300
SAMPLES = 60
RESAMPLES = 200


def population(generator: np.random.Generator) -> tuple[ImageMatches, ImageMatches]:
    """Two configurations on the same pictures of one class: the second scores with noise and loses a little overlap."""
    truths = generator.integers(1, 5, POPULATION)
    owner = np.repeat(np.arange(POPULATION), truths)
    quality = generator.beta(4, 2, POPULATION)[owner] * generator.uniform(0.6, 1.0, len(owner))
    found = generator.random(len(owner)) < 0.85
    false = np.repeat(np.arange(POPULATION), generator.poisson(1.5, POPULATION))
    images = np.concatenate([owner[found], false])
    order = np.argsort(images, kind="stable")
    levels = np.concatenate([np.floor(quality[found] * (IOU_THRESHOLDS + 1)), np.zeros(len(false))]).astype(int)
    scores = np.concatenate([0.3 + 0.6 * quality[found], generator.beta(2, 3, len(false))])
    worse = np.maximum(levels - (generator.random(len(levels)) < 0.08), 0)
    noisy = scores + generator.normal(0, 0.06, len(scores))
    sets = [(levels, scores), (worse, noisy)]
    first, second = (matches(images[order], some[order], score[order], truths) for some, score in sets)
    return first, second


def matches(
    images: npt.NDArray[np.int64],
    levels: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    truths: npt.NDArray[np.int64],
) -> ImageMatches:
    """Detections that are matched at their first ``levels`` thresholds; the other area ranges are left empty."""
    by_score = np.lexsort((-scores, images))
    images, levels, scores = images[by_score], levels[by_score], scores[by_score]
    ranks = np.arange(len(images)) - np.searchsorted(images, images)
    all_bits = (1 << IOU_THRESHOLDS) - 1
    matched = np.zeros((4, len(images)), np.uint16)
    matched[0] = (1 << levels) - 1
    ignored = np.full((4, len(images)), all_bits, np.uint16)
    ignored[0] = 0
    counts = np.zeros((4, len(truths)), np.int32)
    counts[0] = truths
    return ImageMatches(
        image_count=len(truths),
        category_count=1,
        images=images.astype(np.int32),
        categories=np.zeros(len(images), np.int32),
        ranks=ranks.astype(np.uint8),
        scores=scores,
        matched=matched,
        ignored=ignored,
        truth_images=np.arange(len(truths), dtype=np.int32),
        truth_categories=np.zeros(len(truths), np.int32),
        truth_counts=counts,
    )


def drawn(found: ImageMatches, pictures: npt.NDArray[np.int64]) -> ImageMatches:
    """The same with only these pictures, numbered anew."""
    number = np.full(found.image_count, -1)
    number[pictures] = np.arange(len(pictures))
    kept, kept_truths = number[found.images] >= 0, number[found.truth_images] >= 0
    return ImageMatches(
        image_count=len(pictures),
        category_count=1,
        images=number[found.images[kept]].astype(np.int32),
        categories=found.categories[kept],
        ranks=found.ranks[kept],
        scores=found.scores[kept],
        matched=found.matched[:, kept],
        ignored=found.ignored[:, kept],
        truth_images=number[found.truth_images[kept_truths]].astype(np.int32),
        truth_categories=found.truth_categories[kept_truths],
        truth_counts=found.truth_counts[:, kept_truths],
    )


@pytest.mark.once
def test_the_interval_of_the_change_of_map_holds_the_truth_in_95_of_100_samples() -> None:
    generator = np.random.default_rng(2)
    first, second = population(generator)
    everything = np.ones((1, POPULATION), np.uint16)
    truth = float((coco_figures(second, everything) - coco_figures(first, everything))[0, 0])
    assert -0.05 < truth < -0.005
    held = 0
    for seed in range(SAMPLES):
        pictures = np.sort(generator.choice(POPULATION, PICTURES, replace=False))
        weights = resample_weights(PICTURES, RESAMPLES, seed)
        own, other = (coco_figures(drawn(found, pictures), weights)[:, 0] for found in (first, second))
        low, high = np.quantile(other - own, [0.025, 0.975])
        held += bool(low <= truth <= high)
    assert 0.92 <= held / SAMPLES <= 0.98
