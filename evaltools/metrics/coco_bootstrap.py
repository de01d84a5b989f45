"""A paired bootstrap over images of the twelve figures of COCO detection.

An image is drawn with all that belongs to it: its ground truths and its detections. So what COCOeval matched in each
image stays as it is, and only the accumulation is done again, with the number of times that each image was drawn for
its weight. The same :func:`~evaltools.metrics.resampled.resample_weights` for two configurations make their difference
a paired one.

Sources: ``COCOeval.accumulate`` and ``COCOeval.summarize`` of pycocotools 2.0 for the figures; B. Efron and
R. J. Tibshirani, An Introduction to the Bootstrap, 1993, chapter 6, for the resampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

FIGURES: Final = 12
IOU_THRESHOLDS: Final = 10
AREAS: Final = ("all", "small", "medium", "large")

_AP50, _AP75 = 0, 5
_RECALLS: Final = np.linspace(0.0, 1.0, 101)
_EVERY_THRESHOLD: Final = (1 << IOU_THRESHOLDS) - 1
_MOST_WEIGHTS: Final = 1 << 23
"""Weights that are looked at together, resamples times images."""
_BLOCK: Final = 1 << 20
"""Numbers in the largest array of one ranking, resamples times detections."""
_LIMITED_RECALLS: Final = ((0, 1), (0, 10), (0, 100), (1, 100), (2, 100), (3, 100))
"""Area range and most detections per image and category of the recall figures, in their order."""

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class ImageMatches(Struct, frozen=True):
    """What ``COCOeval.evaluate`` found in each image: enough to accumulate over any multiset of the images.

    Images and categories are numbered from 0, in the order of their ids. N detections, at most 100 of an image and
    category: ``images``, ``categories`` (N,) int32; ``ranks`` (N,) uint8, place by score within image and category,
    from 0; ``scores`` (N,) float64, finite. ``matched`` and ``ignored`` (4, N) uint16, a row for each of :data:`AREAS`:
    bit t is set where the detection is matched or ignored at the t-th IoU threshold of 0.5, 0.55 .. 0.95.

    Ground truths, summed up in P pairs of image and category: ``truth_images``, ``truth_categories`` (P,) int32, and
    ``truth_counts`` (4, P) int32, how many of them count in each area range: neither crowd nor of another size.
    """

    image_count: int
    category_count: int
    images: npt.NDArray[np.int32]
    categories: npt.NDArray[np.int32]
    ranks: npt.NDArray[np.uint8]
    scores: Floats
    matched: npt.NDArray[np.uint16]
    ignored: npt.NDArray[np.uint16]
    truth_images: npt.NDArray[np.int32]
    truth_categories: npt.NDArray[np.int32]
    truth_counts: npt.NDArray[np.int32]


def coco_figures(matches: ImageMatches, weights: Ints) -> Floats:
    """The twelve figures of ``COCOeval.summarize`` in its order for R multisets of the I images: (R, 12), 0..1.

    ``weights`` (R, I), whole numbers from 0 on: how often each image is in each multiset. A row gives what COCOeval
    gives for a data set in which each image is there so many times, its copies (with ids of their own) next to it.
    NaN stands where COCOeval prints -1: the multiset has no ground truth of that kind.

    An image with an object that is found at every IoU threshold, and one with an object that is not; both are large:

    >>> matches = ImageMatches(
    ...     image_count=2, category_count=1,
    ...     images=np.array([0], np.int32), categories=np.array([0], np.int32), ranks=np.array([0], np.uint8),
    ...     scores=np.array([0.9]),
    ...     matched=np.full((4, 1), 1023, np.uint16), ignored=np.array([[0], [1023], [1023], [0]], np.uint16),
    ...     truth_images=np.array([0, 1], np.int32), truth_categories=np.array([0, 0], np.int32),
    ...     truth_counts=np.array([[1, 1], [0, 0], [0, 0], [1, 1]], np.int32),
    ... )
    >>> coco_figures(matches, np.array([[1, 1], [2, 0], [0, 2]]))[:, [0, 3, 6]].round(3)
    array([[0.505,   nan, 0.5  ],
           [1.   ,   nan, 1.   ],
           [0.   ,   nan, 0.   ]])
    """
    if weights.ndim != 2 or weights.shape[1] != matches.image_count:
        raise ValueError(f"weights of the shape {weights.shape}; expected is (resamples, {matches.image_count})")
    rankings = list(_rankings(matches, int(weights.max(initial=0))))
    rows = max(1, _MOST_WEIGHTS // max(1, matches.image_count))
    blocks = [weights[start : start + rows] for start in range(0, len(weights), rows)]
    figures = [_figures(matches, rankings, np.ascontiguousarray(block, np.int32)) for block in blocks]
    return np.concatenate([np.zeros((0, FIGURES)), *figures])


def category_precisions(matches: ImageMatches, weights: Ints) -> Floats:
    """AP of each of the K categories (IoU 0.5 to 0.95, all sizes) for R multisets of the images: (R, K), 0..1.

    As :func:`coco_figures`; NaN where a multiset has no ground truth of the category.
    """
    drawn = np.ascontiguousarray(weights, np.int32)
    truths = _truths(matches, drawn)[0]
    sums = np.zeros((len(drawn), matches.category_count))
    for ranking in _rankings(matches, int(weights.max(initial=0))):
        if AREAS[ranking.area] == "all":
            sums[:, ranking.category] = _precisions(ranking, drawn, truths[ranking.category]).mean(axis=1)
    return np.where(truths.T > 0, sums, np.nan)


def _figures(matches: ImageMatches, rankings: Sequence[_Ranking], drawn: npt.NDArray[np.int32]) -> Floats:
    truths = _truths(matches, drawn)
    precisions = np.zeros((len(AREAS), len(drawn), IOU_THRESHOLDS))
    for ranking in rankings:
        precisions[ranking.area] += _precisions(ranking, drawn, truths[ranking.area, ranking.category])
    present = np.count_nonzero(truths, axis=1)
    figures = np.full((len(drawn), FIGURES), np.nan)
    whole = precisions.mean(axis=2)
    figures[:, 0] = _mean(whole[0], present[0])
    figures[:, 1] = _mean(precisions[0, :, _AP50], present[0])
    figures[:, 2] = _mean(precisions[0, :, _AP75], present[0])
    for area in (1, 2, 3):
        figures[:, 2 + area] = _mean(whole[area], present[area])
    for number, (area, most) in enumerate(_LIMITED_RECALLS, start=6):
        recalls = _recalls(matches, drawn, truths[area], area, most)
        figures[:, number] = _mean(recalls, present[area])
    return figures


def _mean(sums: Floats, counts: Ints) -> Floats:
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def _weighted(
    matches: ImageMatches, weights: npt.NDArray[np.int32], images: Ints, categories: Ints, counts: Ints
) -> npt.NDArray[np.int32]:
    """Sums of ``counts`` (P,), each as often as its image is drawn, by category: (K, R)."""
    from scipy import sparse

    shape = (matches.category_count, matches.image_count)
    table = sparse.csr_matrix((counts.astype(np.int32), (categories, images)), shape=shape)
    sums: npt.NDArray[np.int32] = table @ weights.T
    return sums


def _truths(matches: ImageMatches, weights: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Ground truths that count, by area range, category and resample: (4, K, R)."""
    places = matches.truth_images, matches.truth_categories
    return np.stack([_weighted(matches, weights, *places, counts) for counts in matches.truth_counts])


def _recalls(
    matches: ImageMatches, weights: npt.NDArray[np.int32], truths: npt.NDArray[np.int32], area: int, most: int
) -> Floats:
    """Recall at the end of the ranking, its mean over the IoU thresholds, summed over the categories: (R,)."""
    hits = matches.matched[area] & ~matches.ignored[area]
    kept = np.flatnonzero((hits != 0) & (matches.ranks < most))
    thresholds = np.unpackbits(hits[kept].view(np.uint8).reshape(-1, 2), axis=1).sum(axis=1)
    found = _weighted(matches, weights, matches.images[kept], matches.categories[kept], thresholds)
    recalls: Floats = (found / np.maximum(truths, 1)).sum(axis=0) / IOU_THRESHOLDS
    return recalls


class _Ranking(Struct, frozen=True):
    """The N detections of a category that count in an area range, best score first, up to the last true positive.

    ``copies`` (N,): -1, or the place among the copies of its image for which only an entry stands. ``counted`` and
    ``hits`` (N,): bits of the IoU thresholds at which it is not ignored, and at which it is a true positive.
    """

    area: int
    category: int
    images: Ints
    copies: Ints
    counted: npt.NDArray[np.uint16]
    hits: npt.NDArray[np.uint16]


def _rankings(matches: ImageMatches, most_copies: int) -> Iterator[_Ranking]:
    """All with a true positive; without one the precision is 0 throughout."""
    order, copies = _order(matches, most_copies)
    bounds = np.searchsorted(matches.categories[order], np.arange(matches.category_count + 1))
    for category in range(matches.category_count):
        mine = slice(bounds[category], bounds[category + 1])
        places, own_copies = order[mine], copies[mine]
        for area in range(len(AREAS)):
            counted = ~matches.ignored[area, places] & np.uint16(_EVERY_THRESHOLD)
            hits = matches.matched[area, places] & counted
            if hits.any():
                end = int(np.flatnonzero(hits)[-1]) + 1
                kept = np.flatnonzero(counted[:end])
                images = matches.images[places[kept]]
                yield _Ranking(area, category, images, own_copies[kept], counted[kept], hits[kept])


def _order(matches: ImageMatches, most_copies: int) -> tuple[Ints, Ints]:
    """Places of the detections by category and descending score, and which copy of its image each stands for (or -1).

    Equal scores stand in the order of images, then of ranks, as COCOeval's stable sort leaves them. So of two equal
    scores in one image that is drawn twice the order is 1, 2, 1, 2. Where one is a true and the other a false positive,
    that is another ranking than 1, 1, 2, 2, and each is written down as often as the image may be there.
    """
    order = np.lexsort((matches.ranks, matches.images, -matches.scores, matches.categories))
    if most_copies < 2 or not len(order):
        return order, np.full(len(order), -1)
    keys = [column[order] for column in (matches.categories, matches.scores, matches.images)]
    other = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    starts = np.flatnonzero(np.append(True, other))
    sizes = np.diff(np.append(starts, len(order)))
    true, false = (
        np.bitwise_or.reduceat(bits[:, order], starts, axis=1)
        for bits in (matches.matched & ~matches.ignored, ~(matches.matched | matches.ignored))
    )
    unlike = (sizes > 1) & (true & false & _EVERY_THRESHOLD != 0).any(axis=0)
    entries = np.arange(len(order))
    pieces: list[Ints] = []
    copies: list[Ints] = []
    done = 0
    for start, size in zip(starts[unlike].tolist(), sizes[unlike].tolist(), strict=True):
        pieces += [entries[done:start], np.tile(entries[start : start + size], most_copies)]
        copies += [np.full(start - done, -1), np.repeat(np.arange(most_copies), size)]
        done = start + size
    pieces.append(entries[done:])
    copies.append(np.full(len(order) - done, -1))
    return order[np.concatenate(pieces)], np.concatenate(copies)


def _precisions(ranking: _Ranking, weights: npt.NDArray[np.int32], truths: npt.NDArray[np.int32]) -> Floats:
    """Mean precision at the 101 recalls, for each resample and IoU threshold: (R, 10); 0 where there are no truths."""
    columns = max(len(ranking.images), int(truths.max(initial=0)) + 1)
    rows = max(1, _BLOCK // columns)
    blocks = [slice(start, start + rows) for start in range(0, len(weights), rows)]
    results = [_block_precisions(ranking, weights[block], truths[block]) for block in blocks]
    return np.concatenate(results) if results else np.zeros((0, IOU_THRESHOLDS))


def _block_precisions(ranking: _Ranking, weights: npt.NDArray[np.int32], truths: npt.NDArray[np.int32]) -> Floats:
    """The same for as many resamples as fit into memory.

    Precision matters only at true positives: after one it falls until the next, and COCOeval takes the highest from
    there on. The copies of one image's true positive are one entry: precision is highest at the last of them.
    Detections that count at every threshold are summed up once, for all thresholds.
    """
    steady = ranking.counted == _EVERY_THRESHOLD
    events = np.flatnonzero((ranking.hits != 0) | ~steady)
    sums = _sums(_drawn(ranking, weights, np.flatnonzero(steady)))
    totals = np.take(sums, np.cumsum(steady)[events], axis=1)
    drawn = _drawn(ranking, weights, events)
    reached = _reached_recalls(truths)
    offsets = (np.arange(len(weights)) * reached.shape[1])[:, np.newaxis]
    means = np.zeros((len(weights), IOU_THRESHOLDS))
    for threshold in range(IOU_THRESHOLDS):
        bit = 1 << threshold
        hits = np.flatnonzero(ranking.hits[events] & bit)
        if not hits.size:
            continue
        total = np.take(totals, hits, axis=1)
        partly = np.flatnonzero((ranking.counted[events] & bit != 0) & ~steady[events])
        if partly.size:
            before = np.searchsorted(partly, hits, side="right")
            total += np.take(_sums(np.take(drawn, partly, axis=1)), before, axis=1)
        true = np.cumsum(np.take(drawn, hits, axis=1), axis=1, dtype=np.int32)
        precision = true / (total + np.spacing(1))
        highest = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        recalls = np.diff(np.take(reached, true + offsets), axis=1, prepend=np.uint8(0))
        means[:, threshold] = np.einsum("rp,rp->r", highest, recalls) / len(_RECALLS)
    return means


def _drawn(ranking: _Ranking, weights: npt.NDArray[np.int32], places: Ints) -> npt.NDArray[np.int32]:
    """How often the detections at ``places`` are there, (R, P)."""
    drawn = np.take(weights, ranking.images[places], axis=1)
    copies = ranking.copies[places]
    single = np.flatnonzero(copies >= 0)
    drawn[:, single] = drawn[:, single] > copies[single]
    return drawn


def _sums(drawn: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Running sums along each row, from 0 on: one column more than given."""
    sums = np.zeros((drawn.shape[0], drawn.shape[1] + 1), np.int32)
    np.cumsum(drawn, axis=1, out=sums[:, 1:])
    return sums


def _reached_recalls(truths: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """How many of the 101 recalls n true positives reach, for n = 0, 1 .. and each number of ``truths`` (R,).

    (R, 1 + most truths). The comparisons are those of ``numpy.searchsorted(n / truths, recalls, side="left")``, in
    float64, so n true positives reach a recall where n / truths is not below it as rounded.
    """
    counts = np.maximum(truths, 1)[:, np.newaxis]
    needed = np.ceil(_RECALLS * counts).astype(np.int64)
    needed += needed / counts < _RECALLS
    needed -= (needed - 1) / counts >= _RECALLS
    length = int(counts.max(initial=1)) + 1
    gaps = np.diff(needed, axis=1, append=length)
    numbers = np.tile(np.arange(1, len(_RECALLS) + 1, dtype=np.uint8), len(truths))
    return np.repeat(numbers, gaps.ravel()).reshape(len(truths), length)
