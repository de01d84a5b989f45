"""Gates held against results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from evaltools.errors import DataError
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import Change, CountedChange, Evidence, ResampledChange, Share
from evaltools.gates.gate_file import Gate
from evaltools.metrics.coco_stats import CocoStats
from evaltools.result.evaluation import Comparison, ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.stats.proportions import PairedCounts
from evaltools.stats.resampled import paired_differences
from evaltools.tasks.coco.result import BoxComparison, CocoDetection


@dataclass(frozen=True)
class GateReport:
    """What came of one gate for one result; ``run`` names where the result is from."""

    run: str
    model: str
    decisions: tuple[Decision, ...]


def hold_gates(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateReport]:
    """Hold every gate against every result that it is about, by the name of the run.

    A gate that is about none of the results, or names no configuration of one, shows nothing: ``not measured``. Raises
    :class:`DataError` for results whose figures contradict each other.
    """
    try:
        return _held(gates, results)
    except (KeyError, ValueError, ArithmeticError) as error:
        message = (
            f"the figures of a result contradict each other ({error}); was it edited? Take it as evaltools wrote it"
        )
        raise DataError(message) from error


def _held(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateReport]:
    reports = []
    for gate in gates:
        about = {run: result for run, result in results.items() if _is_about(gate, run, result)}
        reports += [_hold(gate, run, result) for run, result in about.items()]
        if not about:
            there_are = ", ".join(_described(*entry) for entry in results.items()) or "none"
            reason = f"no result is about it; there are {there_are}"
            reports.append(GateReport(gate.run, gate.model, _nothing_shown(gate, reason)))
    return reports


def report_unjudged(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateReport]:
    """A report for each result that none of all gates is about, of which nothing is shown."""
    reports = []
    for run, result in results.items():
        if not any(_is_about(gate, run, result) for gate in gates):
            reason = f"no gate is about {_described(run, result)}; add one, or leave the result out"
            nothing = Decision("*", "no limit", "not measured", "", reason)
            reports.append(GateReport(run, _model_name(result), (nothing,)))
    return reports


def _is_about(gate: Gate, run: str, result: EvaluationResult) -> bool:
    return gate.is_about(run, result.task, _model_name(result))


def _model_name(result: EvaluationResult) -> str:
    return Path(result.model.file).name


def _described(run: str, result: EvaluationResult) -> str:
    return f"{run} ({result.task} of {_model_name(result)})"


def _hold(gate: Gate, run: str, result: EvaluationResult) -> GateReport:
    tests = [entry for entry in result.configurations if entry.role == "test"]
    named = [entry for entry in tests if gate.names(entry.name)]
    if not named:
        there_are = ", ".join(entry.name for entry in tests) or "none"
        decisions = _nothing_shown(
            gate, f"no configuration is named {gate.configuration!r} in {run}; there are {there_are}"
        )
        return GateReport(run, _model_name(result), decisions)
    found = [evidence_of(result, entry) for entry in named]
    decisions = tuple(decide(criterion, evidence) for evidence in found for criterion in gate.criteria)
    return GateReport(run, _model_name(result), decisions)


def _nothing_shown(gate: Gate, reason: str) -> tuple[Decision, ...]:
    return tuple(Decision(gate.configuration, limit.text, "not measured", "", reason) for limit in gate.criteria)


def evidence_of(result: EvaluationResult, configuration: ConfigurationResult) -> Evidence:
    """What a result says of one of its configurations, in the words of limits."""
    obstacle = _why_not_its_own(result, configuration)
    if obstacle is not None:
        return Evidence(configuration.name, obstacle, configuration.cannot_exist)
    figures: dict[str, float | None] = {"failed_examples": float(configuration.failed_examples)}
    latency = configuration.inference_latency
    if latency is not None and latency.count and latency.p50_us is not None:
        figures["latency_ms"] = latency.p50_us / 1000
    if configuration.peak_memory_mb is not None:
        figures["peak_memory_mb"] = configuration.peak_memory_mb
    if configuration.delegation is not None and configuration.delegation.total_nodes:
        figures["delegated_nodes"] = configuration.delegation.delegated_nodes / configuration.delegation.total_nodes
        taken = [delegate.partitions for delegate in configuration.delegates if delegate.nodes]
        if None not in taken:
            figures["partitions"] = float(sum(filter(None, taken)))
    ratios = [entry for entry in result.latency_comparisons if _is_reference(result, entry.baseline)]
    ratio = next(((entry.ratio, entry.interval) for entry in ratios if entry.other == configuration.name), None)
    return Evidence(
        configuration.name,
        reference_not_measured=_why_no_reference(result, configuration),
        figures=figures | _accuracy(result, configuration) | _boxes(result, configuration),
        outputs=_outputs(result, configuration),
        shares=_shares(configuration),
        changes=_changes(result, configuration),
        ratio=ratio,
    )


def _why_not_its_own(result: EvaluationResult, configuration: ConfigurationResult) -> str | None:
    if configuration.status == "not measured":
        return configuration.reason or "not measured"
    if configuration.fallback is not None:
        return f"it was measured on the CPU instead of what it asked for: {configuration.fallback}"
    if not result.complete:
        return f"the run ended early ({result.stopped}); its figures are those of a part of the examples"
    return None


def _why_no_reference(result: EvaluationResult, configuration: ConfigurationResult) -> str | None:
    reference = reference_of(configuration, result.configurations)
    if reference is None:
        return "this result has no reference to hold it against; run with one"
    if reference.status == "not measured":
        return f"the reference was not measured: {reference.reason}"
    if reference.fallback is not None:
        return f"the reference was measured on the CPU instead of what it asked for: {reference.fallback}"
    return None


def _is_reference(result: EvaluationResult, name: str) -> bool:
    return any(entry.name == name and entry.role == "reference" for entry in result.configurations)


def _against_reference(result: EvaluationResult, comparisons: Sequence[Any], other: str) -> Any:
    """The comparison of a configuration with the reference, None where there is none."""
    found = (entry for entry in comparisons if entry.other == other and _is_reference(result, entry.baseline))
    return next(found, None)


def _accuracy(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    if configuration.classification is not None:
        shares = _shares(configuration)
        found |= {name: share.successes / share.count for name, share in shares.items()}
        if configuration.classification.distinct_answers is not None:
            found["distinct_answers"] = float(configuration.classification.distinct_answers)
    comparison: Comparison | None = _against_reference(result, result.comparisons, configuration.name)
    if comparison is not None:
        found["agreement"] = comparison.agreement.share
    return found


def _shares(configuration: ConfigurationResult) -> dict[str, Share]:
    """Counts behind the accuracies, which are float32: 90 of 100 would be less than 0.9."""
    if configuration.classification is None or not configuration.classification.topk.example_count:
        return {}
    topk = configuration.classification.topk
    count = topk.example_count
    return {f"top{k}": Share(round(share * count), count) for k, share in enumerate(topk.accuracies, 1)}


def _boxes(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    if result.coco is None:
        return {}
    found: dict[str, float | None] = {}
    for entry in result.coco.figures:
        if entry.configuration == configuration.name and entry.evaluation is not None:
            found |= {stat.name: getattr(entry.evaluation.stats, stat.name) for stat in fields(CocoStats)}
    comparison: BoxComparison | None = _against_reference(result, result.coco.comparisons, configuration.name)
    if comparison is not None:
        there_were = comparison.boxes.matched + comparison.boxes.lost
        found["matched_boxes"] = comparison.boxes.matched / there_were if there_were else None
    return found


def _changes(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, Change]:
    found: dict[str, Change] = {}
    comparison: Comparison | None = _against_reference(result, result.comparisons, configuration.name)
    if comparison is not None and comparison.agreement.example_count:
        count = comparison.agreement.example_count
        for entry in comparison.topk:
            found[f"top{entry.k}"] = CountedChange(PairedCounts(count, entry.lost, entry.gained))
    if result.coco is not None:
        found |= _changes_of_figures(
            result.coco, _against_reference(result, result.coco.comparisons, configuration.name)
        )
    return found


def _changes_of_figures(coco: CocoDetection, comparison: BoxComparison | None) -> dict[str, Change]:
    if comparison is None:
        return {}
    resampled = {entry.configuration: entry.resampled for entry in coco.figures}
    found: dict[str, Change] = {}
    for entry in comparison.changes:
        sides = (resampled[name][entry.stat] for name in (comparison.baseline, comparison.other))
        differences = paired_differences(*sides)
        found[entry.stat] = ResampledChange(entry.change, differences, comparison.example_count)
    return found


def _outputs(
    result: EvaluationResult, configuration: ConfigurationResult
) -> list[tuple[Sequence[str], Mapping[str, float | None]]]:
    if result.inference_diff is None:
        return []
    compared = [entry for entry in result.inference_diff.comparisons if entry.configuration == configuration.name]
    judged = [output for entry in compared for output in entry.outputs]
    tensors = result.model.outputs
    by_native_tool: list[tuple[Sequence[str], Mapping[str, float | None]]] = [
        ((*(tensor.name for tensor in tensors[number : number + 1]), str(number)), {"avg_error": error.avg_error})
        for entry in compared
        for number, error in enumerate(entry.native_errors)
    ]
    return by_native_tool or [
        (
            (output.difference.output, *(tensor.name for tensor in tensors[number : number + 1]), str(number)),
            output.difference.figures,
        )
        for number, output in enumerate(judged)
    ]
