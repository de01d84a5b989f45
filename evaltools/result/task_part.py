"""What every part of a result that a task adds can say of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from evaltools.metrics.metric import Metric
from evaltools.result.evaluation import ExecutionUsed


class TaskPart(Struct, frozen=True):
    """What a task adds to a result, without its figures: these its metrics read."""

    @property
    def given(self) -> Mapping[str, str]:
        """Everything that decides the figures beside model and configurations, as texts by name.

        That is data, labels, preprocessing and options: two results with the same texts are of the same examples.
        """
        return {}

    @property
    def own_metrics(self) -> Sequence[Metric]:
        """The metrics that only this result knows."""
        return ()

    def nan_outputs(self, configuration: str) -> int:  # noqa: ARG002
        """How many outputs of a configuration, or elements of them, are NaN or infinite."""
        return 0

    def times_us(self, configuration: str, execution: ExecutionUsed | None) -> Sequence[float]:  # noqa: ARG002
        """The single times behind a latency, in the order of the examples, where the part holds them."""
        return ()
