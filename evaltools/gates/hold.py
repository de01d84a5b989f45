"""Limits on everything that runs gave, also on those that gave no result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltools.gates.check import NO_OLD, GateDecisions, hold_gate, nothing_shown
from evaltools.gates.compare import Old
from evaltools.gates.decide import Decision
from evaltools.gates.gate_file import Gate
from evaltools.gates.run_rows import RunRows, parts_of
from evaltools.result.result import Result


def earlier_parts(run: str, old: Old[Result]) -> dict[str, Old[RunRows]]:
    """What limits ``vs old`` are compared with, by the same names."""
    return {name: old.of(part) for name, part in parts_of(run, old.result).items()}


def hold_all(
    gates: Sequence[Gate], results: Mapping[str, RunRows], old: Mapping[str, Old[RunRows]] = NO_OLD
) -> list[GateDecisions]:
    """Check every gate against every result that it is about; results are by the name of the run.

    ``old`` has the earlier results that runs are compared with, by the same names. A gate that is about none of the
    results is ``not measured``.
    """
    reports = []
    for gate in gates:
        about = {run: result for run, result in results.items() if _is_about(gate, run, result)}
        reports += [hold_gate(gate, run, found, old.get(run)) for run, found in about.items()]
        if not about:
            there_are = ", ".join(_described(*entry) for entry in results.items()) or "none"
            nothing = nothing_shown(gate, f"no result is about it; there are {there_are}")
            reports.append(GateDecisions(gate.run, gate.model, nothing))
    return reports


def unjudged(gates: Sequence[Gate], results: Mapping[str, RunRows]) -> list[GateDecisions]:
    """Decisions for the results that no gate is about: each is ``not measured``."""
    reports = []
    for run, result in results.items():
        if not any(_is_about(gate, run, result) for gate in gates):
            reason = f"no gate is about {_described(run, result)}; add one, or leave the result out"
            reports.append(
                GateDecisions(run, result.model, (Decision("*", "no limit", "not measured", reason=reason),))
            )
    return reports


def places_in(gate: Gate, results: Mapping[str, RunRows]) -> list[tuple[str, str]]:
    """The runs and configurations among these that a gate is about."""
    about = {run: [row.name for row in found.tests] for run, found in results.items() if _is_about(gate, run, found)}
    return [(run, configuration) for run, known in about.items() for configuration in gate.chosen(known)]


def _is_about(gate: Gate, run: str, found: RunRows) -> bool:
    if not found.task:
        return gate.is_about(run, gate.task, gate.task, gate.model)
    return gate.is_about(run, found.task, found.subject, found.model)


def _described(run: str, found: RunRows) -> str:
    return f"{run} ({found.subject} of {found.model})"
