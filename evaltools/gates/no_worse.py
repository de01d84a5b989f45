"""Whether anything became worse since an earlier result: each part is compared with the earlier part of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.gates.check import GateDecisions, decide_together, hold_against_old, not_in_new
from evaltools.gates.compare import EARLIER, Old, crowding, nodes_decision, slowdown
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Evidence
from evaltools.gates.other_results import AnyResult, OtherResult, Result, model_name, parts_of
from evaltools.gates.suite_result import SuiteResult
from evaltools.known_tasks import subject_of
from evaltools.metrics.between_runs import Timed, ratio_between_runs
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, RuntimeUsed
from evaltools.result.json_file import encode_json
from evaltools.result.result import Row


def compare_results(run: str, now: Result, old: Old[Result]) -> list[GateDecisions]:
    """Whether anything became worse in the result of a run; ``not measured`` where nothing was measured twice.

    Raises :class:`DataError` for results of two kinds, and for two files of one measurement.
    """
    before = old.result
    if _is_measured_once(before, now):
        raise DataError(
            f"the result of {run} is a copy of {old.name}: both began at {now.environment.started_at} and have the "
            "same records; measure again, or give an earlier result"
        )
    if _about(now) != _about(before):
        raise DataError(
            f"{old.name} is about {_about(before)}, the result of {run} about {_about(now)}; give the two that belong "
            "together"
        )
    parts, earlier = parts_of(run, now), parts_of(run, before)
    if (run in parts) != (run in earlier):
        parts, earlier = _by_model(run, parts), _by_model(run, earlier)
    earlier = {name: part for name, part in earlier.items() if _rows(part)}
    tests = {name: sum(row.role == "test" for row in _rows(part)) for name, part in parts.items() if name in earlier}
    reports = []
    for name, part in parts.items():
        if name not in earlier:
            reports.append(GateDecisions(name, model_name(part), (), warnings=(_why_alone(part, old.name),)))
            continue
        report = _compared(name, part, old.of(earlier[name]), sum(tests.values()) - tests[name])
        if isinstance(now, SuiteResult):
            report = _without_what_neither_measured(report, part, earlier[name])
        reports.append(report)
    reports += [_lost(name, part, not_in_new(old.name)) for name, part in earlier.items() if name not in parts]
    if not any(report.decisions for report in reports):
        nothing = "nothing was measured in both, so nothing is compared; run what the earlier suite ran"
        decision = Decision("*", "no worse than before", "not measured", reason=nothing)
        reports.append(GateDecisions(run, "", (decision,)))
    return reports


def is_slower(reports: Sequence[GateDecisions]) -> bool:
    """Whether anything is worse by its time, which another measurement may show to be chance."""
    failed = [each for report in reports for each in report.decisions if each.verdict == "fail"]
    return any(each.found is not None and each.found.figure.startswith("latency") for each in failed)


def _is_measured_once(before: Result, now: Result) -> bool:
    """Whether two files have the records of one run, whatever else was edited in one of them."""
    return before.environment.started_at == now.environment.started_at and _records(before) == _records(now)


def _records(result: Result) -> bytes:
    """What a run found, as it is written: numbers that are none are equal then."""
    if isinstance(result, EvaluationResult):
        return encode_json([result.configurations, result.failed, result.examples, result.changed])
    return encode_json(result.entries if isinstance(result, SuiteResult) else result.rows)


def _about(result: Result) -> str:
    if isinstance(result, EvaluationResult):
        return subject_of(result)
    return "a suite" if isinstance(result, SuiteResult) else "a benchmark"


def _by_model(run: str, parts: Mapping[str, AnyResult]) -> dict[str, AnyResult]:
    """A benchmark of one model, which has the name of the run, as one of several has it."""
    return {f"{run}/{Path(model_name(part)).stem}" if name == run else name: part for name, part in parts.items()}


def _rows(part: AnyResult) -> Sequence[Row | ConfigurationResult]:
    return part.rows if isinstance(part, OtherResult) else part.configurations


def _is_measured(row: Row | ConfigurationResult) -> bool:
    return row.status == "measured" and not row.fallback


def _why_alone(part: AnyResult, file: str) -> str:
    failure = part.failure if isinstance(part, OtherResult) else ""
    return f"it was measured in neither: {failure}" if failure else f"new since {file}"


def _compared(name: str, now: AnyResult, old: Old[AnyResult], others: int) -> GateDecisions:
    """A part with the earlier one; ``others`` counts the configurations of other parts."""
    before = old.result
    if isinstance(now, EvaluationResult) and isinstance(before, EvaluationResult):
        return hold_against_old(name, now, old.of(before), others)
    if isinstance(now, OtherResult) and isinstance(before, OtherResult) and now.rows:
        return _rows_compared(name, now, old.of(before), others)
    return _lost(name, before, _why_alone(now, old.name))


def _without_what_neither_measured(report: GateDecisions, now: AnyResult, before: AnyResult) -> GateDecisions:
    """A suite tries all models in all configurations, of which some never run: that is said, and nothing became worse.

    Of a single result that is decided: what did not run is no pass.
    """
    measured = {row.name for part in (now, before) for row in _rows(part) if _is_measured(row)}
    never = dict.fromkeys(each.configuration for each in report.decisions if each.configuration not in measured)
    kept = tuple(each for each in report.decisions if each.configuration in measured)
    warnings = tuple(f"{name} was measured in neither suite" for name in never)
    return replace(report, decisions=kept, warnings=(*warnings, *report.warnings))


def _rows_compared(name: str, now: OtherResult, old: Old[OtherResult], others: int) -> GateDecisions:
    """Of benchmarks, which have only times and nodes."""
    before = old.result
    earlier = {row.name: row for row in before.rows if _is_measured(row)}
    decisions: list[Decision] = []
    timed: list[tuple[Criterion, Evidence]] = []
    warnings = [] if now.sha256 == before.sha256 else [f"another model: the content of {now.model} has changed"]
    for row in now.rows:
        then = earlier.pop(row.name, None)
        if then is None:
            continue
        if not _is_measured(row):
            decisions.append(_not_again(row.name, row.fallback or row.reason or "not measured"))
            continue
        ratio = _ratio(then, row)
        if ratio is not None:
            loads = {"": row.load, EARLIER: then.load}
            since = Evidence(row.name, ratio=ratio, loads=loads, allowed=old.allowed)
            timed.append((slowdown(), Evidence(row.name, old=since)))
        if now.sha256 == before.sha256:
            nodes = (each.delegation.delegated_nodes if each.delegation else None for each in (then, row))
            decisions += nodes_decision(row.name, *nodes)
        sides = [" ".join([_version(each.runtime), *each.flags]) for each in (then, row)]
        if sides[0] != sides[1]:
            warnings.append(f"{row.name}: {sides[0]} then, {sides[1]} now")
    lost = [_not_again(configuration, not_in_new(old.name)) for configuration in earlier]
    return GateDecisions(
        name, now.model, (*decide_together(timed, others), *decisions, *lost), warnings=tuple(warnings)
    )


def _lost(name: str, before: AnyResult, reason: str) -> GateDecisions:
    """Each configuration that was measured before, and is not any more."""
    rows = [row for row in _rows(before) if row.role == "test"] or _rows(before)
    lost = tuple(_not_again(row.name, reason) for row in rows if _is_measured(row))
    return GateDecisions(name, model_name(before), lost)


def _not_again(configuration: str, reason: str) -> Decision:
    return Decision(configuration, "measured again", "not measured", reason=reason)


def _version(runtime: RuntimeUsed | None) -> str:
    return f"{runtime.package} {runtime.version}" if runtime else ""


def _ratio(then: Row, row: Row) -> LatencyRatio | None:
    before, now = _timed(then), _timed(row)
    return None if before is None or now is None else ratio_between_runs(before, now)


def _timed(row: Row) -> Timed | None:
    found = row.figures.get("latency_ms")
    if found is None or not found.value:
        return None
    span = found.interval and Interval(1000 * found.interval.low, 1000 * found.interval.high)
    return Timed(1000 * found.value, span, crowding(row.load, 1))
