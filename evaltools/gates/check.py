"""Checks gates against results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.file_content import Unreadable, sha256_of
from evaltools.gates.compare import (
    Old,
    differences,
    evidence_since,
    kept_since,
    limits_since,
    other_decisions,
    slowdown,
)
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import Allowed, Evidence, evidence_of
from evaltools.gates.gate_file import Gate
from evaltools.gates.run_rows import RunRows
from evaltools.result.result import Row

_FEW: Final = 0.95
"""Limits without a confidence are distinguished from those that would be kept with this one."""
NO_OLD: Final[Mapping[str, Old[RunRows]]] = {}


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


def hold_gate(gate: Gate, run: str, found: RunRows, old: Old[RunRows] | None = None) -> GateDecisions:
    """Check a gate against the rows of a run; ``run`` is its name, ``old`` the earlier ones they are compared with.

    A gate that names none of them is ``not measured``. Raises :class:`DataError` for figures that contradict each
    other.
    """
    try:
        return _held(gate, run, found, old)
    except (KeyError, ValueError, ArithmeticError) as error:
        message = (
            f"the figures of a result contradict each other ({error}); was it edited? Take it as evaltools wrote it"
        )
        raise DataError(message) from error


def hold_against_old(run: str, found: RunRows, old: Old[RunRows], others: int = 0) -> GateDecisions:
    """Whether anything became worse since an earlier result, of every configuration that either of them has.

    Times of a reference are never worse: it is the machine that they show. ``others`` counts the configurations of
    other results that are compared together with it.
    """
    rows = found.tests or found.rows
    changed_model = _changed_model(found) or ("" if rows else "the result has no configuration")
    if changed_model:
        return _report(run, found, (_missing("*", changed_model),))
    held: list[tuple[Criterion, Evidence, Evidence]] = []
    timed: list[tuple[Criterion, Evidence]] = []
    decisions: list[Decision] = []
    untimed: list[str] = []
    for row in rows:
        own = evidence_of(found, row, old.allowed)
        since = own if own.not_measured else evidence_since(old, found, row, own, old.allowed)
        if since.not_measured:
            decisions.append(_missing(row.name, since.not_measured, own))
            continue
        held += [(criterion, own, since) for criterion in limits_since(old, row)]
        decisions += other_decisions(old, found, row, since)
        timed += [(slowdown(), replace(own, old=since))] if since.ratio is not None else []
        untimed += [f"times of {row.name}, as not both have them"] if since.ratio is None else []
    of_accuracy = decide_together([(criterion, replace(own, old=since)) for criterion, own, since in held], others)
    of_times = decide_together(timed, others)
    kept = [
        kept_since(criterion, decision, since, old, found)
        for (criterion, _, since), decision in zip(held, of_accuracy, strict=True)
    ]
    names = {row.name for row in rows}
    lost = [
        _missing(row.name, not_in_new(old.name))
        for row in old.result.rows
        if row.role == rows[0].role and row.name not in names
    ]
    changed = tuple(f"since {old.name}: {line}" for line in differences(old.result, found))
    changed += tuple(f"not compared: {line}" for line in untimed)
    report = _report(run, found, (*kept, *decisions, *of_times, *lost))
    return replace(report, warnings=(*changed, *report.warnings))


def _missing(name: str, reason: str, own: Evidence | None = None) -> Decision:
    examples = 0 if own is None else own.examples
    limit = "no worse than before"
    return Decision(name, limit, "not measured", reason=reason, examples=examples)


def _held(gate: Gate, run: str, found: RunRows, old: Old[RunRows] | None) -> GateDecisions:
    named = [row for row in found.tests if gate.names(row.name)]
    changed = _changed_model(found)
    if changed or (found.failure and not named):
        return _report(run, found, nothing_shown(gate, changed or found.failure))
    if not named:
        return _report(run, found, none_named(gate, run, [row.name for row in found.tests]))
    evidence = [_evidence(found, row, gate.allowed, old) for row in named]
    held = [(criterion, each) for each in evidence for criterion in gate.criteria]
    decisions = decide_together(held)
    report = _report(run, found, tuple(decisions))
    return replace(report, warnings=(*report.warnings, *_rest_on_few(held, decisions)))


def _evidence(found: RunRows, row: Row, allowed: Allowed, old: Old[RunRows] | None) -> Evidence:
    own = evidence_of(found, row, allowed)
    return own if old is None else replace(own, old=evidence_since(old, found, row, own, allowed))


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


def _changed_model(found: RunRows) -> str:
    """That the model's file has another content by now than when it was measured; empty where it has not."""
    path, model = _model_path(found), found.measured
    if path is None or model is None:
        return ""
    try:
        status = path.stat()
        sha256 = _sha256(path, status.st_mtime_ns, status.st_size)
    except (OSError, Unreadable):
        return ""
    if sha256 == model.sha256:
        return ""
    return f"the model file {model.file} has another content by now than when it was measured; measure again"


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


def _report(run: str, found: RunRows, decisions: tuple[Decision, ...]) -> GateDecisions:
    model = found.measured
    gone = [] if model is None or _model_path(found) is not None else [f"the model {model.file} is not there any more"]
    return GateDecisions(run, found.model, decisions, found.elapsed_s, seconds_of(found.rows), (*gone, *found.warnings))


def seconds_of(rows: Sequence[Row]) -> dict[str, float]:
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
    own = sum(criterion.confidence is not None and not evidence.not_measured for criterion, evidence in held)
    of_confidence = own + others if own else 0
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


def not_in_new(old: str) -> str:
    """That the file ``old`` has a configuration which was not measured again."""
    return f"{old} has this configuration, the new result has not; measure it too"


def none_named(gate: Gate, run: str, names: Sequence[str]) -> tuple[Decision, ...]:
    """The decisions of a gate on a result that has none of its configurations; ``names`` are those that it has."""
    there_are = ", ".join(names) or "none"
    return nothing_shown(gate, f"no configuration is named {gate.configuration!r} in {run}; there are {there_are}")


def nothing_shown(gate: Gate, reason: str) -> tuple[Decision, ...]:
    """Each limit of a gate as ``not measured``."""
    return tuple(Decision(gate.configuration, limit.text, "not measured", reason=reason) for limit in gate.criteria)
