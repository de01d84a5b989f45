"""COCO detection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from evaltools.task_kind import Accuracy, TaskEvidence, TaskReport
from evaltools.tasks.coco.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.errors import OutputError
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.tasks.coco.evaluation import DetectionEvaluation
    from evaltools.tasks.coco.task import CocoRequest


class _Coco(EvaluationKind):
    name = "coco"
    place = 2
    summary = "mAP of a detector on annotated pictures; do the boxes agree"
    description = DESCRIPTION
    options = OPTIONS
    accuracy = Accuracy("ap", "mAP")
    modules_on_devices = ("evaltools.tasks.coco.evaluation", "pycocotools.cocoeval")

    @property
    def part_type(self) -> type:
        from evaltools.tasks.coco.result import CocoDetection

        return CocoDetection

    @property
    def report(self) -> TaskReport:
        from evaltools.tasks.coco import report

        return report

    @property
    def evidence(self) -> TaskEvidence:
        from evaltools.tasks.coco import metrics

        return metrics

    def read(self, request: Request) -> CocoRequest:
        from evaltools.tasks.coco.task import read_request

        return read_request(request)

    def prepare(self, asked: CocoRequest) -> DetectionEvaluation:
        from evaltools.tasks.coco.evaluation import prepare

        return prepare(asked)

    def files_read(self, asked: CocoRequest) -> Iterable[Path | None]:
        options = asked.options
        truths = (options.ground_truth_annotations, options.ground_truth_proto, options.model_output_labels)
        return (asked.model_file, *truths)

    def more_files(self, request: Request, asked: CocoRequest, outputs: Iterable[Path]) -> Any:
        from evaltools.tasks.coco.report import plan_detections

        return plan_detections(request, self.files_read(asked), outputs)

    def debug_lines(self, result: EvaluationResult, options: Options) -> list[str]:
        from evaltools.tasks.coco.report import debug_lines

        if not options.is_on("debug_mode"):
            return []
        tests = [entry for entry in result.configurations if entry.role == "test"]
        lines: list[str] = []
        for entry in tests:
            if entry.status == "measured":
                lines += [f"Configuration: {entry.name}"] if len(tests) > 1 else []
                lines += debug_lines(result, entry.name)
        return [f"INFO: {line}" for line in lines]

    def as_asked(self, result: EvaluationResult, options: Options) -> EvaluationResult:
        if options.is_on("record_examples"):
            return result
        return replace(result, part=replace(result.part, pictures=None))

    def write_more(
        self, result: EvaluationResult, files: Any, asked: CocoRequest, console: Console
    ) -> list[OutputError]:
        from evaltools.tasks.coco.report import write_detections

        return write_detections(result, files, console)

    @property
    def metrics(self) -> Sequence[Metric]:
        from evaltools.tasks.coco.metrics import METRICS

        return METRICS

    def example_count(self, result: EvaluationResult) -> int:
        count: int = result.part.data.example_count
        return count

    def parts(self, asked: CocoRequest) -> PartsOfTask:
        from evaltools.tasks.coco.reading import MORE_PICTURES

        pictures = self.prepare(asked).pictures
        return PartsOfTask(len(pictures), {"ground_truth_images_path": pictures}, shared=MORE_PICTURES)


KIND: Final = _Coco()
