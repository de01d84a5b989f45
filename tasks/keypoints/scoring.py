"""Keypoints in a model's outputs, how near they are to those of annotations or a reference, and both as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from evaltools.errors import TaskError
from evaltools.metrics.metric import SHARE
from evaltools.preprocess.decode import picture_header
from evaltools.result.section import Drawing
from evaltools.tasks.framework.definition import Example, Mean, in_lists, pooled, share_of
from evaltools.tasks.framework.pictures import panel, small_size
from evaltools.tasks.framework.tensors import Outputs
from evaltools.tasks.keypoints.examples import KEYPOINTS, Person, Seen, Truth, region
from evaltools.tasks.keypoints.pose_head import is_pose_head, person_in

Floats = npt.NDArray[np.float64]
_ELSEWHERE: Final = 0.05
_THRESHOLDS: Final = 10
_RECALLS: Final = np.linspace(0.0, 1.0, 101)
_SIDE: Final = 240
_TRUTH, _REFERENCE, _TEST = (255, 255, 255), (40, 110, 235), (240, 120, 20)
_BORDER: Final = (0, 0, 0)


def metrics(has_truth: bool) -> list[Mean]:
    """Those of keypoints, in the order of their columns."""
    agreement: list[Mean] = [
        pooled(
            "same_keypoints",
            share_of,
            bounds=SHARE,
            meaning="keypoints: share of those that the reference gives min_score or more which are within "
            "a twentieth of the input of where it has them, 0..1",
        ),
        pooled(
            "keypoint_shift",
            share_of,
            better="lower",
            margin=0.005,
            meaning="keypoints: mean distance of the same to the reference's, as a share of the input",
        ),
    ]
    truth: list[Mean] = [
        pooled(
            "oks_ap",
            oks_ap,
            bounds=SHARE,
            meaning="keypoints: COCO's AP by object keypoint similarity of 0.50:0.95, 0..1",
        ),
        pooled("oks_ap50", oks_ap50, bounds=SHARE, meaning="keypoints: the same at 0.50, 0..1"),
        pooled(
            "pck",
            share_of,
            bounds=SHARE,
            meaning="keypoints: share of annotated keypoints that are found near their place, 0..1",
        ),
    ]
    return [*truth, *agreement] if has_truth else agreement


def score(pck_share: float, outputs: Outputs, truth: Truth) -> dict[str, Floats]:
    """What COCO's evaluation matches of the one person found, and how many keypoints of that person are near."""
    found, person_score = located(outputs)
    rows, columns = outputs.inputs[0].picture_size
    left, top, width, height = region(truth.seen, _size_of(truth.seen.picture), columns / rows)
    found = np.column_stack([left + found[:, 0] * width, top + found[:, 1] * height, found[:, 2]])
    matches, best = coco_matches(found, person_score, truth.people)
    near = np.zeros(2)
    if best is not None:
        expected = np.reshape(best.keypoints, (KEYPOINTS, 3))
        distances = np.hypot(*(found[:, :2] - expected[:, :2]).T)[expected[:, 2] > 0]
        near = np.array([np.count_nonzero(distances <= pck_share * max(best.bbox[2:])), distances.size], np.float64)
    return {"oks_ap": matches, "oks_ap50": matches, "pck": near}


def agree(min_score: float, outputs: Outputs, reference: Outputs, _truth: object) -> dict[str, Floats]:
    """How many keypoints are near the reference's, and their distances as shares of the input, each with the count.

    Those of a lower score than ``min_score`` in the reference do not count: where such a one lies says nothing.
    """
    ours, theirs = _counted(min_score, outputs, reference)
    moved = np.hypot(*(ours - theirs).T)
    near = np.count_nonzero(moved <= _ELSEWHERE)
    return {
        "same_keypoints": np.array([near, moved.size], float),
        "keypoint_shift": np.array([moved.sum(), moved.size]),
    }


def _counted(min_score: float, outputs: Outputs, reference: Outputs) -> tuple[Floats, Floats]:
    """X and y of the keypoints of both sides to which the reference gives ``min_score`` or more."""
    (ours, _), (theirs, _) = located(outputs), located(reference)
    counts = theirs[:, 2] >= min_score
    return ours[counts, :2], theirs[counts, :2]


def located(outputs: Outputs) -> tuple[Floats, float]:
    """X and y in shares of the input, and the score, of each keypoint (17, 3), and the score of the person.

    That is the mean of the keypoints' scores where the model gives none. Raises :class:`TaskError`.
    """
    for number, values in enumerate(outputs):
        if is_pose_head(values.shape):
            return person_in(_finite(outputs.real(number)), outputs.inputs[0].picture_size)
        if values.shape[-2:] == (KEYPOINTS, 3) and values.size == KEYPOINTS * 3:
            return _of_one(_finite(outputs.real(number).reshape(KEYPOINTS, 3)[:, [1, 0, 2]]))
        if values.ndim == 4 and values.shape[0] == 1 and values.shape[3] == KEYPOINTS:
            return _of_one(from_heat_maps(_finite(outputs.real(number)[0])))
    shapes = ", ".join(f"{values.dtype}{list(values.shape)}" for values in outputs)
    raise TaskError(
        f"no output of the model has the {KEYPOINTS} keypoints of a person, but {shapes}; expected are y, x and score, "
        f"[1,1,{KEYPOINTS},3], heat maps [1,height,width,{KEYPOINTS}], or the head of a YOLO, [1,{5 + 3 * KEYPOINTS},N]"
    )


def _of_one(points: Floats) -> tuple[Floats, float]:
    return points, float(points[:, 2].mean())


def from_heat_maps(maps: Floats) -> Floats:
    """x, y and score of the highest place of each map ``(height, width, K)``, moved a quarter to its higher neighbour.

    >>> from_heat_maps(np.array([[[0.0], [0.5], [1.0], [0.6]]])).round(3)
    array([[0.688, 0.5  , 1.   ]])
    """
    height, width, count = maps.shape
    found = np.zeros((count, 3))
    for number in range(count):
        each = maps[..., number]
        row, column = np.unravel_index(each.argmax(), each.shape)
        found[number] = (
            (column + 0.5 + 0.25 * _slope(each[row], int(column))) / width,
            (row + 0.5 + 0.25 * _slope(each[:, column], int(row))) / height,
            each[row, column],
        )
    return found


def _slope(line: Floats, place: int) -> float:
    """1 or -1: where the higher neighbour is; 0 at an end."""
    return float(np.sign(line[place + 1] - line[place - 1])) if 0 < place < len(line) - 1 else 0.0


def _finite(values: npt.NDArray[Any]) -> Floats:
    if not np.isfinite(values).all():
        raise TaskError(
            f"{np.count_nonzero(~np.isfinite(values))} of {values.size} numbers of keypoints are not finite"
        )
    return values.astype(np.float64)


def coco_matches(found: Floats, person_score: float, people: Sequence[Person]) -> tuple[Floats, Person | None]:
    """What pycocotools matches of one person ``(17, 3)`` in a picture, and the annotated person that fits best.

    A row: how many people count, the score, for each of ten similarities whether it is matched, and whether ignored.
    """
    from pycocotools.cocoeval import COCOeval

    run, place = COCOeval(iouType="keypoints"), (0, 1)
    x, y = found[:, 0], found[:, 1]
    sides = (x.max() - x.min(), y.max() - y.min())
    found_person = {
        "id": 1,
        "score": person_score,
        "keypoints": found.ravel().tolist(),
        "area": float(sides[0] * sides[1]),
        "bbox": [float(x.min()), float(y.min()), *map(float, sides)],
    }
    truths = [
        {
            "id": number,
            "keypoints": list(person.keypoints),
            "bbox": list(person.bbox),
            "area": person.area,
            "iscrowd": person.iscrowd,
            "num_keypoints": np.count_nonzero(person.keypoints[2::3]),
            "ignore": bool(person.iscrowd) or not person.is_annotated,
        }
        for number, person in enumerate(people, 1)
    ]
    run._gts, run._dts = {place: truths}, {place: [found_person]}
    similarities = np.asarray(run.computeOks(*place))
    run.ious = {place: similarities}
    matched = run.evaluateImg(*place, (0, 1e10), run.params.maxDets[-1])
    counted = sum(not truth["ignore"] for truth in truths)
    row = [counted, found_person["score"], *(matched["dtMatches"][:, 0] > 0), *matched["dtIgnore"][:, 0]]
    whole = [number for number, truth in enumerate(truths) if not truth["ignore"]]
    best = max(whole, key=lambda number: float(similarities[0, number]), default=None)
    return np.array(row, np.float64), None if best is None else people[best]


def oks_ap(rows: Sequence[npt.NDArray[Any]]) -> float:
    """The mean over similarities of 0.50:0.95 of the precision at 101 recalls, as ``COCOeval.accumulate`` has it.

    NaN where nobody counts.
    """
    return float(np.mean(_precisions(rows)))


def oks_ap50(rows: Sequence[npt.NDArray[Any]]) -> float:
    """The same at a similarity of 0.50."""
    return float(_precisions(rows)[0])


def _precisions(rows: Sequence[npt.NDArray[Any]]) -> Floats:
    """By similarity, (10,)."""
    table = np.asarray(rows)
    people = table[:, 0].sum()
    if not people:
        return np.full(_THRESHOLDS, np.nan)
    table = table[np.argsort(-table[:, 1], kind="mergesort")]
    matched, counted = table[:, 2 : 2 + _THRESHOLDS] > 0, table[:, 2 + _THRESHOLDS :] == 0
    right = np.cumsum(matched & counted, axis=0, dtype=np.float64)
    wrong = np.cumsum(~matched & counted, axis=0, dtype=np.float64)
    precision = np.maximum.accumulate((right / (right + wrong + np.spacing(1)))[::-1])[::-1]
    precision = np.vstack([precision, np.zeros(_THRESHOLDS)])
    recall = right / people
    return np.array([precision[np.searchsorted(recall[:, each], _RECALLS), each].mean() for each in range(_THRESHOLDS)])


def _size_of(picture: Path) -> tuple[int, int]:
    """Width and height in pixels, as stored."""
    header = picture_header(picture)
    if header is None:
        raise TaskError(f"{picture} is a raw picture, which has no size of its own; take a JPEG or a PNG")
    return header.width, header.height


def draw(min_score: float, outputs: Outputs, reference: Outputs, example: Example) -> Drawing | None:
    """The keypoints of both over the picture, and the annotated ones if there are any; None where none moved."""
    found, expected = _counted(min_score, outputs, reference)
    shift = float(np.hypot(*(found - expected).T).mean()) if len(found) else 0.0
    if not shift:
        return None
    seen: Seen = example.input
    truth: Truth | None = example.target
    width, height = _size_of(seen.picture)
    rows, columns = outputs.inputs[0].picture_size
    left, top, *extent = region(seen, (width, height), columns / rows)
    points = [_annotated(truth), *(np.array([left, top]) + each * extent for each in (expected, found))]
    size = small_size(width, height, _SIDE)
    scale = np.array(size) / (width, height)
    image = _points(size, *(each * scale for each in points))
    name = "filled: test; ring: reference" + ("; white: truth" if truth is not None else "")
    return Drawing(
        shift,
        f"keypoints are moved by {100 * shift:.2g} % of the input, mean",
        str(seen.picture),
        [panel(name, image, is_over=True)],
    )


def _annotated(truth: Truth | None) -> Floats:
    """Places (N, 2) of the annotated keypoints of all people that the input shows, in pixels."""
    people = truth.people if truth is not None else ()
    every = [np.reshape(person.keypoints, (KEYPOINTS, 3)) for person in people]
    points = np.concatenate([np.zeros((0, 3)), *every])
    annotated: Floats = points[points[:, 2] > 0, :2]
    return annotated


def _points(size: tuple[int, int], truth: Floats, expected: Floats, found: Floats) -> Image.Image:
    image = Image.new("RGBA", size)
    canvas = ImageDraw.Draw(image)
    for point in truth:
        canvas.rectangle(_around(point, 3), fill=_TRUTH, outline=_BORDER)
    for point in found:
        canvas.ellipse(_around(point, 2), fill=_TEST, outline=_BORDER)
    for point in expected:
        canvas.ellipse(_around(point, 5), outline=_REFERENCE, width=2)
    return image.quantize(32)


def _around(point: Floats, radius: int) -> tuple[float, float, float, float]:
    x, y = map(float, point)
    return x - radius, y - radius, x + radius, y + radius


METRICS: Final = in_lists(metrics(has_truth=True))
