"""The objects that a detector finds in a picture: as numbers of a record, and read from its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import DataError
from evaltools.metrics.boxes import Detections
from evaltools.metrics.difference import Scale
from evaltools.runtime.session import Array
from evaltools.tasks.coco.result import OutputMap
from evaltools.tasks.own.tensors import Outputs, TaskTensor
from evaltools.tasks.shared.image_input import PictureFrame

Floats = npt.NDArray[np.float32]
_COLUMNS: Final = 6
"""Of a record: first the facts of the picture, then class, box and score of each object."""


class FoundObjects(Struct, frozen=True):
    """What one output holds, in the model's order.

    ``classes`` ``(N,)`` are the model's own numbers; ``boxes`` ``(N, 4)`` are top, left, bottom, right in shares of the
    picture. ``stated`` is the count that the model gives, ``rows`` how many it has room for. Left out are ``nonfinite``
    detections with a NaN or infinite number, and those below the score threshold; ``fractional`` classes are cut to
    whole numbers, as the native tool does. ``width`` and ``height`` are the picture's.
    """

    classes: npt.NDArray[np.int64]
    boxes: Floats
    scores: Floats
    stated: float
    rows: int
    nonfinite: int
    fractional: int
    width: int
    height: int

    def as_detections(self) -> Detections:
        """The same in float64, for comparing boxes."""
        return Detections(
            self.boxes.astype(np.float64), self.classes.astype(np.float64), self.scores.astype(np.float64)
        )

    def as_rows(self) -> npt.NDArray[np.float64]:
        """The same as the numbers of a record ``(N + 1, 6)``, which hold all digits."""
        facts = [self.stated, self.rows, self.nonfinite, self.fractional, self.width, self.height]
        objects = np.column_stack([self.classes, self.boxes.reshape(-1, 4), self.scores])
        return np.concatenate([np.array([facts], np.float64), objects.astype(np.float64)])

    @classmethod
    def of_rows(cls, rows: npt.NDArray[Any] | None) -> FoundObjects:
        """What :meth:`as_rows` made of; raises :class:`DataError` for a damaged record."""
        if rows is None or rows.ndim != 2 or rows.shape[1] != _COLUMNS or not len(rows):
            raise DataError("a record holds no objects of a detector; start the run anew")
        facts, objects = rows[0], rows[1:]
        if not np.isfinite(rows[1:]).all() or not np.isfinite(facts[1:]).all():
            raise DataError("a record holds objects of a detector without numbers; start the run anew")
        return cls(
            objects[:, 0].astype(np.int64),
            objects[:, 1:5].astype(np.float32),
            objects[:, 5].astype(np.float32),
            float(facts[0]),
            *(int(fact) for fact in facts[1:]),
        )


def real_outputs(outputs: Outputs) -> list[Floats]:
    """Outputs as float32; quantised ones as the real values that they stand for."""
    return [_real(tensor, output) for tensor, output in zip(outputs.tensors, outputs, strict=True)]


def _real(tensor: TaskTensor, output: Array) -> Floats:
    """An output as real values.

    For types with 256 values each value is computed once and looked up: a raw head has millions.
    """
    if tensor.quantisation is None:
        return np.asarray(output, np.float32)
    scale = Scale(*tensor.quantisation)
    if output.dtype.itemsize > 1:
        return scale.real(output).astype(np.float32)
    table = scale.real(np.arange(256).astype(np.uint8).view(output.dtype)).astype(np.float32)
    return table[np.ascontiguousarray(output).view(np.uint8)]


def read_objects(
    outputs: Sequence[Floats], places: OutputMap, picture: PictureFrame, score_threshold: float
) -> FoundObjects:
    """The detections among the outputs: as many rows as the count says.

    Without a count all rows but those with a score of 0, with which models fill up. The native tool reads beyond the
    end where the count is larger than the outputs; here it is cut to their size.
    """
    scores, classes = outputs[places.scores].ravel(), outputs[places.classes].ravel()
    boxes = outputs[places.boxes].reshape(-1, 4)
    rows = min(len(scores), len(classes), len(boxes))
    stated = float(rows) if places.count is None else float(outputs[places.count].ravel()[0])
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
