"""The metrics of a classifier's answers, and the accuracies as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.metrics.metric import Metric
from evaltools.result.figure import Change, Figure, figure_of

MOST: Final = 10
"""The metrics are of Top-1 to Top-10."""
_HEADED: Final = (1, 5)
AGREEMENT: Final = Metric(
    "agreement",
    "imagenet: share of examples with the reference's best class, 0..1",
    better="higher",
    is_share=True,
    of_reference=True,
)
DISTINCT_ANSWERS: Final = Metric("distinct_answers", "imagenet: how many classes came first at least once")


def _topk(k: int) -> Metric:
    return Metric(
        f"top{k}",
        f"Top-{k} accuracy, 0..1",
        better="higher",
        is_share=True,
        heading=f"top-{k}" if k in _HEADED else "",
        bounds="counts",
    )


METRICS: Final = (*(_topk(k) for k in range(1, MOST + 1)), AGREEMENT, DISTINCT_ANSWERS)


def accuracies(
    hits: Sequence[int],
    count: int,
    changes: Sequence[Change] = (),
    scores: Mapping[int, list[float | None]] | None = None,
) -> dict[str, Figure]:
    """Top-1 and so on of ``count`` examples, of which ``hits[k - 1]`` have the right label among their k best.

    ``changes`` and ``scores`` are those of each of them, from Top-1 on, where they are known. None without examples.
    """
    from evaltools.metrics.proportions import wilson_interval

    found = {}
    for place, right in enumerate(hits if count else ()):
        found[f"top{place + 1}"] = figure_of(
            _topk(place + 1),
            right / count,
            interval=wilson_interval(right, count),
            count=count,
            at_least=f"top{place}" if place else "",
            change=changes[place] if changes else None,
            scores=scores[place + 1] if scores else [],
        )
    return found
