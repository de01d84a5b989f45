"""What the metrics of tasks with scores of labels mean."""

from __future__ import annotations

from typing import Final

LABEL_METRICS: Final = {
    "accuracy": "audio, text: share of examples whose best label is right, 0..1",
    "label_map": "audio, text: mean over the labels of the average precision of their scores, 0..1",
    "same_answer": "audio, text: share of examples with the reference's best label, 0..1",
    "score_shift": "audio, text: largest change of a score against the reference, mean over the examples",
}
