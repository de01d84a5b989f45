"""Recall of COCO detection as sums over images: of all figures of COCO those that no other image has a part in.

Which objects of an image are found depends on its own detections alone. AR is the mean over the categories of the share
of objects found, itself the mean over the IoU thresholds; so each image adds a known part of it. Precision ranks the
detections of all images together, and has no such parts.

Source: ``COCOeval.accumulate`` of pycocotools 2.0, where recall is that at the end of the ranking.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from evaltools.stats.coco_bootstrap import AREAS, IOU_THRESHOLDS, ImageMatches

Floats = np.ndarray[Any, np.dtype[np.float64]]
RECALLS: Final = {
    "ar_1": (0, 1),
    "ar_10": (0, 10),
    "ar_100": (0, 100),
    "ar_small": (1, 100),
    "ar_medium": (2, 100),
    "ar_large": (3, 100),
}
"""Area range, a place in :data:`AREAS`, and most detections per image and category, by figure."""


def objects_found(matches: ImageMatches) -> Floats:
    """How many objects of each category are found in all images together, mean over the IoU thresholds: ``(6, K)``.

    A row for each of :data:`RECALLS`.
    """
    found = np.zeros((len(RECALLS), matches.category_count))
    for row, (area, most) in zip(found, RECALLS.values(), strict=True):
        hits = np.where(matches.ranks < most, matches.matched[area] & ~matches.ignored[area], 0).astype(np.uint16)
        thresholds = np.unpackbits(hits.view(np.uint8).reshape(-1, 2), axis=1).sum(axis=1)
        np.add.at(row, matches.categories, thresholds / IOU_THRESHOLDS)
    return found


def objects_there(matches: ImageMatches) -> Floats:
    """How many objects of each category count in all images together, ``(6, K)``; a row for each of :data:`RECALLS`."""
    counts = np.zeros((len(AREAS), matches.category_count))
    for row, of_pairs in zip(counts, matches.truth_counts, strict=True):
        np.add.at(row, matches.truth_categories, of_pairs)
    return counts[[area for area, _ in RECALLS.values()]]


def weights_of_objects(there: Floats) -> Floats:
    """What an object of each category adds to each figure, by how many are ``there`` in all images, each ``(6, K)``.

    ``1 / (objects of the category * categories with objects)``, 0 for a category without one; so a figure is the sum
    over the categories of the weight times the objects found.

    >>> weights_of_objects(np.array([[4.0, 1.0, 0.0]]))
    array([[0.125, 0.5  , 0.   ]])
    """
    categories = np.maximum(np.count_nonzero(there, axis=1, keepdims=True), 1)
    weights: Floats = np.where(there > 0, 1 / (np.maximum(there, 1) * categories), 0.0)
    return weights
