"""The result of a run, as a function of its records: see :func:`conclude`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from evaltools.engine.opening import comparison_pairs, describe_model
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import digest_of_files
from evaltools.known_tasks import with_other_metrics
from evaltools.metrics.latency import summarise_latency
from evaltools.native.lines.evaluation import measured_tests
from evaltools.report.words.facts import load_in_words
from evaltools.result.evaluation import INVOKE_US, SCHEMA_VERSION, ConfigurationResult, Environment, EvaluationResult
from evaltools.result.places import with_cpu_ratios
from evaltools.result_consistency import missing_records
from evaltools.runs.recorded import Recorded
from evaltools.runs.task_run import TaskRun
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.collecting import RecordsOfRun, with_concluded
from evaltools.tasks.framework.concluding import concluded
from evaltools.tasks.framework.definition import Task, name_of
from evaltools.tasks.framework.faults import FAULTS, place_of, sentence
from evaltools.tasks.framework.request import folder_of_pictures
from evaltools.tasks.framework.sound_reference import unsound_in_words
from evaltools.tasks.framework.sums import (
    MeasuredPass,
    RunSums,
    describe_execution,
    judge_records,
    latency_comparisons,
    sum_up,
    with_conditions,
)


def conclude(recorded: Recorded, environment: Environment) -> EvaluationResult:
    """The result of everything that was recorded; nothing is run, read or written.

    So it is the same for one run, for its shards, for one that was resumed, and for records from elsewhere. A result is
    complete where there is a record, or a failure, of each example and configuration. ``environment`` is where the
    records were made, or put together.
    """
    run, facts, outcome = recorded.run, recorded.facts, recorded.outcome
    if facts.interrupted or not facts.is_over:
        outcome = outcome.interrupted()
    measured = MeasuredPass(recorded.outcome, facts, recorded.merged)
    judged = [_judged(run, entry, recorded) for entry in recorded.described]
    pairs = comparison_pairs(judged)
    sums = sum_up(measured, pairs)
    of_records = _records_of(recorded, judged, pairs)
    found = concluded(run.task, run.options, of_records, [sums.with_figures(entry) for entry in judged], sums)
    whole = run.task.whole
    keeps_times = run.options.record_examples or (whole is not None and whole.keeps_times)
    configurations = [
        replace(_with_crashes(entry, measured), series=_times(entry, sums) if keeps_times else {})
        for entry in with_conditions([*found.also, *map(sums.with_figures, judged)], sums)
    ]
    emulated = {entry.name for entry in configurations if entry.is_emulated}
    pictures = run.pictures
    result = EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task=run.name,
        subject=name_of(run.options.loaded.function),
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped,
        examples_done=outcome.examples_done,
        example_count=run.example_count,
        environment=environment,
        model=describe_model(run.model),
        configurations=configurations,
        failed=sums.failed_examples(),
        warnings=[
            *facts.warnings,
            *_unsound_reference(run, measured),
            *filter(None, [recorded.found.advice]),
            *recorded.found.checked.notes,
            *run.task.notes,
            *found.warnings,
            *(f"{entry.name}: not clean: {entry.not_clean}" for entry in configurations if entry.not_clean),
            *_busy(configurations, measured),
        ],
        execution=describe_execution(run.request.execution, measured),
        latency_comparisons=[each for each in latency_comparisons(sums) if not emulated & {each.baseline, each.other}],
        pictures_digest=digest_of_files(pictures) if pictures else "",
        preprocessing_latency=summarise_latency(outcome.preprocessing_us),
    )
    result = with_concluded(result, found)
    result = _complete_with_all_records(result, recorded)
    return _with_lines(run.task, with_cpu_ratios(with_other_metrics(result)))


def _records_of(
    recorded: Recorded, judged: Sequence[ConfigurationResult], pairs: Sequence[tuple[str, str]]
) -> RecordsOfRun:
    run = recorded.run
    return RecordsOfRun(
        examples=run.task.examples,
        outcome=recorded.outcome,
        measured=[entry.name for entry in judged if entry.status == "measured"],
        pairs=pairs,
        reference=run.request.reference_name,
        margin=run.options.margin,
        keeps_examples=run.options.record_examples,
        has_page=run.options.has_page,
        first_run_us=recorded.found.first_run_us,
        beside=recorded.beside,
        pictures=folder_of_pictures(run.options),
    )


def _times(entry: ConfigurationResult, sums: RunSums) -> dict[str, list[float]]:
    """The times that a latency sums up; none of shards, whose times have no common order."""
    has_times = entry.status == "measured" and not entry.is_emulated and not sums.measured.merged
    return {INVOKE_US: list(sums.invokes_us(entry.name))} if has_times and entry.name in sums.configurations else {}


def _judged(run: TaskRun, described: ConfigurationResult, recorded: Recorded) -> ConfigurationResult:
    """The configuration, ``not measured`` where its records give no figures."""
    outcome, trouble = recorded.outcome, recorded.found.trouble
    judged = judge_records(described, outcome)
    if trouble and judged.status != described.status:
        return replace(judged, reason=trouble)
    whole, reference = run.task.whole, run.request.reference_name
    if whole is None or not whole.against_reference or judged.role == "reference":
        return judged
    if judged.status == "not measured" or reference is None:
        return judged
    if reference not in outcome.records or _have_both(outcome, reference, judged.name):
        return judged
    reason = f"the reference has no outputs to compare with{_why_first_failed(outcome)}"
    return replace(judged, status="not measured", reason=judged.reason or reason)


def _have_both(outcome: PassOutcome[Any], reference: str, name: str) -> bool:
    """Whether there is an example that the reference and another configuration finished."""
    both = (reference, name)
    return any(
        all(each in together and together[each].failure is None for each in both) for together in outcome.by_example()
    )


def _why_first_failed(outcome: PassOutcome[Any]) -> str:
    """Why the first example failed, in the first configuration in which it did; empty where it failed in none."""
    first = [next(iter(records)).failure for records in outcome.records.values() if len(records)]
    reasons = [failure.reason for failure in first if failure is not None]
    return f": {reasons[0]}" if reasons else ""


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
    return replace(result, lines=lines, warnings=warnings)


def _complete_with_all_records(result: EvaluationResult, recorded: Recorded) -> EvaluationResult:
    """The result, which is not complete where a record of an example is missing; what is damaged is said."""
    total = len(recorded.examples)
    missing = missing_records(result)
    if result.examples_done != total:
        missing = f"there are records of {result.examples_done} of {total} examples"
    is_whole = not (result.complete and missing)
    after = "what stood there was done again" if is_whole else "evaltools resume does again what stood there"
    damage = [f"{text}; {after}" for text in recorded.damage]
    if is_whole:
        return replace(result, warnings=[*damage, *result.warnings])
    warnings = [f"{missing}; evaltools resume does the others", *damage, *result.warnings]
    return replace(result, complete=False, stopped="records are missing", warnings=warnings)


def _busy(configurations: Sequence[ConfigurationResult], measured: MeasuredPass) -> list[str]:
    """That the machine was busy, where there are latencies."""
    is_timed = any(entry.inference_latency is not None and entry.inference_latency.count for entry in configurations)
    return list(filter(None, [load_in_words(measured.facts.load)])) if is_timed else []


def _unsound_reference(run: TaskRun, measured: MeasuredPass) -> list[str]:
    name, count = run.request.reference_name, measured.facts.unsound
    return [unsound_in_words(name, count, measured.outcome.examples_done)] if name is not None and count else []


def _with_crashes(entry: ConfigurationResult, measured: MeasuredPass) -> ConfigurationResult:
    """The configuration with the crashes of its processes, and what else makes figures of it no clean pass."""
    crashes = Crashes(entry.crashes, entry.first_crash) + measured.facts.crashes.get(entry.name, Crashes())
    entry = replace(entry, crashes=crashes.count, first_crash=crashes.first_reason)
    if entry.status == "not measured":
        return entry
    reasons = [f"{entry.crashes_of_runs}, at first because {entry.first_crash}"] if entry.crashes else []
    not_clean = measured.facts.not_clean
    if not_clean.get(entry.name, entry.first_crash) != entry.first_crash:
        reasons.append(not_clean[entry.name])
    return replace(entry, not_clean="; ".join(reasons))
