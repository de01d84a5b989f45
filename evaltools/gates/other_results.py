"""Limits on benchmarks, on the rows of suites, and on runs that gave no result.

Of several models each is a run of its own, ``NAME/MODEL``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.check import NO_OLD, GateDecisions, decide_together, hold_gate, none_named, nothing_shown
from evaltools.gates.compare import Old
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import NO_REFERENCE, Evidence, ended_early, fell_back
from evaltools.gates.gate_file import BENCHMARK, Gate
from evaltools.gates.suite_result import SuiteEntry, SuiteResult
from evaltools.known_tasks import subject_of
from evaltools.metrics.latency import LatencyRatio
from evaltools.metrics.series import Withheld
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.figure import Figure
from evaltools.result.result import Result as Rows
from evaltools.result.result import Row


class OtherResult(Struct, frozen=True):
    """What gates need of a run that gave no result of an evaluation.

    ``task``, what that is called, and ``model`` are what patterns are compared with; all are empty where they are not
    known. ``rows`` are its configurations; ``failure`` says why there is none, also where their names are not known.
    The model's ``sha256`` is compared with that of an earlier result. ``stopped`` says why it ended early.
    """

    task: str
    subject: str
    model: str
    rows: Sequence[Row] = ()
    failure: str = ""
    elapsed_s: float = 0.0
    warnings: Sequence[str] = ()
    sha256: str = ""
    stopped: str = ""

    @property
    def found(self) -> list[Evidence]:
        """The evidence on each configuration."""
        return [evidence_of_row(row, self.stopped) for row in self.rows if row.role == "test"]


AnyResult = EvaluationResult | OtherResult
Result = EvaluationResult | Rows | SuiteResult


def part_names(run: str, models: Sequence[str]) -> list[str]:
    """The names of the runs of one or several models.

    >>> part_names("fast", ["a/m.tflite"]), part_names("fast", ["a/m.tflite", "n.tflite"])
    (['fast'], ['fast/m', 'fast/n'])
    """
    if len(models) == 1:
        return [run]
    stems = [Path(model).stem for model in models]
    return [f"{run}/{stem if stems.count(stem) == 1 else model}" for stem, model in zip(stems, models, strict=True)]


def parts_of_rows(run: str, result: Rows) -> dict[str, OtherResult]:
    """Each model of a result, by the name of its run."""
    names = part_names(run, [model.file for model in result.models])
    return {
        name: OtherResult(
            result.command,
            result.command,
            Path(model.file).name,
            [row for row in result.rows if row.model == number],
            elapsed_s=result.environment.elapsed_s,
            warnings=result.warnings,
            sha256=model.sha256,
            stopped=result.stopped,
        )
        for number, (name, model) in enumerate(zip(names, result.models, strict=True))
    }


def part_of_suite(entry: SuiteEntry) -> AnyResult:
    """A model of a suite: its evaluation, else the rows of its benchmark, or why there are none."""
    if entry.evaluation is not None:
        return entry.evaluation
    task = BENCHMARK if entry.command[1:2] == [BENCHMARK] else ""
    return OtherResult(
        task,
        task,
        Path(entry.model_file).name,
        entry.rows,
        entry.reason,
        entry.elapsed_s,
        sha256=entry.model_sha256,
    )


def parts_of(run: str, result: Result) -> dict[str, AnyResult]:
    """What gates are compared with, by the name of the run or a part of it."""
    if isinstance(result, EvaluationResult):
        return {run: result}
    if isinstance(result, Rows):
        return dict(parts_of_rows(run, result))
    return {f"{run}/{each.model}/{each.job}": part_of_suite(each) for each in result.entries}


def earlier_evaluations(run: str, old: Old[Result]) -> dict[str, Old[EvaluationResult]]:
    """What limits ``vs old`` are compared with, by the same names."""
    parts = parts_of(run, old.result)
    return {name: old.of(part) for name, part in parts.items() if isinstance(part, EvaluationResult)}


def hold_all(
    gates: Sequence[Gate], results: Mapping[str, AnyResult], old: Mapping[str, Old[EvaluationResult]] = NO_OLD
) -> list[GateDecisions]:
    """Check every gate against every result that it is about; results are by the name of the run.

    ``old`` has the earlier results that runs are compared with, by the same names. A gate that is about none of the
    results is ``not measured``.
    """
    reports = []
    for gate in gates:
        about = {run: result for run, result in results.items() if _is_about(gate, run, result)}
        for run, result in about.items():
            if isinstance(result, OtherResult):
                reports.append(_held(gate, run, result))
            else:
                reports.append(hold_gate(gate, run, result, old.get(run)))
        if not about:
            there_are = ", ".join(_described(*entry) for entry in results.items()) or "none"
            nothing = nothing_shown(gate, f"no result is about it; there are {there_are}")
            reports.append(GateDecisions(gate.run, gate.model, nothing))
    return reports


def unjudged(gates: Sequence[Gate], results: Mapping[str, AnyResult]) -> list[GateDecisions]:
    """Decisions for the results that no gate is about: each is ``not measured``."""
    reports = []
    for run, result in results.items():
        if not any(_is_about(gate, run, result) for gate in gates):
            reason = f"no gate is about {_described(run, result)}; add one, or leave the result out"
            reports.append(
                GateDecisions(run, model_name(result), (Decision("*", "no limit", "not measured", reason=reason),))
            )
    return reports


def places_in(gate: Gate, results: Mapping[str, AnyResult]) -> list[tuple[str, str]]:
    """The runs and configurations among these that a gate is about."""
    names = {
        run: [evidence.configuration for evidence in result.found]
        if isinstance(result, OtherResult)
        else [entry.name for entry in result.configurations if entry.role == "test"]
        for run, result in results.items()
        if _is_about(gate, run, result)
    }
    return [(run, configuration) for run, known in names.items() for configuration in gate.chosen(known)]


def _is_about(gate: Gate, run: str, result: AnyResult) -> bool:
    if isinstance(result, OtherResult) and not result.task:
        return gate.is_about(run, gate.task, gate.task, gate.model)
    return gate.is_about(run, result.task, _subject(result), model_name(result))


def _subject(result: AnyResult) -> str:
    return result.subject if isinstance(result, OtherResult) else subject_of(result)


def model_name(result: AnyResult) -> str:
    """The name of the model's file."""
    return result.model if isinstance(result, OtherResult) else Path(result.model.file).name


def _described(run: str, result: AnyResult) -> str:
    return f"{run} ({_subject(result)} of {model_name(result)})"


def _held(gate: Gate, run: str, result: OtherResult) -> GateDecisions:
    named = [replace(evidence, allowed=gate.allowed) for evidence in result.found if gate.names(evidence.configuration)]
    held = [(criterion, evidence) for evidence in named for criterion in gate.criteria]
    if held:
        decisions = tuple(decide_together(held))
    elif result.failure:
        decisions = nothing_shown(gate, result.failure)
    else:
        decisions = none_named(gate, run, [evidence.configuration for evidence in result.found])
    return GateDecisions(run, result.model, decisions, result.elapsed_s)


def evidence_of_row(row: Row, stopped: str = "") -> Evidence:
    """The evidence in a row, as limits need it; ``stopped`` says why its result ended early."""
    obstacle = _obstacle(row, stopped)
    if obstacle:
        return Evidence(row.name, obstacle, row.cannot_exist)
    ratio = row.figures.get("latency_ratio")
    return Evidence(
        row.name,
        reference_not_measured=NO_REFERENCE if ratio is None else "",
        figures={name: figure for name, figure in row.figures.items() if figure is not ratio},
        ratio=None if ratio is None else ratio_of(ratio, row),
        loads={"": row.load},
    )


def ratio_of(figure: Figure, row: Row) -> LatencyRatio:
    """A latency ratio, of as many processes as there were rounds where it has an interval."""
    processes = row.counts.get("rounds", 1) if figure.interval is not None else 1
    withheld: Withheld | None = "jumped" if figure.withheld == "jumped" else "few" if figure.withheld else None
    return LatencyRatio(figure.count or 0, figure.value or 0.0, figure.interval, processes, withheld)


def _obstacle(row: Row, stopped: str) -> str:
    """Why a configuration has no figures of its own."""
    if row.status != "measured":
        return row.reason or "not measured"
    if row.fallback:
        return fell_back(row.fallback)
    return ended_early(stopped) if stopped else ""
