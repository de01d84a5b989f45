"""What every part of a result that a task adds can say of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from evaltools.metrics.metric import Metric
from evaltools.result.evaluation import ExecutionUsed

if TYPE_CHECKING:
    from evaltools.result.host_names import HostNames


class TaskPart(Struct, frozen=True):
    """What a task adds to a result, without its figures: these its metrics read.

    What ends in ``_at`` is ``MODULE:NAME`` of a function. ``sections_at(result)`` gives what there is to show beside
    the figures. ``next_steps_at(result, configuration)`` gives commands that answer the question which a bad or open
    verdict leaves, or sentences about them. ``file_option`` is the option that names the files of :meth:`file_of`.
    """

    sections_at: ClassVar[str]
    next_steps_at: ClassVar[str]
    file_option: ClassVar[str] = ""

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

    @property
    def not_saved(self) -> str | None:
        """What a run could not write while it measured, and why; None where nothing is missing."""
        return None

    def without_examples(self) -> TaskPart:
        """The part without what is kept of single examples only for other files, as it is saved."""
        return self

    def file_of(self, configuration: str) -> bytes:  # noqa: ARG002
        """The content of the JSON file of a configuration that ``file_option`` asks for."""
        return b""

    @property
    def breaks_limits(self) -> bool:
        """Whether a limit that was given as an option is broken."""
        return False

    def with_host_names(self, names: HostNames) -> TaskPart:  # noqa: ARG002
        """The part of a result from devices, with the names that files have on the host."""
        return self
