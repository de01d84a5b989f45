"""Whether anything became worse since an earlier result: each part is compared with the earlier part of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.gates.check import GateDecisions, hold_against_old, not_in_new
from evaltools.gates.compare import Old
from evaltools.gates.decide import Decision
from evaltools.gates.run_rows import RunRows, parts_of
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result, Row


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
    earlier = {name: part for name, part in earlier.items() if part.rows}
    tests = {name: sum(row.role == "test" for row in part.rows) for name, part in parts.items() if name in earlier}
    reports = []
    for name, part in parts.items():
        if name not in earlier:
            reports.append(GateDecisions(name, part.model, (), warnings=(_why_alone(part, old.name),)))
            continue
        report = _compared(name, part, old.of(earlier[name]), sum(tests.values()) - tests[name])
        if any(row.job for row in part.rows):
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
    return encode_json([result.rows, result.failed, result.tables])


def _about(result: Result) -> str:
    return result.about if result.is_of_examples else f"a {result.command}"


def _by_model(run: str, parts: Mapping[str, RunRows]) -> dict[str, RunRows]:
    """A benchmark of one model, which has the name of the run, as one of several has it."""
    return {f"{run}/{Path(part.model).stem}" if name == run else name: part for name, part in parts.items()}


def _is_measured(row: Row) -> bool:
    return row.status == "measured" and not row.fallback


def _why_alone(part: RunRows, file: str) -> str:
    return f"it was measured in neither: {part.failure}" if part.failure else f"new since {file}"


def _compared(name: str, now: RunRows, old: Old[RunRows], others: int) -> GateDecisions:
    """A part with the earlier one; ``others`` counts the configurations of other parts."""
    if now.rows:
        return hold_against_old(name, now, old, others)
    return _lost(name, old.result, _why_alone(now, old.name))


def _without_what_neither_measured(report: GateDecisions, now: RunRows, before: RunRows) -> GateDecisions:
    """A suite tries all models in all configurations, of which some never run: that is said, and nothing became worse.

    Of a single result that is decided: what did not run is no pass.
    """
    measured = {row.name for part in (now, before) for row in part.rows if _is_measured(row)}
    never = dict.fromkeys(each.configuration for each in report.decisions if each.configuration not in measured)
    kept = tuple(each for each in report.decisions if each.configuration in measured)
    warnings = tuple(f"{name} was measured in neither suite" for name in never)
    return replace(report, decisions=kept, warnings=(*warnings, *report.warnings))


def _lost(name: str, before: RunRows, reason: str) -> GateDecisions:
    """Each configuration that was measured before, and is not any more."""
    rows = before.tests or before.rows
    lost = (Decision(row.name, "measured again", "not measured", reason=reason) for row in rows if _is_measured(row))
    return GateDecisions(name, before.model, tuple(lost))
