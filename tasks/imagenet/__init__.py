"""ImageNet classification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.tasks.imagenet.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.request import Request
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.tasks.imagenet.evaluation import ImagenetEvaluation
    from evaltools.tasks.imagenet.request import ImagenetRequest


class _Imagenet(EvaluationKind):
    name = "imagenet"
    summary = "Top-1..10 accuracy of a classifier on labelled pictures"
    description = DESCRIPTION
    options = OPTIONS
    modules_on_devices = ("evaltools.tasks.imagenet.evaluation", "scipy.stats")

    def read(self, request: Request) -> ImagenetRequest:
        from evaltools.tasks.imagenet.request import read_request

        return read_request(request)

    def prepare(self, asked: ImagenetRequest) -> ImagenetEvaluation:
        from evaltools.tasks.imagenet.evaluation import prepare

        return prepare(asked)

    def files_read(self, asked: ImagenetRequest) -> Iterable[Path | None]:
        options = asked.options
        return (asked.model_file, options.ground_truth_labels, options.model_output_labels, options.denylist_file_path)

    def example_facts(self, result: EvaluationResult) -> Sequence[str]:
        return [result.data.ground_truth_sha256, str(result.data.denylisted)] if result.data else []

    @property
    def metrics(self) -> Sequence[Metric]:
        from evaltools.tasks.imagenet.metrics import METRICS

        return METRICS

    def example_count(self, result: EvaluationResult) -> int:
        return result.data.example_count if result.data else 0

    def is_damaged(self, result: EvaluationResult) -> bool:
        return any(
            entry.classification and entry.classification.outputs_with_nonfinite for entry in result.configurations
        )

    def parts(self, asked: ImagenetRequest) -> PartsOfTask:
        evaluation = self.prepare(asked)
        evaluation.check_here()
        return PartsOfTask(evaluation.example_count, {"ground_truth_images_path": evaluation.pictures})


KIND: Final = _Imagenet()
