"""Processor seconds that figures of all examples together take with the interval of their change.

``python -m benchmarks pooled_figures [--examples=50000 --labels=10]``

Made-up observations of two configurations, of which some differ: mIoU of 21 classes, 5 of them in each picture, and mAP
of the scores of labels. For both configurations the figure and what each example contributes, then their change.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evaltools.metrics.classification import mean_average_precision
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.tasks.framework.definition import Pooled, pooled
from evaltools.tasks.framework.figures import FigureTable
from evaltools.tasks.segmentation.pixels import mean_iou

PARAMETERS = (
    Parameter("examples", "Examples of the run.", default=50_000),
    Parameter("labels", "Labels that mAP is the mean of.", default=10),
)
Row = npt.NDArray[np.float64]


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("pooled_figures", "", "", {"flags": PARAMETERS}, arguments)
    count, labels = flags.number("examples"), flags.number("labels")
    chance = np.random.default_rng(0)
    measure(pooled("miou", mean_iou), count, lambda: overlaps(chance))
    measure(pooled("label_map", mean_average_precision), count, lambda: label_scores(chance, labels))
    return 0


def measure(metric: Pooled, count: int, row: Callable[[], Row]) -> None:
    """Print the processor seconds of a metric of two configurations, every tenth example of which is another."""
    before = {index: (row(),) for index in range(count)}
    after = {index: (row(),) if index % 10 == 0 else each for index, each in before.items()}
    start = time.process_time()
    table = FigureTable([metric], {"reference": before, "test": after})
    means = [table.means(name)[metric.name] for name in table.rows]
    change = table.changes("reference", "test")[metric.name]
    seconds = time.process_time() - start
    print(f"{metric.name:10s} {count} examples {seconds:7.2f} s   {means[0].value:.4f} {means[0].interval}")
    print(f"{'':10s} changes by {change.change:+.5f} {change.interval()}")


def overlaps(chance: np.random.Generator) -> Row:
    """Of 5 classes of a picture: class, pixels on both sides, pixels on either."""
    either = chance.integers(1000, 20_000, 5)
    return np.stack([chance.choice(21, 5, replace=False), (either * chance.random(5)).astype(np.int64), either], axis=1)


def label_scores(chance: np.random.Generator, labels: int) -> Row:
    """The right label, then scores that mostly are highest for it."""
    right = int(chance.integers(labels))
    scores = chance.random(labels)
    scores[right] += 0.5
    return np.array([right, *scores])
