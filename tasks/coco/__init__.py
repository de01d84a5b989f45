"""COCO detection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.task_kind import Accuracy, TaskReport

if TYPE_CHECKING:
    from evaltools.gates.evidence import Judged
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


class CocoKind:
    """The task as engine, report, gates and command line know it."""

    name: Final = "coco"
    accuracy: Final = Accuracy("ap", "mAP")

    @property
    def part_type(self) -> type:
        """:class:`CocoDetection`."""
        from evaltools.tasks.coco.result import CocoDetection

        return CocoDetection

    @property
    def report(self) -> TaskReport:
        """Native lines and table."""
        from evaltools.tasks.coco import report

        return report

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        """The figures of COCO, and the share of the reference's boxes that were found again."""
        from evaltools.tasks.coco.judged import figures

        return figures(result, configuration)

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        """Resampled figures and their changes against the reference."""
        from evaltools.tasks.coco.judged import judged

        return judged(result, configuration)

    def examples(self, result: EvaluationResult) -> list[str]:
        """Ground truth, and how many pictures it does not name."""
        from evaltools.tasks.coco.judged import examples

        return examples(result)


KIND: Final = CocoKind()
