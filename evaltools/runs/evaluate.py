"""The steps of an evaluation, from the request to the typed result, which all tasks share: see :func:`evaluate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.engine.journal import Journal
from evaltools.engine.opening import comparison_pairs, describe_model, open_all
from evaltools.engine.run_folder import RunIdentity, digest_of_files, run_journal
from evaltools.known_tasks import with_task_figures
from evaltools.native.lines.evaluation import measured_tests
from evaltools.report.words.facts import load_in_words
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import SCHEMA_VERSION, ConfigurationResult, EvaluationResult
from evaltools.result.places import with_cpu_ratios
from evaltools.result_consistency import missing_records
from evaltools.runs.merging import (
    RunAtPlace,
    begin_run,
    changed_meanwhile,
    merged_run,
    require_same_inputs,
)
from evaltools.runs.one_pass import CHECKS, OPENING, Startup, run_pass
from evaltools.runs.opened import OpenConfigurations
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import Open
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.definition import Task
from evaltools.tasks.framework.faults import FAULTS, place_of, sentence
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.framework.sound_reference import unsound_in_words
from evaltools.tasks.framework.sums import (
    MeasuredPass,
    describe_execution,
    latency_comparisons,
    nothing_measured,
    sum_up,
    with_conditions,
)


def evaluate(
    request: TaskRequest,
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """Check everything, open the configurations, run the pass, compute the figures.

    Raises :class:`~evaltools.errors.UsageError` before any long work for a model or data that are wrong. Configurations
    that cannot run are ``not measured`` in the result. If no test configuration can run, the pass is not run.
    ``open_with`` opens a session; None opens each in a process of its own.
    """
    started_at = _now()
    with _run(request, observer, open_with) as run:
        result = _assemble(run.task_run, run.opened.described, run.measured, started_at, observer)
        changed = changed_meanwhile(run.journal, run.identity, run.task_run.identity())
        return replace(result, warnings=[*run.opened.warnings, *result.warnings, *changed])


def record(request: TaskRequest, observer: Observer) -> int:
    """Do what :func:`evaluate` does up to the figures, which are for :func:`merge` to compute from the run folder.

    Returns the exit code: whether there are records, and of every configuration.
    """
    with _run(request, observer) as run:
        observer.measured()
    if run.task_run.interrupted or run.measured.outcome.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    is_whole = all(entry.status == "measured" for entry in run.opened.described)
    return exit_codes.OK if is_whole else exit_codes.NOT_MEASURED


class _Run(Struct, frozen=True):
    """A run whose records are all in its journal."""

    task_run: TaskRun
    opened: OpenConfigurations
    measured: MeasuredPass
    journal: Journal
    identity: RunIdentity


@contextmanager
def _run(
    request: TaskRequest,
    observer: Observer,
    open_with: Open | None = None,
) -> Iterator[_Run]:
    """A run up to its figures; the journal is open in the context."""
    startup = Startup()
    task_run = TaskRun(request)
    opener = open_with or _in_own_process(request)
    with run_journal(request.execution.run_dir) as journal:
        identity = task_run.identity()
        require_same_inputs(journal, identity, request.execution.shard)
        startup.mark(CHECKS)
        with open_all(task_run.wanted, opener, request.allow_fallback) as entries:
            opened = OpenConfigurations.of(entries.values(), request.reference, task_run.other_models)
            observer.opened(opened.described)
            task_run.check_sessions(opened)
            startup.mark(OPENING)
            begin_run(journal, opened.described, identity, request.execution.shard, request.source)
            measured = nothing_measured(opened.sessions)
            if task_run.ready(opened, journal):
                measured = run_pass(task_run, opened, journal, observer, opener, startup)
                task_run.after_pass(measured, opened.entries, observer, opener)
        yield _Run(task_run, opened, measured, journal, identity)


def merge(
    request: TaskRequest,
    places: Sequence[RunAtPlace],
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """The result of the shards in run folders, as if one run had done them all.

    Each place did all shards; its folders have their records. Raises :class:`~evaltools.errors.UsageError` where they
    are not all the shards of this run, each finished.
    """
    started_at = _now()
    task_run = TaskRun(request)
    opener = open_with or _in_own_process(request)
    task_run.ready_to_merge(places)
    reference, options = task_run.request.reference_name, task_run.pass_options
    merged = merged_run(places, task_run.steps, task_run.identity(), reference, options)
    observer.opened(merged.described)
    task_run.after_merge(merged.measured, places, observer, opener)
    return _assemble(task_run, merged.described, merged.measured, started_at, observer)


def _in_own_process(request: TaskRequest) -> Open:
    return partial(open_isolated, timeout_s=request.execution.example_timeout_s, timeout_flag="--example_timeout")


def _assemble(
    task_run: TaskRun,
    described: Sequence[ConfigurationResult],
    measured: MeasuredPass,
    started_at: str,
    observer: Observer,
) -> EvaluationResult:
    observer.measured()
    outcome = measured.outcome.interrupted() if task_run.interrupted else measured.outcome
    judged = [task_run.judged(entry, measured.outcome) for entry in described]
    collected = task_run.collected(judged, measured.outcome)
    sums = sum_up(measured, comparison_pairs(judged), collected.own, collected.paired)
    concluded = collected.conclude([sums.with_figures(entry) for entry in judged], sums)
    configurations = [
        replace(_with_crashes(entry, measured), verdicts=concluded.verdicts.get(entry.name, []))
        for entry in with_conditions([*concluded.also, *map(sums.with_figures, judged)], sums)
    ]
    emulated = {entry.name for entry in configurations if entry.is_emulated}
    pictures = task_run.pictures
    is_traced = bool(measured.startup_seconds) and measured.not_traced is None and not measured.merged_shards
    result = EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task=task_run.name,
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped,
        examples_done=outcome.examples_done,
        environment=describe_environment(
            list(task_run.request.command),
            started_at,
            outcome.elapsed_s,
            task_run.request.execution.trace if is_traced else None,
            measured.load,
        ),
        model=describe_model(task_run.model),
        configurations=configurations,
        part=concluded.part,
        failed=sums.failed_examples(),
        warnings=[
            *_unsound_reference(task_run, measured),
            *task_run.warnings,
            *concluded.warnings,
            *(f"{entry.name}: not clean: {entry.not_clean}" for entry in configurations if entry.not_clean),
            *_busy(configurations, measured),
        ],
        execution=describe_execution(task_run.request.execution, measured),
        latency_comparisons=[each for each in latency_comparisons(sums) if not emulated & {each.baseline, each.other}],
        pictures_digest=digest_of_files(pictures) if pictures else "",
    )
    result = _complete_with_all_records(result, task_run.request.execution.shard.size_of(task_run.example_count))
    return _with_lines(task_run.task, with_cpu_ratios(with_task_figures(result)))


def _with_lines(task: Task, result: EvaluationResult) -> EvaluationResult:
    """The result with the lines that the task gives of each measured configuration; a warning where it fails."""
    if task.native is None:
        return result
    lines: dict[str, list[str]] = {}
    warnings = list(result.warnings)
    for entry in measured_tests(result):
        try:
            lines[entry.name] = [str(line) for line in task.native(result, entry)]
        except FAULTS as error:
            warnings.append(sentence(error, f"native gave no lines of {entry.name}", place_of(task.native)))
    return replace(result, part=replace(result.part, lines=lines), warnings=warnings)


def _complete_with_all_records(result: EvaluationResult, total: int) -> EvaluationResult:
    """The result, which is not complete where a record of one of so many examples is missing."""
    missing = missing_records(result)
    if result.examples_done != total:
        missing = f"there are records of {result.examples_done} of {total} examples"
    if not (result.complete and missing):
        return result
    warnings = [f"{missing}; the others are lost, so start the run anew in another folder", *result.warnings]
    return replace(result, complete=False, stopped="records are missing", warnings=warnings)


def _busy(configurations: Sequence[ConfigurationResult], measured: MeasuredPass) -> list[str]:
    """That the machine was busy, where there are latencies."""
    is_timed = any(entry.inference_latency is not None and entry.inference_latency.count for entry in configurations)
    return list(filter(None, [load_in_words(measured.load)])) if is_timed else []


def _unsound_reference(task_run: TaskRun, measured: MeasuredPass) -> list[str]:
    name = task_run.request.reference_name
    if name is None or not measured.unsound:
        return []
    return [unsound_in_words(name, measured.unsound, measured.outcome.examples_done)]


def _with_crashes(entry: ConfigurationResult, measured: MeasuredPass) -> ConfigurationResult:
    """The configuration with the crashes of its processes, and what else makes figures of it no clean pass."""
    crashes = Crashes(entry.crashes, entry.first_crash) + measured.crashes.get(entry.name, Crashes())
    entry = replace(entry, crashes=crashes.count, first_crash=crashes.first_reason)
    if entry.status == "not measured":
        return entry
    reasons = [f"{entry.crashes_of_runs}, at first because {entry.first_crash}"] if entry.crashes else []
    if measured.not_clean.get(entry.name, entry.first_crash) != entry.first_crash:
        reasons.append(measured.not_clean[entry.name])
    return replace(entry, not_clean="; ".join(reasons))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
