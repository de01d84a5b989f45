"""Compares any result with an earlier one of its kind: evaluations, benchmarks, suites job by job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.gates.check import GateDecisions, hold_against_old
from evaltools.gates.compare import DEFAULT_MARGIN, EARLIER, Old, crowding, nodes_decision, slowdown
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import NOTHING_ALLOWED, Allowed, Evidence
from evaltools.gates.outcome import GateOutcome, outcome_of
from evaltools.gates.suite_result import SUITE_VERSION, SuiteEntry, SuiteResult, SuiteRow
from evaltools.gates.suite_rows import rows_of_benchmark
from evaltools.metrics.between_runs import Timed, ratio_between_runs
from evaltools.metrics.latency import LatencyRatio
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.evaluation import Environment, EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result.load import Load
from evaltools.result.verdict import Reason
from evaltools.task_kind import kind_of

Key = tuple[str, str]
AnyFile = EvaluationResult | BenchmarkResult | SuiteResult


class OldFile(Struct, frozen=True):
    """An earlier result of any kind, as :class:`Old` is one of an evaluation."""

    name: str
    result: AnyFile
    other_examples: bool = False
    margin: float = DEFAULT_MARGIN
    allowed: Allowed = NOTHING_ALLOWED


_LOST: Final = "measured again"


def compare_results(run: str, now: AnyFile, old: OldFile) -> list[GateDecisions]:
    """Whether anything became worse in the result of a run.

    Raises :class:`DataError` for results of two kinds, and for two files of one measurement.
    """
    before = old.result
    if _is_measured_once(before, now):
        raise DataError(
            f"the result of {run} is a copy of {old.name}: both began at {now.environment.started_at} and have the "
            "same records; measure again, or give an earlier result"
        )
    if isinstance(now, EvaluationResult) and isinstance(before, EvaluationResult) and _about(now) == _about(before):
        return [hold_against_old(run, now, Old(old.name, before, old.other_examples, old.margin, old.allowed))]
    if isinstance(now, SuiteResult) and isinstance(before, SuiteResult):
        return compare_suites(before, now, old.name, old.margin, old.allowed).reports
    if isinstance(now, BenchmarkResult) and isinstance(before, BenchmarkResult):
        return compare_suites(_as_suite(before), _as_suite(now), old.name, old.margin, old.allowed).reports
    raise DataError(
        f"{old.name} is about {_about(before)}, the result of {run} about {_about(now)}; give the two that belong "
        "together"
    )


def _is_measured_once(before: AnyFile, now: AnyFile) -> bool:
    """Whether two files have the records of one run, whatever else was edited in one of them."""
    return before.environment.started_at == now.environment.started_at and _records(before) == _records(now)


def _records(result: AnyFile) -> bytes:
    """What a run found, as it is written: numbers that are none are equal then."""
    if isinstance(result, EvaluationResult):
        return encode_json([result.part, result.configurations, result.failed])
    return encode_json(result.rows if isinstance(result, BenchmarkResult) else result.entries)


def _about(result: AnyFile) -> str:
    if isinstance(result, EvaluationResult):
        return kind_of(result.task).evidence.subject(result)
    return "a suite" if isinstance(result, SuiteResult) else "a benchmark"


def _as_suite(result: BenchmarkResult) -> SuiteResult:
    """A benchmark as a suite with one job; on a device nothing else is started."""
    if result.device_run is not None:
        quiet = Load(result.environment.cpu_count, 0.0, 0.0)
        result = replace(result, environment=replace(result.environment, load=quiet))
    entries = [
        SuiteEntry(
            model=Path(model.file).stem,
            model_file=model.file,
            model_sha256=model.sha256,
            job="benchmark",
            command=[],
            state="done",
            rows=rows_of_benchmark(replace(result, rows=[row for row in result.rows if row.model == number])),
        )
        for number, model in enumerate(result.models)
    ]
    return SuiteResult(SUITE_VERSION, result.environment, result.stopped or "", entries)


def compare_suites(
    before: SuiteResult,
    now: SuiteResult,
    file: str,
    margin: float = DEFAULT_MARGIN,
    allowed: Allowed = NOTHING_ALLOWED,
) -> GateOutcome:
    """Whether anything became worse since ``before``, which lies in ``file``; ``margin`` is a drop, 0..1, that is none.

    What neither suite measured is said in the warnings; where nothing was measured twice, the verdict is
    ``not measured``.
    """
    old = {_key(entry): entry for entry in before.entries}
    new = {_key(entry): entry for entry in now.entries}
    tests = sum(row.role == "test" for key in new if key in old for row in new[key].rows)
    against = OldFile(file, before, margin=margin, allowed=allowed)
    reports = [_compared(old[key], entry, against, now.environment, tests) for key, entry in new.items() if key in old]
    reports += [_lost(entry, file) for key, entry in old.items() if key not in new and _has_measured(entry)]
    added = tuple(f"{name_of(entry)}: new since {file}" for key, entry in new.items() if key not in old)
    if not any(report.decisions for report in reports):
        nothing = Decision("*", "no worse than before", "not measured", reason=Reason("nothing_twice"))
        reports.append(GateDecisions("suite", "", (nothing,)))
    if added:
        reports.append(GateDecisions("suite", "", (), warnings=added))
    return outcome_of(now.environment.evaltools, file, reports, "suite")


def _key(entry: SuiteEntry) -> Key:
    return entry.model, entry.job


def name_of(entry: SuiteEntry) -> str:
    """An entry as the run of a gate is called."""
    return f"{entry.model}, {entry.job}"


def _has_measured(entry: SuiteEntry) -> bool:
    return any(_is_measured(row) for row in entry.rows)


def _is_measured(row: SuiteRow) -> bool:
    return row.status == "measured" and not row.fallback


def _lost(entry: SuiteEntry, file: str, reason: str = "") -> GateDecisions:
    why = Reason.of_text(reason) if reason else Reason("not_in_new", names={"old": file})
    rows = [row for row in entry.rows if row.role == "test"] or entry.rows
    measured = [row.configuration for row in rows if _is_measured(row)]
    lost = [Decision(configuration, _LOST, "not measured", reason=why) for configuration in measured]
    return GateDecisions(name_of(entry), entry.model, tuple(lost))


def _compared(old: SuiteEntry, new: SuiteEntry, against: OldFile, now: Environment, tests: int) -> GateDecisions:
    if not new.rows:
        report = _lost(old, against.name, new.reason)
        never = () if report.decisions else (f"it was measured in neither: {new.reason}",)
        return replace(report, warnings=never)
    if old.evaluation is None or new.evaluation is None:
        return _of_rows(old, new, against, now, tests)
    earlier = Old(against.name, old.evaluation, margin=against.margin, allowed=against.allowed)
    report = hold_against_old(name_of(new), new.evaluation, earlier, tests)
    return _without_what_neither_measured(report, old, new)


def _without_what_neither_measured(report: GateDecisions, old: SuiteEntry, new: SuiteEntry) -> GateDecisions:
    measured = {row.configuration for entry in (old, new) for row in entry.rows if _is_measured(row)}
    never = dict.fromkeys(each.configuration for each in report.decisions if each.configuration not in measured)
    kept = tuple(each for each in report.decisions if each.configuration in measured)
    warnings = tuple(f"{name} was measured in neither suite" for name in never)
    return replace(report, decisions=kept, warnings=(*warnings, *report.warnings))


def _of_rows(old: SuiteEntry, new: SuiteEntry, against: OldFile, now: Environment, tests: int) -> GateDecisions:
    """Of benchmarks, which have only times and nodes."""
    earlier = {row.configuration: row for row in old.rows}
    is_same_model = old.model_sha256 == new.model_sha256
    decisions: list[Decision] = []
    warnings = [] if is_same_model else [f"another model: the content of {Path(new.model_file).name} has changed"]
    for row in new.rows:
        then = earlier.get(row.configuration)
        if then is None or not _is_measured(then):
            continue
        if not _is_measured(row):
            why = Reason.of_text(row.fallback or row.reason or "not measured")
            decisions.append(Decision(row.configuration, _LOST, "not measured", reason=why))
            continue
        ratio = _ratio(then, row, against.result.environment, now)
        if ratio is not None:
            loads = {"": row.load, EARLIER: then.load}
            since = Evidence(row.configuration, ratio=ratio, loads=loads, allowed=against.allowed)
            decisions.append(decide(slowdown(), Evidence(row.configuration, old=since), tests))
        if is_same_model:
            decisions += nodes_decision(row.configuration, then.delegated_nodes, row.delegated_nodes)
        if then.flags != row.flags or then.runtime != row.runtime:
            sides = [" ".join([each.runtime, *each.flags]) for each in (then, row)]
            warnings.append(f"{row.configuration}: {sides[0]} then, {sides[1]} now")
    kept = {row.configuration for row in new.rows}
    gone = replace(old, rows=[row for row in old.rows if row.configuration not in kept])
    lost = _lost(gone, EARLIER).decisions
    return GateDecisions(name_of(new), new.model, (*decisions, *lost), warnings=tuple(warnings))


def _ratio(then: SuiteRow, row: SuiteRow, before: Environment, now: Environment) -> LatencyRatio | None:
    if not then.p50_us or not row.p50_us:
        return None
    sides = [
        Timed(each.p50_us or 0.0, each.p50_interval, crowding(each.load, machine.cpu_count, 1))
        for each, machine in ((then, before), (row, now))
    ]
    return ratio_between_runs(*sides)


def slower_runs(reports: Sequence[GateDecisions]) -> list[str]:
    """The runs that are worse by their time, which another measurement may show to be chance."""
    return [
        report.run
        for report in reports
        if any(each.verdict == "fail" and _is_latency(each) for each in report.decisions)
    ]


def _is_latency(decision: Decision) -> bool:
    return decision.found is not None and decision.found.figure.startswith("latency")
