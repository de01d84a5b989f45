"""The figures of a native evaluation's result file, printed by our own native faces."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evaltools.metrics.classification import ClassificationMetrics, TopKAccuracy
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.native.lines.evaluation import native_lines
from evaltools.native.logs.evaluation import LoggedPicture
from evaltools.native.logs.figures import NativeFigures
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.report import debug_lines
from evaltools.tasks.imagenet.result import Classified
from tests import results
from tests.tasks.coco.results import TRUTH, detection_result, figures, picture, with_data, with_figures
from tests.tasks.inference_diff.test_report import DIFFERENCE, comparison, judged
from tests.tasks.inference_diff.test_report import result as diff_result


def rendered(figures: NativeFigures, pictures: Sequence[LoggedPicture] = ()) -> list[str]:
    """The lines of stdout of a whole evaluation; of coco with the detections of ``pictures``."""
    if figures.task == "coco":
        return _detection_lines(figures, pictures)
    return native_lines(_diff(figures) if figures.task == "inference_diff" else _classification(figures))


def _classification(found: NativeFigures) -> EvaluationResult:
    accuracies = TopKAccuracy(found.runs, tuple(count / (found.runs or 1) for count in found.right))
    measured = replace(results.configuration("test"), inference_latency=found.inference)
    answered = {"test": Classified(ClassificationMetrics(accuracies, 0, 1), [])}
    return results.result(measured, preprocessing=found.preprocessing, answered=answered)


def _detection_lines(found: NativeFigures, logged: Sequence[LoggedPicture]) -> list[str]:
    has_truth = found.overall is not None
    pictures = [picture(each.name, test=list(each.detections)) for each in logged]
    made = detection_result("test", pictures=pictures, truth=TRUTH if has_truth else None)
    measured = replace(
        made.configurations[0],
        role="test",
        inference_latency=found.inference,
        finished_examples=found.runs,
    )
    made = replace(made, configurations=[measured])
    made = with_data(made, native=True, preprocessing_latency=found.preprocessing)
    precision = NativeAveragePrecision(tuple(value for _, value in found.precisions), found.overall or 0.0, 1, 0)
    made = with_figures(made, replace(figures("test"), native=precision if has_truth else None))
    return [f"INFO: {line}" for line in debug_lines(made, "test")] + native_lines(made)


def _diff(found: NativeFigures) -> EvaluationResult:
    outputs = [judged(replace(DIFFERENCE, native=each)) for each in found.errors]
    made = diff_result(comparison("test", *outputs))
    reference, test = made.configurations
    return replace(
        made,
        configurations=[
            replace(reference, inference_latency=found.reference, finished_examples=found.runs),
            replace(test, inference_latency=found.inference, finished_examples=found.runs),
        ],
    )
