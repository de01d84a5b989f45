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
from evaltools.gates.evidence import NO_REFERENCE, Evidence, ended_early, fell_back, loads_of
from evaltools.gates.gate_file import BENCHMARK, Gate
from evaltools.gates.suite_result import SuiteEntry, SuiteResult, SuiteRow
from evaltools.gates.suite_rows import rows_of_benchmark
from evaltools.known_tasks import subject_of
from evaltools.metrics.metric import Figure, present
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.metrics import RUNS_FOR_P90, RUNS_FOR_P99, partitions_of, share_delegated
from evaltools.result.shown_figures import shown_figures


class OtherResult(Struct, frozen=True):
    """What gates need of a run that gave no result of an evaluation.

    ``task``, what that is called, and ``model`` are what patterns are compared with; all are empty where they are not
    known. ``found`` has the evidence on each configuration; ``failure`` says why there is none, also where the names
    of the configurations are not known. ``rows`` and the model's ``sha256`` are compared with an earlier result.
    """

    task: str
    subject: str
    model: str
    found: tuple[Evidence, ...] = ()
    failure: str = ""
    elapsed_s: float = 0.0
    warnings: Sequence[str] = ()
    rows: Sequence[SuiteRow] = ()
    sha256: str = ""


AnyResult = EvaluationResult | OtherResult
Result = EvaluationResult | BenchmarkResult | SuiteResult


def part_names(run: str, models: Sequence[str]) -> list[str]:
    """The names of the runs of one or several models.

    >>> part_names("fast", ["a/m.tflite"]), part_names("fast", ["a/m.tflite", "n.tflite"])
    (['fast'], ['fast/m', 'fast/n'])
    """
    if len(models) == 1:
        return [run]
    stems = [Path(model).stem for model in models]
    return [f"{run}/{stem if stems.count(stem) == 1 else model}" for stem, model in zip(stems, models, strict=True)]


def parts_of_benchmark(run: str, result: BenchmarkResult) -> dict[str, OtherResult]:
    """Each model of a benchmark, by the name of its run."""
    files = [model.file for model in result.models]
    return {
        name: OtherResult(
            BENCHMARK,
            BENCHMARK,
            Path(files[number]).name,
            tuple(evidence_of_row(row, result) for row in result.rows if row.model == number),
            elapsed_s=result.environment.elapsed_s,
            warnings=result.warnings,
            rows=rows_of_benchmark(result, number),
            sha256=result.models[number].sha256,
        )
        for number, name in enumerate(part_names(run, files))
    }


def part_of_suite(entry: SuiteEntry) -> AnyResult:
    """A model of a suite: its evaluation, else the rows of its benchmark, or why there are none."""
    if entry.evaluation is not None:
        return entry.evaluation
    found = tuple(_of_row(row) for row in entry.rows if row.role == "test")
    task = BENCHMARK if entry.command[1:2] == [BENCHMARK] else ""
    return OtherResult(
        task,
        task,
        Path(entry.model_file).name,
        found,
        entry.reason,
        entry.elapsed_s,
        rows=entry.rows,
        sha256=entry.model_sha256,
    )


def parts_of(run: str, result: Result) -> dict[str, AnyResult]:
    """What gates are compared with, by the name of the run or a part of it."""
    if isinstance(result, EvaluationResult):
        return {run: result}
    if isinstance(result, BenchmarkResult):
        return dict(parts_of_benchmark(run, result))
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


def evidence_of_row(row: BenchmarkRow, result: BenchmarkResult) -> Evidence:
    """The evidence in a benchmark on one of its rows, as limits need it."""
    obstacle = _obstacle(row.status == "measured", row.reason, row.fallback, result.stopped)
    if obstacle:
        return Evidence(row.name, obstacle, row.cannot_exist)
    figures: dict[str, Figure] = {
        "delegated_share": share_delegated(row.delegation),
        "partitions": partitions_of(row.delegates, row.delegation),
    }
    shown = shown_figures(row)
    times_us = {"latency_ms": shown.median_us}
    if row.figures is not None and shown.runs:
        percentiles = row.figures.percentiles
        times_us["latency_p90_ms"] = percentiles.get("90") if shown.runs >= RUNS_FOR_P90 else None
        times_us["latency_p99_ms"] = percentiles.get("99") if shown.runs >= RUNS_FOR_P99 else None
    times_us["load_ms"] = shown.load_us if shown.runs or shown.is_logged else None
    figures |= {name: value / 1000 for name, value in times_us.items() if value is not None}
    if shown.peak_mb is not None:
        figures["peak_memory_mb"] = shown.peak_mb
    no_first = "" if row.versus_first else NO_REFERENCE
    return Evidence(
        row.name,
        reference_not_measured=no_first,
        figures=present(figures),
        ratio=row.versus_first,
        loads=loads_of(result),
    )


def _of_row(row: SuiteRow) -> Evidence:
    obstacle = _obstacle(row.status == "measured", row.reason, row.fallback, None)
    if obstacle:
        return Evidence(row.configuration, obstacle)
    figures: dict[str, float | None] = {}
    if row.p50_us is not None:
        figures["latency_ms"] = row.p50_us / 1000
    if row.total_nodes:
        figures["delegated_share"] = (row.delegated_nodes or 0) / row.total_nodes
    return Evidence(row.configuration, figures=figures, loads={"": row.load})


def _obstacle(is_measured: bool, reason: str | None, fallback: str | None, stopped: str | None) -> str:
    """Why a configuration has no figures of its own."""
    if not is_measured:
        return reason or "not measured"
    if fallback is not None:
        return fell_back(fallback)
    return "" if stopped is None else ended_early(stopped)
