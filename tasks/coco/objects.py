"""The objects that a detector finds in a picture, read from its outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.tasks.coco.result import OutputMap
from evaltools.tasks.framework.image_input import PictureFrame
from evaltools.tasks.framework.tensors import Outputs


class FoundObjects(Struct, frozen=True):
    """What one output holds, in the model's order.

    ``classes`` ``(N,)`` are the model's own numbers; ``boxes`` ``(N, 4)`` are top, left, bottom, right in shares of the
    picture. ``stated`` is the count that the model gives, ``rows`` how many it has room for. Left out are ``nonfinite``
    detections with a NaN or infinite number, and those below the score threshold; ``fractional`` classes are cut to
    whole numbers, as the native tool does. ``width`` and ``height`` are the picture's.
    """

    classes: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    stated: float
    rows: int
    nonfinite: int
    fractional: int
    width: int
    height: int


Found = Mapping[int, FoundObjects]
"""What a configuration found in each picture that did not fail, by its number."""


def read_objects(outputs: Outputs, places: OutputMap, score_threshold: float) -> FoundObjects:
    """The detections among the outputs: as many rows as the count says.

    Without a count all rows but those with a score of 0, with which models fill up. The native tool reads beyond the
    end where the count is larger than the outputs; here it is cut to their size.
    """
    picture: PictureFrame = outputs.context
    scores, classes = outputs.real(places.scores).ravel(), outputs.real(places.classes).ravel()
    boxes = outputs.real(places.boxes).reshape(-1, 4)
    rows = min(len(scores), len(classes), len(boxes))
    stated = float(rows) if places.count is None else float(outputs.real(places.count).ravel()[0])
    count = int(min(max(stated, 0), rows)) if np.isfinite(stated) else rows
    finite = np.isfinite(scores[:count]) & np.isfinite(classes[:count]) & np.isfinite(boxes[:count]).all(axis=1)
    wanted = (scores[:count] >= score_threshold) | (score_threshold == 0)
    if places.count is None:
        wanted &= scores[:count] != 0
    kept = np.flatnonzero(finite & wanted)
    whole = np.trunc(classes[kept])
    placed = boxes[kept] if picture.placement is None else picture.placement.to_picture(boxes[kept])
    return FoundObjects(
        classes=np.clip(whole.astype(np.float64), -(2**31), 2**31 - 1).astype(np.int64),
        boxes=placed,
        scores=scores[kept],
        stated=stated,
        rows=rows,
        nonfinite=int(count - finite.sum()),
        fractional=int((whole != classes[kept]).sum()),
        width=picture.width,
        height=picture.height,
    )
