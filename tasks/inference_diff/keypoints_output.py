"""Keypoints as a kind of output: what a difference means is how far those move that are sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.metrics.patterns import Farthest, aside
from evaltools.tasks.inference_diff.output_kind import Output, Values

CONFIDENT: Final = 0.3
"""From this confidence on, MoveNet's examples draw a keypoint."""
DISPLACED: Final = 0.05
"""A move by more than this share of the picture puts a keypoint elsewhere."""
_PEOPLE_OF_COCO: Final = (17, 3)
_WITH_CONFIDENCE: Final = 3
_NOWHERE: Final = 1.0
"""What a place that is not a number counts as: a move by the whole picture."""
_STEP_OF_8_BITS: Final = 1 / 256
_LARGEST_SHARE: Final = 2.0
"""Larger coordinates are pixels."""


class Keypoints:
    """Points as y, x and confidence, or as only two coordinates, in shares of the picture or in its pixels."""

    name = "keypoints"
    needs = "[..., points, 3] with y, x and confidence, or [..., points, 2]"

    def is_kind(self, output: Output) -> bool:
        """The 17 points of a person, as MoveNet gives them."""
        return output.is_real and output.shape[-2:] == _PEOPLE_OF_COCO and int(np.prod(output.shape[:-2])) == 1

    def fits(self, output: Output) -> bool:
        """Points with two or three numbers."""
        return output.is_real and len(output.shape) >= 2 and output.shape[-1] in (2, 3)

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """How far each point moved, as a share of the picture, and both confidences; without any, all are sure."""
        points, width = test.shape[-2:]
        first, second = (
            test.reshape(-1, points, width).astype(float),
            reference.reshape(-1, points, width).astype(float),
        )
        places = second[..., :2]
        largest = float(np.abs(places).max(initial=0.0))
        picture = output.picture
        size = np.ones(2)
        if largest > _LARGEST_SHARE:
            size = np.array(picture[:2] if picture is not None else (largest, largest), float)
        return {**moves(first, second, size), "places": np.stack([first[..., :2] / size, second[..., :2] / size])}

    def answers(self, run: Values) -> RunAnswers:
        """Of the points that are sure on a side those that are not on both, or elsewhere, and the mean move."""
        moved, both, either = run["moved"], *_sure(run["test"], run["reference"])
        changed = int(np.count_nonzero(either & ~both) + np.count_nonzero(both & (moved > DISPLACED)))
        total = int(np.count_nonzero(either))
        return RunAnswers(changed, total, float(moved[both].mean()) if both.any() else 0.0 if total else None)

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """Moves as shares of the picture; ``parts`` has the largest move of each point that is sure on both sides."""
        moved, test, reference = (
            np.concatenate([run[name] for run in runs]) for name in ("moved", "test", "reference")
        )
        is_sure, was_sure = test >= CONFIDENT, reference >= CONFIDENT
        both, either = _sure(test, reference)
        displaced = both & (moved > DISPLACED)
        lost, new = int(np.count_nonzero(was_sure & ~is_sure)), int(np.count_nonzero(is_sure & ~was_sure))
        sure, unsure = moved[both], moved[~either]
        return KindFigures(
            kind=self.name,
            figures={
                "points": moved.size,
                "confident": int(np.count_nonzero(was_sure)),
                "lost": lost,
                "new": new,
                "displaced": int(np.count_nonzero(displaced)),
                "mean_move": float(sure.mean()) if sure.size else None,
                "largest_move": float(sure.max()) if sure.size else None,
                "largest_move_of_others": float(unsure.max()) if unsure.size else None,
            },
            parts={
                str(point): float(moved[:, point][both[:, point]].max())
                for point in range(moved.shape[1])
                if both[:, point].any()
            },
            aside=_aside(runs),
            levels=_levels(runs),
        )

    def in_words(self, found: KindFigures) -> str:
        """Those that are sure, then the others.

        >>> figures = {"points": 34, "confident": 20, "lost": 1, "new": 0, "displaced": 0}
        >>> moves = {"mean_move": 0.004, "largest_move": 0.04, "largest_move_of_others": 0.71}
        >>> Keypoints().in_words(KindFigures("keypoints", {**figures, **moves}, {}))
        '20 of 34 are sure (0.3 or more): mean move 0.4 % of the picture, largest 4 %, 1 lost, 0 new; others up to 71 %'
        """
        figures = found.figures
        text = f"{figures['confident']} of {figures['points']} are sure ({CONFIDENT} or more)"
        if figures["mean_move"] is not None and figures["largest_move"] is not None:
            mean, largest = 100 * figures["mean_move"], 100 * figures["largest_move"]
            text += f": mean move {mean:.2g} % of the picture, largest {largest:.2g} %"
        text += f", {figures['lost']} lost, {figures['new']} new"
        others = figures["largest_move_of_others"]
        return text if others is None else f"{text}; others up to {100 * others:.2g} %"


def moves(
    test: npt.NDArray[np.float64], reference: npt.NDArray[np.float64], size: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """How far points ``(N, points, 2 or 3)`` moved, in shares of a picture of that size, and both confidences."""
    with np.errstate(all="ignore"):
        moved = np.hypot(*np.moveaxis((test[..., :2] - reference[..., :2]) / size, -1, 0))
    moved = np.where(np.isfinite(moved), moved, _NOWHERE)
    sure = np.ones_like(moved)
    has_confidence = test.shape[-1] == _WITH_CONFIDENCE
    return {
        "moved": moved,
        "test": test[..., 2] if has_confidence else sure,
        "reference": reference[..., 2] if has_confidence else sure,
    }


def _aside(runs: Sequence[Values]) -> dict[int, Farthest]:
    """The point and the coordinate that all runs move to one side by most; less than a step of 8 bits is nothing."""
    moved = [
        np.where(_sure(run["test"], run["reference"])[0][..., None], np.subtract(*run["places"]), np.nan)
        for run in runs
    ]
    found = aside(np.concatenate(moved))
    sizes = np.where(found > _STEP_OF_8_BITS, found, 0.0)
    worst = {-2: sizes.max(axis=1), -1: sizes.max(axis=0)}
    return {axis: Farthest(int(of.argmax()), float(of.max()), float(of.max())) for axis, of in worst.items()}


def _levels(runs: Sequence[Values]) -> tuple[int, int]:
    """How many different coordinates each side has."""
    tests, references = (np.unique(np.concatenate([run["places"][side] for run in runs])).size for side in (0, 1))
    return tests, references


def _sure(test: npt.NDArray[Any], reference: npt.NDArray[Any]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which points are sure on both sides, and which on either."""
    is_sure, was_sure = test >= CONFIDENT, reference >= CONFIDENT
    return is_sure & was_sure, is_sure | was_sure
