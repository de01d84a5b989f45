"""A result made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from evaltools.known_tasks import with_task_figures
from evaltools.metrics.classification import Agreement, ClassificationMetrics, TopKAccuracy, TopKCounts
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.result.evaluation import (
    ConfigurationResult,
    DelegateUsed,
    DelegationProof,
    Environment,
    EvaluationResult,
    FailedExample,
    Model,
    RuntimeUsed,
)
from evaltools.tasks.framework.result import ScoredPart
from evaltools.tasks.framework.topk_result import Classified, Comparison, TopKPart


def topk_of(ranks: Iterable[int | None], most: int) -> TopKAccuracy:
    """Top-1 to Top-``most`` accuracy of examples with the right label at these places."""
    counts = TopKCounts(most)
    for rank in ranks:
        counts.add(rank)
    return counts.result()


def classified(*accuracies: float, nonfinite: int = 0, distinct: int = 2) -> Classified:
    """Of four examples."""
    return Classified(ClassificationMetrics(TopKAccuracy(4, accuracies or (0.5, 0.75)), nonfinite, distinct), [])


def configuration(name: str, role: str = "test") -> ConfigurationResult:
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
    )


def result(
    *configurations: ConfigurationResult,
    preprocessing: Latency | None = None,
    answered: Mapping[str, Classified] | None = None,
) -> EvaluationResult:
    """Of an ImageNet evaluation; a measured configuration that is not ``answered`` has the accuracies 0.5 and 0.75."""
    baseline, *others = configurations
    measured = [entry.name for entry in configurations if entry.status == "measured"]
    answers = TopKPart(
        classified={name: classified() for name in measured} | dict(answered or {}),
        comparisons=[Comparison(baseline.name, other.name, Agreement(4, 3, 1, 0)) for other in others],
    )
    part = ScoredPart(
        name="imagenet",
        source="",
        sha256="",
        options={"ground_truth_images_path": "d"},
        example_count=4,
        examples_sha256="00",
        preprocessing_latency=preprocessing or summarise_latency([]),
        metrics=[],
        means=[],
        comparisons=[],
        facts={"ground truth": "00", "labels of the model": "00", "normalization": "native"},
        topk=answers,
    )
    made = EvaluationResult(
        schema_version="6",
        task="imagenet",
        complete=True,
        stopped=None,
        examples_done=4,
        environment=Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, []),
        model=Model("m.tflite", "00", 1, 10, [], []),
        configurations=list(configurations),
        part=part,
        failed=[FailedExample("bad.jpg", None, "input", "is [no] picture")],
        warnings=[],
    )
    return with_task_figures(made)


def earlier(made: EvaluationResult) -> EvaluationResult:
    """The same figures from an earlier run."""
    return replace(made, environment=replace(made.environment, started_at="2020-01-01T00:00:00+00:00"))


def with_part(made: EvaluationResult, **changes: Any) -> EvaluationResult:
    """The same with other fields of the task's part, or of its answers, and the figures that follow."""
    answers = getattr(made.part, "topk", None)
    if answers is not None:
        own = {name: changes.pop(name) for name in tuple(changes) if name in answers.__struct_fields__}
        changes["topk"] = replace(answers, **own)
    return with_task_figures(replace(made, part=replace(made.part, **changes)))
