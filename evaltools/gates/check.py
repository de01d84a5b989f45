"""Checks gates against the results of runs, and against runs that gave none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.file_content import Unreadable, sha256_of
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import Baseline, Evidence, RunRows, evidence_of, parts_of
from evaltools.gates.gate_file import Gate
from evaltools.result.result import Result, Row

_FEW: Final = 0.95
"""Limits without a confidence are distinguished from those that would be kept with this one."""
NO_BASELINE: Final[Mapping[str, Baseline[RunRows]]] = {}


class GateDecisions(Struct, frozen=True):
    """The decisions of one gate on one result; ``run`` is the name of the run that gave the result.

    ``warnings`` are those of the run, and what was set up in another way than in the result that it is compared with.
    ``elapsed_s`` is how long the run took, in seconds, 0 if there was none. ``own_s`` is the time of each configuration
    in it, as far as they were timed.
    """

    run: str
    model: str
    decisions: tuple[Decision, ...]
    elapsed_s: float = 0.0
    own_s: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def earlier_parts(run: str, old: Baseline[Result]) -> dict[str, Baseline[RunRows]]:
    """What limits ``vs old`` are compared with, by the same names."""
    return {name: old.of(part) for name, part in parts_of(run, old.result).items()}


def hold_all(
    gates: Sequence[Gate], results: Mapping[str, RunRows], old: Mapping[str, Baseline[RunRows]] = NO_BASELINE
) -> list[GateDecisions]:
    """Check every gate against every result that it is about; results are by the name of the run.

    ``old`` has the earlier results that runs are compared with, by the same names. A gate that is about none of the
    results, or names none of their configurations, is ``not measured``. Raises :class:`DataError` for figures that
    contradict each other.
    """
    reports = []
    for gate in gates:
        about = {run: result for run, result in results.items() if _is_about(gate, run, result)}
        reports += [_held(gate, run, found, old.get(run)) for run, found in about.items()]
        if not about:
            there_are = ", ".join(_described(*entry) for entry in results.items()) or "none"
            nothing = _nothing_shown(gate, f"no result is about it; there are {there_are}")
            reports.append(GateDecisions(gate.run, gate.model, nothing))
    return reports


def unjudged(gates: Sequence[Gate], results: Mapping[str, RunRows]) -> list[GateDecisions]:
    """Decisions for the results that no gate is about: each is ``not measured``, but what others are compared with."""
    reports = []
    for run, result in results.items():
        if not result.is_base and not any(_is_about(gate, run, result) for gate in gates):
            reason = f"no gate is about {_described(run, result)}; add one, or leave the result out"
            reports.append(GateDecisions(run, result.model, (not_measured(reason, "no limit"),)))
    return reports


def places_in(gate: Gate, results: Mapping[str, RunRows]) -> list[tuple[str, str]]:
    """The runs and configurations among these that a gate is about."""
    about = {run: [row.name for row in found.tests] for run, found in results.items() if _is_about(gate, run, found)}
    return [(run, configuration) for run, known in about.items() for configuration in gate.chosen(known)]


def _is_about(gate: Gate, run: str, found: RunRows) -> bool:
    """Whether it is meant: of a benchmark's first model, which has no ratio, not where only later ones' are limited."""
    has_ratio = any("latency_ratio" in row.figures for row in found.rows)
    if found.is_base and not has_ratio and all(limit.kind == "ratio" and not limit.of_old for limit in gate.criteria):
        return False
    if not found.task:
        return gate.is_about(run, gate.task, gate.task, gate.model)
    return gate.is_about(run, found.task, found.subject, found.model)


def _described(run: str, found: RunRows) -> str:
    return f"{run} ({found.subject} of {found.model})"


def not_measured(reason: str, limit: str, configuration: str = "*", examples: int = 0) -> Decision:
    """That nothing is shown of a limit."""
    return Decision(configuration, limit, "not measured", reason=reason, examples=examples)


def _nothing_shown(gate: Gate, reason: str) -> tuple[Decision, ...]:
    return tuple(not_measured(reason, limit.text, gate.configuration) for limit in gate.criteria)


def _held(gate: Gate, run: str, found: RunRows, old: Baseline[RunRows] | None) -> GateDecisions:
    named = [row for row in found.tests if gate.names(row.name)]
    why = changed_model(found) or ("" if named else found.failure)
    if not named and not why:
        there_are = ", ".join(row.name for row in found.tests) or "none"
        why = f"no configuration is named {gate.configuration!r} in {run}; there are {there_are}"
    if why:
        return report(run, found, _nothing_shown(gate, why))
    try:
        evidence = [evidence_of(found, row, gate.allowed, old) for row in named]
        limited = frozenset(limit.figure for limit in gate.criteria if limit.kind == "value")
        held = [(criterion, replace(each, limited=limited)) for each in evidence for criterion in gate.criteria]
        decisions = decide_together(held)
        return report(run, found, decisions, after=_rest_on_few(held, decisions))
    except (KeyError, ValueError, ArithmeticError) as error:
        message = (
            f"the figures of a result contradict each other ({error}); was it edited? Take it as evaltools wrote it"
        )
        raise DataError(message) from error


def _rest_on_few(held: Sequence[tuple[Criterion, Evidence]], decisions: Sequence[Decision]) -> list[str]:
    """A warning for each limit without a confidence that is kept, and that so few examples would leave open."""
    found = []
    for (criterion, evidence), decision in zip(held, decisions, strict=True):
        if criterion.confidence is None and decision.verdict == "pass":
            asked = decide(replace(criterion, confidence=_FEW), evidence)
            if asked.verdict == "inconclusive":
                needed = f", about {asked.examples_needed} would decide" if asked.examples_needed else ""
                found.append(
                    f"{decision.configuration}: {criterion.text} rests on {evidence.examples} examples{needed}; "
                    f"write '{criterion.text} at 95 %' to have it decided for pictures like these"
                )
    return found


def changed_model(found: RunRows) -> str:
    """That the model's file has another content by now than when it was measured; empty where it has not."""
    path, model = _model_path(found), found.measured
    if path is None or model is None:
        return ""
    try:
        status = path.stat()
        is_same = _sha256(path, status.st_mtime_ns, status.st_size) == model.sha256
    except (OSError, Unreadable):
        return ""
    changed = f"the model file {model.file} has another content by now than when it was measured; measure again"
    return "" if is_same else changed


@cache
def _sha256(path: Path, _time: int, _size: int) -> str:
    """That of a file, read once for all gates and results."""
    return sha256_of(path)


def _model_path(found: RunRows) -> Path | None:
    """Where the model is: the file that was measured, else the one at the same place in this folder, if there is any.

    So a checkout elsewhere, as CI makes one for each job, has the model of a result that was made in another.
    """
    if found.measured is None or found.environment is None:
        return None
    folder = Path(found.environment.folder)
    measured = folder / found.measured.file
    here = [measured.relative_to(folder)] if measured.is_relative_to(folder) else []
    return next((path for path in (measured, *here) if path.exists()), None)


def report(
    run: str, found: RunRows, decisions: Sequence[Decision], before: Sequence[str] = (), after: Sequence[str] = ()
) -> GateDecisions:
    """The decisions on a run with its times and warnings, and others ``before`` and ``after`` these."""
    model = found.measured
    gone = [] if model is None or _model_path(found) is not None else [f"the model {model.file} is not there any more"]
    warnings = (*before, *gone, *found.warnings, *after)
    return GateDecisions(run, found.model, tuple(decisions), found.elapsed_s, _seconds_of(found.rows), warnings)


def _seconds_of(rows: Sequence[Row]) -> dict[str, float]:
    """The time of all inferences of each row, in seconds."""
    return {
        row.name: time.value * max(row.finished_examples, time.count or 0) / 1000
        for row in rows
        if (time := row.figures.get("latency_ms")) is not None and time.value is not None
    }


def decide_together(held: Sequence[tuple[Criterion, Evidence]], others: int = 0) -> list[Decision]:
    """Decide limits of which none should be broken by chance: those with a confidence are corrected after Holm 1979.

    ``others`` counts limits that are decided elsewhere, among which these shall be broken by chance no more often.
    That all of them are kept needs no correction: a limit that does not hold passes by chance no more often for being
    one of several.
    """
    is_tested = [criterion.confidence is not None and not evidence.not_measured for criterion, evidence in held]
    of_confidence = sum(is_tested) + others if any(is_tested) else 0
    tests = max(1, of_confidence)
    decisions = [decide(criterion, evidence, tests) for criterion, evidence in held]
    while True:
        pairs = list(zip(held, decisions, strict=True))
        broken = sum(each.verdict == "fail" and limit.confidence is not None for (limit, _), each in pairs)
        if not 0 < of_confidence - broken < tests:
            return decisions
        tests = of_confidence - broken
        decisions = [decide(*pair, tests) if each.verdict == "inconclusive" else each for pair, each in pairs]
