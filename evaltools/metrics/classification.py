"""What a classification task measures of one configuration."""

from __future__ import annotations

from msgspec import Struct

from evaltools.metrics.topk import TopKAccuracy


class ClassificationMetrics(Struct, frozen=True):
    """Top-K accuracy, and two signs of a broken delegate.

    ``outputs_with_nonfinite`` counts outputs with NaN or infinite scores (they count as answers, usually wrong ones);
    ``distinct_answers`` is the number of different classes that came first at least once. Both are None where a native
    tool measured, which does not tell.
    """

    topk: TopKAccuracy
    outputs_with_nonfinite: int | None
    distinct_answers: int | None
