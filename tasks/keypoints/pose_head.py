"""The head of a YOLO with keypoints: which outputs are one, and the keypoints of the person that it is surest of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.tasks.keypoints.examples import KEYPOINTS

Floats = npt.NDArray[np.float64]
_SCORE: Final = 4
"""The place of a box's score, behind the four numbers of the box."""
_RAW: Final = _SCORE + 1 + 3 * KEYPOINTS
_SUPPRESSED: Final = _RAW + 1
"""Where the model has suppressed overlapping boxes, the class stands behind the score."""
_LARGEST_SHARE: Final = 2.0
NORMALIZATION: Final = "unit"
FILL: Final = 114
"""Pixels are fed as 0..1, and this grey is around pictures, as in the authors' own validation."""


def is_pose_head(shape: Sequence[int]) -> bool:
    """Whether an output is the head of a YOLO with 17 keypoints: ``[1,56,N]``, ``[1,N,56]``; suppressed ``[1,N,57]``.

    >>> [is_pose_head(shape) for shape in ((1, 56, 8400), (1, 8400, 56), (1, 300, 57), (1, 1, 17, 3))]
    [True, True, True, False]
    """
    return len(shape) == 3 and shape[0] == 1 and (_RAW in shape[1:] or shape[2] == _SUPPRESSED)


def person_in(values: npt.NDArray[Any], size: tuple[int, int]) -> tuple[Floats, float]:
    """X, y and score of the keypoints (17, 3) of the box with the best score, and that score.

    Places are shares of an input of ``size`` (height, width). Heads give shares or pixels; boxes in pixels are larger
    than 2 (``Pose`` in ``ultralytics/nn/modules/head.py``).

    >>> head = np.zeros((1, 56, 3)); head[0, :5, 1] = 32, 32, 16, 16, 0.75; head[0, 5:8, 1] = 16, 48, 0.5
    >>> points, score = person_in(head, (64, 64))
    >>> points[0].tolist(), score
    ([0.25, 0.75, 0.5], 0.75)
    """
    table = np.asarray(values[0], np.float64)
    rows = table if table.shape[1] in (_RAW, _SUPPRESSED) else table.T
    best = rows[rows[:, _SCORE].argmax()]
    points = best[-3 * KEYPOINTS :].reshape(KEYPOINTS, 3).copy()
    if rows[:, :_SCORE].max() > _LARGEST_SHARE:
        points[:, :2] /= size[1], size[0]
    return points, float(best[_SCORE])
