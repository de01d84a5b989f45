"""The kinds of outputs, each of which says what a difference means: a class for each, and its line in ``KINDS``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import UsageError
from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.metrics.overlaps import overlap_by_class, overlaps
from evaltools.metrics.scores import best_classes, looks_like_scores
from evaltools.parameter import did_you_mean
from evaltools.tasks.inference_diff.keypoints_output import Keypoints
from evaltools.tasks.inference_diff.output_kind import (
    MADE_AS_SCORES,
    PICTURE_CHANNELS,
    Embedding,
    Output,
    OutputKind,
    Values,
    Vector,
)
from evaltools.tasks.inference_diff.yolo_output import YoloHead

_WHOLE: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool")
_LEAST_SHARE: Final = 0.001
"""A class with fewer of all pixels says little by its IoU."""
VALUES: Final = "values"
"""Nothing is known of the output: only its elements are compared."""
SCORES: Final = "scores"
_NO_SCORES: Final = ("int32", "int64", "bool", "string")


class Segmentation:
    """A class for each pixel: scores of classes, a mask (above 0.5), or the classes themselves."""

    name = "segmentation"
    needs = "[1, height, width, classes], a mask [1, height, width, 1], or whole numbers [1, height, width]"

    def is_kind(self, output: Output) -> bool:
        """A map of the size of the picture that goes in.

        One with as many channels as pictures have is a picture or a depth map: :data:`VALUES`, unless stated.
        """
        if not output.is_map:
            return output.made_by == "ARG_MAX" and self._is_labels(output)
        channels = output.shape[3] if len(output.shape) == 4 else 1
        if not output.is_real:
            return channels == 1 and self._is_labels(output)
        if len(output.shape) == 3:
            return False
        return channels not in PICTURE_CHANNELS

    def fits(self, output: Output) -> bool:
        """Three or four axes; whole numbers are classes, and have no fourth one."""
        return self._is_labels(output) or (output.is_real and len(output.shape) == 4)

    def _is_labels(self, output: Output) -> bool:
        flat = len(output.shape) == 3 or (len(output.shape) == 4 and output.shape[3] == 1)
        return flat and not output.is_real and output.dtype in _WHOLE

    def compare(self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output) -> Values:
        """Pixels of each class on both sides and on either; those with another class, equal scores apart."""
        first, second, tied = test.ravel(), reference.ravel(), np.zeros(test.size, np.bool_)
        if output.is_real:
            first, second, tied = best_classes(_scores(test), _scores(reference))
        changed = first != second
        counts = (first.size, np.count_nonzero(changed), np.count_nonzero(changed & tied))
        return {"overlaps": overlaps(first, second), "pixels": np.array(counts, np.int64)}

    def answers(self, run: Values) -> RunAnswers:
        """The pixels with another class, ties apart."""
        pixels, changed, tied = run["pixels"].tolist()
        return RunAnswers(changed - tied, pixels)

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """``parts`` has the IoU of each class between the two sides, over all runs."""
        pixels, changed, tied = np.sum([run["pixels"] for run in runs], axis=0).tolist()
        classes, found = overlap_by_class([run["overlaps"] for run in runs])
        overlap = dict(zip(classes.tolist(), found[:, 0].tolist(), strict=True))
        large = [number for number, either in zip(overlap, found[:, 1], strict=True) if either >= _LEAST_SHARE * pixels]
        worst = min(large, key=lambda number: overlap[number], default=None)
        return KindFigures(
            kind=self.name,
            figures={
                "pixels": pixels,
                "changed": changed,
                "tied": tied,
                "changed_share": changed / pixels if pixels else None,
                "mean_iou": float(found[:, 0].mean()) if overlap else None,
                "worst_class": worst,
                "worst_iou": None if worst is None else overlap[worst],
            },
            parts={str(number): each for number, each in overlap.items()},
        )

    def in_words(self, found: KindFigures) -> str:
        """The share that changes, the mean IoU and that of the worst class.

        >>> figures = {"changed_share": 0.002, "mean_iou": 0.99, "worst_class": 3, "worst_iou": 0.95}
        >>> Segmentation().in_words(KindFigures("segmentation", figures, {"0": 1.0, "3": 0.95}))
        '0.2 % of the pixels change their class; mean IoU of 2 classes 0.9900, class 3 0.9500'
        """
        figures = found.figures
        text = f"{100 * (figures['changed_share'] or 0):.3g} % of the pixels change their class"
        text += f"; mean IoU of {len(found.parts)} classes {figures['mean_iou'] or 0:.4f}"
        worst = figures["worst_iou"]
        return text if worst is None or worst == 1 else f"{text}, class {figures['worst_class']} {worst:.4f}"


def _scores(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A row of scores for each pixel; those of a mask are its own and, for what is not in it, a half."""
    rows = values.reshape(-1, values.shape[-1])
    return rows if values.shape[-1] > 1 else np.concatenate([np.full_like(rows, 0.5), rows], axis=1)


KINDS: Final[dict[str, OutputKind]] = {
    kind.name: kind for kind in (Keypoints(), YoloHead(), Segmentation(), Embedding(), Vector())
}


@functools.cache
def kind_of(output: Output) -> str:
    """The kind of an output by its shape and its operators.

    >>> kind_of(Output("Identity", "float32", (1, 1, 17, 3), "CONCATENATION", ((1, 192, 192, 3),), True))
    'keypoints'
    >>> kind_of(Output("Identity", "float32", (1, 1001), "SOFTMAX", ((1, 224, 224, 3),), True))
    'scores'
    """
    for kind in KINDS.values():
        if kind.is_kind(output):
            return kind.name
    made_as_scores = output.made_by in MADE_AS_SCORES
    is_picture = output.is_map and output.shape[-1] in PICTURE_CHANNELS
    if output.dtype in _NO_SCORES or is_picture:
        return VALUES
    return SCORES if looks_like_scores(output.shape, made_as_scores) else VALUES


def forced_kinds(texts: Sequence[str], outputs: Sequence[Output], names: Sequence[Sequence[str]]) -> dict[int, str]:
    """The kinds that flags state, ``KIND`` for all outputs or ``OUTPUT=KIND``, by position.

    ``names`` are those that each output goes by.
    Raises :class:`UsageError` for a kind or an output that does not exist, and for one that does not fit.
    """
    found: dict[int, str] = {}
    for text in texts:
        name, _, kind = text.rpartition("=")
        known = (VALUES, SCORES, *KINDS)
        if kind not in known:
            raise UsageError(f"--output_kind={text}: use {', '.join(known)}.{did_you_mean(kind, known)}")
        positions = [position for position, own in enumerate(names) if not name or name in own]
        if not positions:
            shown = [own[0] for own in names]
            raise UsageError(f"--output_kind={text}: no output is called {name!r}, there is {', '.join(shown)}")
        for position in positions:
            _require_fit(text, kind, outputs[position])
            found[position] = kind
    return found


def _require_fit(text: str, kind: str, output: Output) -> None:
    if kind in KINDS and not KINDS[kind].fits(output):
        found = f"{output.name or 'without a name'} is {output.dtype}{list(output.shape)}"
        raise UsageError(
            f"--output_kind={text}: the output {found}, and {kind} needs {KINDS[kind].needs}; leave it out, or name "
            f"the output that it is about, as OUTPUT={kind}"
        )
