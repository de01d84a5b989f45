"""Seconds that a paired bootstrap of the COCO figures takes for two configurations.

``python -m benchmarks coco_bootstrap [--detections=10 --resamples=1000 ...]``, or on given files
``python -m benchmarks coco_bootstrap --annotations=instances.json --results=first.json --results=second.json``

Without files: the synthetic set of ``coco_metrics.py``, 5000 pictures with 10 and with 100 detections each, and a
second configuration whose boxes and scores differ a little. Printed are the seconds of COCOeval's matching, of making
arrays of its matches, and of the figures of all resamples; how far the figures of the whole set are from COCOeval's
own; and the intervals of the changes.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from benchmarks.coco_metrics import box_area, pixels, synthetic_set
from evaltools.metrics.coco_bootstrap import coco_figures
from evaltools.metrics.coco_stats import image_matches
from evaltools.metrics.resampled import resample_weights
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

PARAMETERS = (
    Parameter("pictures", "Pictures in the synthetic set.", default=5000),
    Parameter("detections", "Detections per picture of the synthetic set; 0: once 10, once 100.", default=0),
    Parameter("categories", "Categories of the synthetic set.", default=80),
    Parameter("resamples", "Resamples.", default=1000),
    Parameter("seed", "Seed of the set and of the resamples.", default=1),
    Parameter("annotations", "A COCO instances file, for the synthetic set."),
    Parameter("results", "A COCO results file; once for each configuration.", repeatable=True),
)
NAMES = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]

Entry = dict[str, Any]
Result = TypeVar("Result")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("coco_bootstrap", "", "", {"flags": PARAMETERS}, arguments)
    resamples, seed = flags.number("resamples"), flags.number("seed")
    annotations = flags.path("annotations")
    if annotations is not None:
        results = [json.loads(Path(name).read_text()) for name in flags.texts("results")]
        measure(json.loads(annotations.read_text()), results, resamples, seed)
        return 0
    for per_picture in [flags.number("detections")] if flags.number("detections") else [10, 100]:
        chance = np.random.default_rng(seed)
        dataset, first = synthetic(chance, flags.number("pictures"), per_picture, flags.number("categories"))
        measure(dataset, [first, [disturbed(chance, entry) for entry in first]], resamples, seed)
    return 0


def measure(dataset: Entry, results: list[list[Entry]], resamples: int, seed: int) -> None:
    """Print the seconds for each configuration, then the change from the first to the second with its interval."""
    pictures = len(dataset["images"])
    print(f"{pictures} pictures, {len(dataset['annotations'])} objects, {len(results[0])} detections")
    weights, seconds = timed(lambda: resample_weights(pictures, resamples, seed))
    print(f"  drawing the weights of {resamples} resamples: {seconds:.2f} s")
    figures = [bootstrap(dataset, entries, weights) for entries in results]
    for first, second in itertools.pairwise(figures):
        for place, name in enumerate(NAMES):
            low, high = np.nanquantile(second[:, place] - first[:, place], [0.025, 0.975])
            print(f"  {name:5s} changes by {low:+.5f} to {high:+.5f}")


def bootstrap(dataset: Entry, entries: list[Entry], weights: npt.NDArray[np.uint16]) -> npt.NDArray[np.float64]:
    """Figures of one configuration, (R, 12)."""
    with contextlib.redirect_stdout(io.StringIO()):
        run = COCOeval(filled({**dataset, "annotations": numbered(dataset["annotations"])}), None, "bbox")
        run.cocoDt = filled({**dataset, "annotations": numbered(entries)})
        _, matching = timed(run.evaluate)
        run.accumulate()
        run.summarize()
    matches, extracting = timed(lambda: image_matches(run))
    figures, resampling = timed(lambda: coco_figures(matches, weights))
    whole = coco_figures(matches, np.ones((1, weights.shape[1]), np.int64))[0]
    apart = np.abs(np.where(np.isnan(whole), -1, whole) - run.stats).max()
    print(
        f"  matching {matching:6.2f} s   arrays {extracting:5.2f} s   resamples {resampling:6.2f} s   "
        f"AP {whole[0]:.6f}, at most {apart:.1e} from COCOeval"
    )
    return figures


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What ``work`` gives, and its seconds."""
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def filled(dataset: Entry) -> Any:
    """A COCO object of a data set."""
    made = COCO()
    made.dataset = dataset
    made.createIndex()
    return made


def numbered(entries: list[Entry]) -> list[Entry]:
    """Annotations or detections, copied, with ids from 1, and areas where there are none."""
    return [
        {"iscrowd": 0, "area": entry["bbox"][2] * entry["bbox"][3], **entry, "id": number}
        for number, entry in enumerate(entries, start=1)
    ]


def synthetic(
    chance: np.random.Generator, pictures: int, per_picture: int, categories: int
) -> tuple[Entry, list[Entry]]:
    """A data set as in an instances file, every hundredth object a crowd region, and detections."""
    truths, found = synthetic_set(chance, pictures, per_picture, categories)
    objects, detections = (
        [
            {
                "image_id": image,
                "category_id": category,
                "bbox": list(pixels(box)),
                "area": box_area(box),
                "score": score,
            }
            for image, picture in enumerate(each, start=1)
            for category, box, score in zip(
                picture.class_ids.tolist(), picture.boxes.tolist(), picture.scores.tolist(), strict=True
            )
        ]
        for each in (truths, found)
    )
    for entry in objects[99::100]:
        entry["iscrowd"] = 1
    dataset = {
        "images": [{"id": number} for number in range(1, pictures + 1)],
        "categories": [{"id": number, "name": str(number)} for number in range(1, categories + 1)],
        "annotations": objects,
    }
    return dataset, detections


def disturbed(chance: np.random.Generator, entry: Entry) -> Entry:
    """A detection as another configuration might find it: a pixel apart, its score up to two steps of 256 higher."""
    x, y, width, height = entry["bbox"]
    across, down = chance.normal(0, 1, 2).tolist()
    score = min(1.0, entry["score"] + int(chance.integers(0, 3)) / 256)
    return {**entry, "bbox": [x + across, y + down, width, height], "score": score}
