"""Scores of labels: whether the best one is right, and whether it is the reference's."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import TaskError
from evaltools.metrics.classification import mean_average_precision
from evaltools.metrics.metric import SHARE
from evaltools.tasks.framework.definition import Mean, in_lists, mean, pooled
from evaltools.tasks.framework.tensors import Outputs


def metrics(has_truth: bool) -> list[Mean]:
    """Those of tasks with scores of labels, in the order of their columns."""
    agreement = [
        mean(
            "same_answer", bounds=SHARE, meaning="audio, text: share of examples with the reference's best label, 0..1"
        ),
        mean(
            "score_shift",
            better="lower",
            margin=0.005,
            meaning="audio, text: largest change of a score against the reference, mean over the examples",
        ),
    ]
    truth: list[Mean] = [
        mean("accuracy", bounds=SHARE, meaning="audio, text: share of examples whose best label is right, 0..1"),
        pooled(
            "label_map",
            mean_average_precision,
            bounds=SHARE,
            meaning="audio, text: mean over the labels of the average precision of their scores, 0..1",
        ),
    ]
    return [*truth, *agreement] if has_truth else agreement


def score(outputs: Outputs, label: int) -> dict[str, Any]:
    """Whether the best label is right, and the scores of all behind the number of the right one."""
    scores = label_scores(outputs)
    if label >= scores.size:
        raise TaskError(
            f"the label has the number {label}; the model gives {scores.size} scores, so its labels are others"
        )
    return {"accuracy": float(scores.argmax() == label), "label_map": np.array([label, *scores])}


def agree(outputs: Outputs, reference: Outputs, _label: object) -> dict[str, float]:
    """Whether the best label is the reference's, and by how much a score changes at most."""
    ours, theirs = label_scores(outputs), label_scores(reference)
    return {"same_answer": float(ours.argmax() == theirs.argmax()), "score_shift": float(np.abs(ours - theirs).max())}


def label_scores(outputs: Outputs) -> npt.NDArray[np.float64]:
    """The first output as one score for each label, the mean over frames if there are; raises :class:`TaskError`."""
    values = outputs.real(0).astype(np.float64)
    if values.ndim == 0 or values.shape[-1] < 2 or not np.isfinite(values).all():
        raise TaskError(
            f"the output {values.dtype}{list(values.shape)} has no finite scores of labels; expected is [1,labels], or "
            "[frames,labels]"
        )
    found: npt.NDArray[np.float64] = values.reshape(-1, values.shape[-1]).mean(axis=0)
    return found


METRICS: Final = in_lists(metrics(has_truth=True))
