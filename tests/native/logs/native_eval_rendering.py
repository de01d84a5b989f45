"""What was read of a native evaluation's text, printed again by our own native faces."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.metrics.native_error import NativeError
from evaltools.metrics.topk import TopKAccuracy
from evaltools.native.lines.evaluation import native_lines
from evaltools.native.logs.evaluation import LoggedLatency, NativeEvaluationLog
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.coco.native_lines import debug_lines
from evaltools.tasks.imagenet.result import Classified
from tests import results
from tests.tasks.coco.results import TRUTH, detection_result, figures, picture, with_data, with_figures
from tests.tasks.inference_diff.test_report import DIFFERENCE, comparison, judged
from tests.tasks.inference_diff.test_report import result as diff_result


def rendered(log: NativeEvaluationLog) -> list[str]:
    """The lines of stdout that the text of a whole evaluation had."""
    if log.task == "coco":
        return _detection_lines(log)
    return native_lines(_diff(log) if log.task == "inference_diff" else _classification(log))


def _latency(found: LoggedLatency | None) -> Latency:
    assert found is not None
    return replace(summarise_latency([]), count=1, avg_us=found.avg_us, std_us=found.std_us)


def _classification(log: NativeEvaluationLog) -> EvaluationResult:
    assert log.runs is not None
    accuracies = TopKAccuracy(log.runs, tuple(log.topk.values()))
    measured = replace(
        results.configuration("test"),
        inference_latency=_latency(log.inference),
    )
    answered = {"test": Classified(ClassificationMetrics(accuracies, 0, 1), [])}
    return results.result(measured, preprocessing=_latency(log.preprocessing), answered=answered)


def _detection_lines(log: NativeEvaluationLog) -> list[str]:
    assert log.runs is not None
    assert log.overall_map is not None
    pictures = [picture(found.name, test=list(found.detections)) for found in log.pictures]
    made = detection_result("test", pictures=pictures, truth=None if log.without_truth else TRUTH)
    made = replace(made, configurations=[_measured(log, made.configurations[0])])
    made = with_data(made, native=True, preprocessing_latency=_latency(log.preprocessing))
    precision = NativeAveragePrecision(tuple(log.precisions.values()), log.overall_map, 1, 0)
    made = with_figures(made, replace(figures("test"), native=None if log.without_truth else precision))
    return [f"INFO: {line}" for line in debug_lines(made, "test")] + native_lines(made)


def _measured(log: NativeEvaluationLog, entry: ConfigurationResult) -> ConfigurationResult:
    assert log.runs is not None
    return replace(entry, role="test", inference_latency=_latency(log.inference), finished_examples=log.runs)


def _diff(log: NativeEvaluationLog) -> EvaluationResult:
    outputs = [
        judged(replace(DIFFERENCE, native=NativeError(found.avg_error, found.std_dev, None, None)))
        for found in log.differences.values()
    ]
    made = diff_result(comparison("test", *outputs))
    reference, test = made.configurations
    return replace(
        made,
        configurations=[
            replace(reference, inference_latency=_latency(log.reference), finished_examples=log.runs or 0),
            replace(test, inference_latency=_latency(log.test), finished_examples=log.runs or 0),
        ],
    )
