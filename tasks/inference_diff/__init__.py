"""The same inputs through a reference and other configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.task_kind import Accuracy, TaskReport

if TYPE_CHECKING:
    from evaltools.gates.evidence import Judged
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


class DiffKind:
    """The task as engine, report, gates and command line know it."""

    name: Final = "inference_diff"
    accuracy: Final[Accuracy | None] = None

    @property
    def part_type(self) -> type:
        """:class:`InferenceDiff`."""
        from evaltools.tasks.inference_diff.result import InferenceDiff

        return InferenceDiff

    @property
    def report(self) -> TaskReport:
        """Native lines and table."""
        from evaltools.tasks.inference_diff import report

        return report

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        """Those of the worst output."""
        from evaltools.tasks.inference_diff.judged import figures

        return figures(result, configuration)

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        """The figures of each output."""
        from evaltools.tasks.inference_diff.judged import judged

        return judged(result, configuration)

    def examples(self, result: EvaluationResult) -> list[str]:
        """The seed, and what inputs were filled with."""
        from evaltools.tasks.inference_diff.judged import examples

        return examples(result)


KIND: Final = DiffKind()
