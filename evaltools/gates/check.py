"""Checks gates against results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from evaltools.errors import DataError
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import Evidence
from evaltools.gates.gate_file import Gate
from evaltools.metrics.metric import present
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.metrics import METRICS
from evaltools.result.places import against_reference, reference_of
from evaltools.result.verdict import Reason
from evaltools.stats.latency import LatencyRatio
from evaltools.task_kind import kind_of


class GateDecisions(Struct, frozen=True):
    """The decisions of one gate on one result; ``run`` is the name of the run that gave the result.

    ``elapsed_s`` is how long the run took, in seconds, 0 if there was none. ``own_s`` is the time of each configuration
    in it, as far as they were timed.
    """

    run: str
    model: str
    decisions: tuple[Decision, ...]
    elapsed_s: float = 0.0
    own_s: dict[str, float] = field(default_factory=dict)


def hold_gates(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateDecisions]:
    """Check every gate against every result that it is about; results are by the name of the run.

    A gate that is about none of the results, or that names no configuration of one, is ``not measured``. Raises
    :class:`DataError` for results whose figures contradict each other.
    """
    try:
        return _held(gates, results)
    except (KeyError, ValueError, ArithmeticError) as error:
        message = (
            f"the figures of a result contradict each other ({error}); was it edited? Take it as evaltools wrote it"
        )
        raise DataError(message) from error


def _held(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateDecisions]:
    reports = []
    for gate in gates:
        about = {run: result for run, result in results.items() if _is_about(gate, run, result)}
        reports += [_hold(gate, run, result) for run, result in about.items()]
        if not about:
            there_are = ", ".join(_described(*entry) for entry in results.items()) or "none"
            nothing = _nothing_shown(gate, Reason("no_result", names={"there_are": there_are}))
            reports.append(GateDecisions(gate.run, gate.model, nothing))
    return reports


def report_unjudged(gates: Sequence[Gate], results: Mapping[str, EvaluationResult]) -> list[GateDecisions]:
    """Decisions for the results that no gate is about: each is ``not measured``."""
    reports = []
    for run, result in results.items():
        if not any(_is_about(gate, run, result) for gate in gates):
            reason = Reason("no_gate", names={"result": _described(run, result)})
            nothing = Decision("*", "no limit", "not measured", reason=reason)
            reports.append(_report(run, result, (nothing,)))
    return reports


def _is_about(gate: Gate, run: str, result: EvaluationResult) -> bool:
    return gate.is_about(run, result.task, kind_of(result.task).evidence.subject(result), _model_name(result))


def _model_name(result: EvaluationResult) -> str:
    return Path(result.model.file).name


def _described(run: str, result: EvaluationResult) -> str:
    return f"{run} ({kind_of(result.task).evidence.subject(result)} of {_model_name(result)})"


def _hold(gate: Gate, run: str, result: EvaluationResult) -> GateDecisions:
    tests = [entry for entry in result.configurations if entry.role == "test"]
    named = [entry for entry in tests if gate.names(entry.name)]
    if not named:
        there_are = ", ".join(entry.name for entry in tests) or "none"
        names = {"configuration": gate.configuration, "run": run, "there_are": there_are}
        return _report(run, result, _nothing_shown(gate, Reason("no_configuration", names=names)))
    found = [evidence_of(result, entry) for entry in named]
    held = [(criterion, evidence) for evidence in found for criterion in gate.criteria]
    return _report(run, result, tuple(decide_together(held)))


def _report(run: str, result: EvaluationResult, decisions: tuple[Decision, ...]) -> GateDecisions:
    return GateDecisions(run, _model_name(result), decisions, result.environment.elapsed_s, seconds_of(result))


def seconds_of(result: EvaluationResult) -> dict[str, float]:
    """The time of all inferences of each configuration, in seconds."""
    return {
        entry.name: latency.avg_us * max(entry.finished_examples, latency.count) / 1e6
        for entry in result.configurations
        if (latency := entry.inference_latency) is not None
    }


def decide_together(held: Sequence[tuple[Criterion, Evidence]]) -> list[Decision]:
    """Decide limits of which none should be broken by chance: those with a confidence are corrected after Holm 1979.

    That all of them are kept needs no correction: a limit that does not hold passes by chance no more often for being
    one of several.
    """
    of_confidence = sum(criterion.confidence is not None and not evidence.not_measured for criterion, evidence in held)
    tests = max(1, of_confidence)
    decisions = [decide(criterion, evidence, tests) for criterion, evidence in held]
    while 0 < (remaining := of_confidence - _broken(held, decisions)) < tests:
        tests = remaining
        decisions = [
            decide(*pair, tests) if decision.verdict == "inconclusive" else decision
            for pair, decision in zip(held, decisions, strict=True)
        ]
    return decisions


def _broken(held: Sequence[tuple[Criterion, Evidence]], decisions: Sequence[Decision]) -> int:
    """How many limits with a confidence are broken."""
    together = zip(held, decisions, strict=True)
    return sum(criterion.confidence is not None and each.verdict == "fail" for (criterion, _), each in together)


def _nothing_shown(gate: Gate, reason: Reason) -> tuple[Decision, ...]:
    return tuple(Decision(gate.configuration, limit.text, "not measured", reason=reason) for limit in gate.criteria)


def evidence_of(result: EvaluationResult, configuration: ConfigurationResult) -> Evidence:
    """The evidence in a result on one of its configurations, as limits need it."""
    obstacle = _why_not_its_own(result, configuration)
    if obstacle is not None:
        return Evidence(configuration.name, obstacle, configuration.cannot_exist)
    read = {metric.name: metric.read(result, configuration) for metric in METRICS}
    ratio = against_reference(result, result.latency_comparisons, configuration)
    judged = kind_of(result.task).evidence.judged(result, configuration)
    return Evidence(
        configuration.name,
        reference_not_measured=_why_no_reference(result, configuration),
        figures=present(read) | configuration.figures,
        outputs=judged.outputs,
        shares=judged.shares,
        means=judged.means,
        changes=judged.changes,
        ratio=None if ratio is None else LatencyRatio(ratio.pairs, ratio.ratio, ratio.interval, ratio.processes),
        not_clean=configuration.not_clean,
    )


def _why_not_its_own(result: EvaluationResult, configuration: ConfigurationResult) -> Reason | None:
    if configuration.status == "not measured":
        return Reason.of_text(configuration.reason or "not measured")
    if configuration.fallback is not None:
        return Reason("fallback", names={"why": configuration.fallback})
    if not result.complete:
        return Reason("ended_early", names={"why": str(result.stopped)})
    return None


def _why_no_reference(result: EvaluationResult, configuration: ConfigurationResult) -> Reason | None:
    reference = reference_of(configuration, result.configurations)
    if reference is None:
        return Reason("no_reference")
    if reference.status == "not measured":
        return Reason("reference_not_measured", names={"why": str(reference.reason)})
    if reference.fallback is not None:
        return Reason("reference_fallback", names={"why": reference.fallback})
    return None
