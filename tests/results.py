"""A result made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from evaltools.gates.evidence import NOTHING_ALLOWED, Allowed, Evidence, evidence_of
from evaltools.gates.run_rows import RunRows, parts_of
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
from evaltools.result.figure import Figure
from evaltools.result.section import Section
from evaltools.tasks.framework.topk import correct
from evaltools.tasks.framework.topk_figures import accuracies
from evaltools.tasks.framework.topk_report import Comparison, sections

Figures = dict[str, Figure]


def classified(*shares: float, count: int = 4, distinct: int = 2) -> Figures:
    """Top-1 and so on of so many examples."""
    found = accuracies([round(share * count) for share in shares or (0.5, 0.75)], count)
    return found | {"distinct_answers": Figure(float(distinct))}


def of_ranks(ranks: Sequence[int | None], most: int, recorded: bool = False) -> Figures:
    """Top-1 to Top-``most`` accuracy of examples with the right label at these places."""
    scores = {
        k: [float(rank is not None and rank < k) for rank in ranks] if recorded else [] for k in range(1, most + 1)
    }
    hits = [round(share * len(ranks)) for share in shares_of(ranks, most)] if ranks else [0] * most
    found = accuracies(hits, len(ranks), scores={k: [*each] for k, each in scores.items()})
    return found | {"distinct_answers": Figure(float(len(set(ranks))))}


def shares_of(ranks: Sequence[int | None], most: int) -> list[float]:
    """The share of examples whose right label is the first, among the first two, and so on."""
    return [sum(rank is not None and rank < k for rank in ranks) / len(ranks) for k in range(1, most + 1)]


def compared(baseline: str, other: str, count: int = 4, same: int = 3, lost: int = 1, gained: int = 0) -> Comparison:
    """Answers of two configurations, of which so many have the same first class."""
    return Comparison(baseline, other, [lost], [gained], count=count, same=same)


def part(made: EvaluationResult) -> RunRows:
    """What gates are compared with."""
    return parts_of("run", made)["run"]


def evidence(made: EvaluationResult, name: str, allowed: Allowed = NOTHING_ALLOWED) -> Evidence:
    """The evidence on one configuration."""
    found = part(made)
    return next(evidence_of(found, row, allowed) for row in found.rows if row.name == name)


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
    answered: Mapping[str, Figures] | None = None,
    comparisons: Sequence[Comparison] | None = None,
    folder: str = "d",
) -> EvaluationResult:
    """Of an ImageNet evaluation; a measured configuration that is not ``answered`` has the accuracies 0.5 and 0.75."""
    baseline, *others = configurations
    found = comparisons if comparisons is not None else [compared(baseline.name, other.name) for other in others]
    correct([each for each in found if not each.corrected])
    of_other = {each.other: each for each in found}
    entries = []
    for entry in configurations:
        figures = {**(answered or {}).get(entry.name, classified())} if entry.status == "measured" else {}
        other = of_other.get(entry.name)
        if figures and other is not None:
            figures["agreement"] = Figure(other.same / other.count if other.count else None, is_share=True)
            if comparisons is not None and other.changes and "top1" in figures:
                figures["top1"] = replace(figures["top1"], change=other.changes[0])
        entries.append(replace(entry, figures=figures))
    return EvaluationResult(
        schema_version="7",
        task="imagenet",
        subject="imagenet",
        complete=True,
        stopped=None,
        examples_done=4,
        example_count=4,
        environment=Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, []),
        model=Model("m.tflite", "00", 1, 10, [], []),
        configurations=entries,
        failed=[FailedExample("bad.jpg", None, "input", "is [no] picture")],
        warnings=[],
        preprocessing_latency=preprocessing or summarise_latency([]),
        given={"task": "imagenet", "ground truth": "00", "labels of the model": "00", "normalization": "native"},
        blocks=as_in_a_file([section for section in sections(found, folder) if section.blocks]),
    )


def as_in_a_file(blocks: Sequence[Section]) -> list[Section]:
    """Numbers and lists as they are read back."""
    return msgspec.convert(msgspec.to_builtins(blocks), list[Section])


def earlier(made: EvaluationResult) -> EvaluationResult:
    """The same figures from an earlier run."""
    return replace(made, environment=replace(made.environment, started_at="2020-01-01T00:00:00+00:00"))
