"""ImageNet classification."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.task_kind import Accuracy, TaskEvidence, TaskReport
from evaltools.tasks.imagenet.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.tasks.imagenet.evaluation import ImagenetEvaluation
    from evaltools.tasks.imagenet.request import ImagenetRequest


class _Imagenet(EvaluationKind):
    name = "imagenet"
    place = 1
    summary = "Top-1..10 accuracy of a classifier on labelled pictures"
    description = DESCRIPTION
    options = OPTIONS
    accuracy = Accuracy("top1", "top-1")
    modules_on_devices = ("evaltools.tasks.imagenet.evaluation",)

    @property
    def part_type(self) -> type:
        from evaltools.tasks.imagenet.result import ImagenetPart

        return ImagenetPart

    @property
    def report(self) -> TaskReport:
        from evaltools.tasks.imagenet import report

        return report

    @property
    def evidence(self) -> TaskEvidence:
        from evaltools.tasks.imagenet import evidence

        return evidence

    def with_stated_paths(self, options: Options, folder: Path) -> Options:
        """The options with the model's labels that fit the ground truth, where no labels were given."""
        if "model_output_labels" in options or "model_file" not in options:
            return options
        from evaltools.datasets.labels import fitting_labels, labels_beside

        model = Path(options.text("model_file"))
        found = fitting_labels(labels_beside(folder / model), folder / options.text("ground_truth_labels"))
        return options if found is None else options.stating({"model_output_labels": str(model.parent / found.name)})

    def read(self, request: Request) -> ImagenetRequest:
        from evaltools.tasks.imagenet.request import read_request

        return read_request(request)

    def prepare(self, asked: ImagenetRequest) -> ImagenetEvaluation:
        from evaltools.tasks.imagenet.evaluation import prepare

        return prepare(asked)

    def files_read(self, asked: ImagenetRequest) -> Iterable[Path | None]:
        options = asked.options
        return (asked.model_file, options.ground_truth_labels, options.model_output_labels, options.denylist_file_path)

    @property
    def metrics(self) -> Sequence[Metric]:
        from evaltools.tasks.imagenet.metrics import METRICS

        return METRICS

    def example_count(self, result: EvaluationResult) -> int:
        count: int = result.part.data.example_count
        return count

    def is_damaged(self, result: EvaluationResult) -> bool:
        return any(answered.metrics.outputs_with_nonfinite for answered in result.part.classified.values())

    def parts(self, asked: ImagenetRequest) -> PartsOfTask:
        evaluation = self.prepare(asked)
        evaluation.check_labels_on_host()
        return PartsOfTask(evaluation.example_count, {"ground_truth_images_path": evaluation.pictures})


KIND: Final = _Imagenet()
