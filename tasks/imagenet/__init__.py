"""ImageNet classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.task_kind import Accuracy, TaskReport

if TYPE_CHECKING:
    from evaltools.gates.evidence import Judged
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


class ImagenetKind:
    """The task as engine, report, gates and command line know it."""

    name: Final = "imagenet"
    accuracy: Final = Accuracy("top1", "top-1")

    @property
    def part_type(self) -> type:
        """:class:`ImagenetPart`."""
        from evaltools.tasks.imagenet.result import ImagenetPart

        return ImagenetPart

    @property
    def report(self) -> TaskReport:
        """Native lines and table."""
        from evaltools.tasks.imagenet import report

        return report

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        """Top-1 to Top-10 accuracy, agreement with the reference."""
        from evaltools.tasks.imagenet.judged import figures

        return figures(result, configuration)

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        """Counts behind the accuracies, flips against the reference, ranks."""
        from evaltools.tasks.imagenet.judged import judged

        return judged(result, configuration)

    def examples(self, result: EvaluationResult) -> list[str]:
        """Ground truth, pictures left out, and names and labels where examples were recorded."""
        from evaltools.tasks.imagenet.judged import examples

        return examples(result)


KIND: Final = ImagenetKind()
