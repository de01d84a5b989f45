"""Segmentation: how many pixels change their class, and how well each class covers the same pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.metrics.output_difference import BEST_CLASS, JudgedFigure, KindFigures
from evaltools.tasks.inference_diff.output_kinds.kind import PICTURE_CHANNELS, Output, Values

_WHOLE: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
_MOST_CLASSES: Final = 1 << 16
_LEAST_SHARE: Final = 0.001
"""A class with fewer of all pixels says little by its IoU."""


class Segmentation:
    """A class for each pixel: scores of classes, a mask (above 0.5), or the classes themselves."""

    name = "segmentation"
    needs = "[1, height, width, classes], a mask [1, height, width, 1], or whole numbers [1, height, width]"

    def is_kind(self, output: Output) -> bool:
        """A map of the size of the picture that goes in.

        One with as many channels as pictures have is a picture, unless SOFTMAX or LOGISTIC makes it a map of scores.
        """
        if not output.is_map:
            return output.made_by == "ARG_MAX" and self._is_labels(output)
        channels = output.shape[3] if len(output.shape) == 4 else 1
        if not output.is_real:
            return channels == 1 and self._is_labels(output)
        if len(output.shape) == 3:
            return False
        return channels not in PICTURE_CHANNELS or output.made_by in _SCORE_MAKERS[channels == 1]

    def fits(self, output: Output) -> bool:
        """Three or four axes; whole numbers are classes, and have no fourth one."""
        return self._is_labels(output) or (output.is_real and len(output.shape) == 4)

    def _is_labels(self, output: Output) -> bool:
        flat = len(output.shape) == 3 or (len(output.shape) == 4 and output.shape[3] == 1)
        return flat and not output.is_real and output.dtype in _WHOLE

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """Pixels of each class on both sides and on either; those with another class, equal scores apart."""
        first, second = _classes(test, output), _classes(reference, output)
        changed = first != second
        tied = 0
        if output.is_real and test.shape[-1] > 1 and changed.any():
            places = changed.ravel()
            sides = (test.reshape(-1, test.shape[-1])[places], reference.reshape(-1, test.shape[-1])[places])
            one, other = first.ravel()[places], second.ravel()[places]
            rows = np.arange(len(one))
            tied = int(np.count_nonzero(np.any([side[rows, one] == side[rows, other] for side in sides], axis=0)))
        numbers, ours, theirs = _numbered(first, second)
        count = int(max(ours.max(), theirs.max())) + 1
        common = np.bincount(ours[ours == theirs], minlength=count)
        either = np.bincount(ours, minlength=count) + np.bincount(theirs, minlength=count) - common
        found = np.flatnonzero(either)
        pixels = np.array([first.size, int(np.count_nonzero(changed)), tied], np.int64)
        return {"classes": numbers[found], "common": common[found], "either": either[found], "pixels": pixels}

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """``parts`` has the IoU of each class between the two sides, over all runs."""
        common, either = dict[int, int](), dict[int, int]()
        for run in runs:
            for number, both, any_side in zip(
                *(run[name].tolist() for name in ("classes", "common", "either")), strict=True
            ):
                common[number] = common.get(number, 0) + both
                either[number] = either.get(number, 0) + any_side
        pixels, changed, tied = np.sum([run["pixels"] for run in runs], axis=0).tolist()
        overlaps = {number: common[number] / either[number] for number in sorted(either)}
        large = {number: overlap for number, overlap in overlaps.items() if either[number] >= _LEAST_SHARE * pixels}
        worst = min(large, key=lambda number: large[number], default=None)
        judged = [JudgedFigure(BEST_CLASS, (changed - tied) / pixels, of=pixels)] if pixels else []
        if worst is not None:
            judged.append(JudgedFigure("pixels_of_the_worst_class_not_in_both", 1 - overlaps[worst], of=either[worst]))
        return KindFigures(
            kind=self.name,
            figures={
                "pixels": pixels,
                "changed": changed,
                "tied": tied,
                "changed_share": changed / pixels if pixels else None,
                "mean_iou": float(np.mean(list(overlaps.values()))) if overlaps else None,
                "worst_class": worst,
                "worst_iou": None if worst is None else overlaps[worst],
            },
            parts={str(number): overlap for number, overlap in overlaps.items()},
            judged=judged,
            decides=False,
        )

    def in_words(self, found: KindFigures) -> str:
        """The share that changes, the mean IoU and that of the worst class.

        >>> figures = {"changed_share": 0.002, "mean_iou": 0.99, "worst_class": 3, "worst_iou": 0.95}
        >>> Segmentation().in_words(KindFigures("segmentation", figures, {"0": 1.0, "3": 0.95}, [], False))
        '0.2 % of the pixels change their class; mean IoU of 2 classes 0.9900, class 3 0.9500'
        """
        figures = found.figures
        text = f"{100 * (figures['changed_share'] or 0):.3g} % of the pixels change their class"
        text += f"; mean IoU of {len(found.parts)} classes {figures['mean_iou'] or 0:.4f}"
        worst = figures["worst_iou"]
        return text if worst is None or worst == 1 else f"{text}, class {figures['worst_class']} {worst:.4f}"


_SCORE_MAKERS: Final = (("SOFTMAX", "LOG_SOFTMAX", "LOGISTIC"), ("LOGISTIC",))
"""Operators that make scores, of several classes and of one."""


def _classes(values: npt.NDArray[np.generic], output: Output) -> npt.NDArray[Any]:
    if not output.is_real:
        return np.asarray(values).reshape(values.shape[:3])
    if values.shape[-1] == 1:
        return (values[..., 0].astype(float) > 0.5).astype(np.int64)
    return np.asarray(values.argmax(axis=-1))


def _numbered(
    first: npt.NDArray[Any], second: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Classes, and both sides as places in them; sorting, which is slow, only where class numbers are far apart."""
    low, high = int(min(first.min(), second.min())), int(max(first.max(), second.max()))
    if high - low < _MOST_CLASSES:
        numbers = np.arange(low, high + 1, dtype=np.int64)
        return numbers, first.ravel().astype(np.int64) - low, second.ravel().astype(np.int64) - low
    found, places = np.unique(np.stack((first, second)), return_inverse=True)
    ours, theirs = places.reshape(2, -1)
    return found.astype(np.int64), ours, theirs
