"""A result made by hand."""

from __future__ import annotations

from collections.abc import Iterable

from evaltools.metrics.agreement import Agreement
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.topk import TopKAccuracy, TopKCounts
from evaltools.result.evaluation import (
    Comparison,
    ConfigurationResult,
    Data,
    DelegateUsed,
    DelegationProof,
    Environment,
    EvaluationResult,
    FailedExample,
    Model,
    RuntimeUsed,
)


def topk_of(ranks: Iterable[int | None], most: int) -> TopKAccuracy:
    """Top-1 to Top-``most`` accuracy of examples with the right label at these places."""
    counts = TopKCounts(most)
    for rank in ranks:
        counts.add(rank)
    return counts.result()


def configuration(name: str, role: str = "test", accuracies: tuple[float, ...] = (0.5, 0.75)) -> ConfigurationResult:
    return ConfigurationResult(
        name=name,
        role=role,  # type: ignore[arg-type]
        flags=[],
        num_threads=1,
        status="measured",
        reason=None,
        fallback=None,
        runtime=RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default"),
        delegates=[DelegateUsed("XNNPACK", False, {"use_xnnpack": False}, 9, 2)],
        delegation=DelegationProof(10, 9, {"SOFTMAX": 1}),
        inference_latency=summarise_latency([1000, 3000]),
        finished_examples=4,
        failed_examples=0,
        classification=ClassificationMetrics(TopKAccuracy(4, accuracies), 0, 2),
    )


def result(*configurations: ConfigurationResult, preprocessing: Latency | None = None) -> EvaluationResult:
    baseline, *others = configurations
    return EvaluationResult(
        schema_version="1",
        task="imagenet",
        complete=True,
        stopped=None,
        examples_done=4,
        environment=Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, []),
        model=Model("m.tflite", "00", 1, 10, [], []),
        data=Data("d", 4, 0, 0, "00", "00", 0, "native", preprocessing or summarise_latency([])),
        configurations=list(configurations),
        comparisons=[Comparison(baseline.name, other.name, Agreement(4, 3, 1, 0)) for other in others],
        failed=[FailedExample("bad.jpg", None, "input", "is [no] picture")],
        warnings=[],
        examples=None,
    )
