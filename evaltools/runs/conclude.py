"""The result of a run, as a function of its records: see :func:`conclude`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.facts import PassFacts
from evaltools.engine.ledger import PassOutcome
from evaltools.engine.opening import comparison_pairs, describe_model, with_crashes
from evaltools.engine.quiet_latency import QuietTime, QuietTimes, invoke_times, time_of
from evaltools.engine.run_folder import digest_of_files
from evaltools.engine.steps import Record
from evaltools.known_tasks import OWN, with_other_metrics
from evaltools.metrics.latency import LatencyRatio, drift, latency_ratio, summarise_latency
from evaltools.report.execution import conditions, pipeline
from evaltools.report.words.facts import drift_in_words, load_in_words
from evaltools.result.facts import Environment, FailedExample, Load
from evaltools.result.metrics import figures_of, latency_figures
from evaltools.result.places import reference_of, with_cpu_ratios
from evaltools.result.result import (
    DRIFT,
    INVOKE,
    INVOKE_US,
    PREPROCESSING,
    SHARD,
    Result,
    Row,
    missing_records,
    warning,
    with_warnings,
)
from evaltools.runs.recorded import Recorded
from evaltools.runs.task_run import TaskRun
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.collecting import Concluded, Pair, RecordsOfRun, as_in_file, with_concluded
from evaltools.tasks.framework.concluding import concluded
from evaltools.tasks.framework.definition import Task, name_of
from evaltools.tasks.framework.faults import FAULTS, place_of, sentence
from evaltools.tasks.framework.sound_reference import unsound_in_words


def conclude(recorded: Recorded, environment: Environment) -> Result:
    """The result of everything that was recorded; nothing is run, read or written.

    So it is the same for one run, for its shards, for one that was resumed, and for records from elsewhere. A result is
    complete where there is a record, or a failure, of each example and configuration. ``environment`` is where the
    records were made, or put together.
    """
    run, facts, outcome = recorded.run, recorded.facts, recorded.outcome
    if facts.interrupted or not facts.is_over:
        outcome = outcome.interrupted()
    judged = [_judged(run, entry, recorded) for entry in recorded.described]
    sums = sum_up(recorded.outcome, facts.quiet)
    failed = failed_examples(sums)
    of_records = _records_of(recorded, judged, sums)
    counted = with_sums(judged, sums, recorded.outcome, facts, is_one_series=not recorded.merged)
    found = concluded(run.task, run.request, of_records, counted)
    rows = _rows(recorded, [*found.also, *counted], of_records, failed, environment)
    result = Result(
        command=run.name,
        subject=name_of(run.request.loaded.function) if run.name == OWN else "",
        environment=environment,
        models=[describe_model(run.model)],
        rows=rows,
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped or "",
        examples_done=outcome.examples_done,
        example_count=run.example_count,
        given=_given(run),
        failed=failed,
        device_run=facts.device_run,
        notes=[*map(warning, _warnings(recorded, found, rows))],
    )
    result = _complete_with_all_records(with_concluded(result, found), recorded)
    result = _with_lines(run.task, with_other_metrics(result))
    how_it_went = as_in_file([conditions(result, facts.execution), pipeline(result, facts.execution)])
    return replace(result, blocks=[*result.blocks, *how_it_went])


class Sums(Struct, frozen=True):
    """What the records of a configuration sum up to: the examples that it ``finished``, its ``failures``, its times.

    The times are those of the quiet phase if there was one.
    """

    finished: int
    failures: list[FailedExample]
    times: Sequence[QuietTime]


def sum_up(outcome: PassOutcome[Any], quiet: QuietTimes | None = None) -> dict[str, Sums]:
    """The sums by configuration."""
    return {
        name: _sums_of(records, outcome.names, None if quiet is None else quiet.taken.get(name, []))
        for name, records in outcome.records.items()
    }


def _sums_of(records: Iterable[Record[Any]], names: Sequence[str], quiet: Sequence[QuietTime] | None) -> Sums:
    finished, failures, times = 0, [], []
    for record in records:
        if quiet is None and record.invokes_us:
            times.append(time_of(record))
        if record.failure is None:
            finished += 1
        else:
            configuration = None if record.failure.stage == "input" else record.configuration
            name = names[record.example]
            failures.append(FailedExample(name, configuration, record.failure.stage, record.failure.reason))
    return Sums(finished, failures, times if quiet is None else quiet)


def failed_examples(sums: Mapping[str, Sums]) -> list[FailedExample]:
    """Each failure once: an input that cannot be made fails for all configurations together."""
    failed: dict[tuple[str, str | None], FailedExample] = {}
    for own in sums.values():
        for failure in own.failures:
            failed.setdefault((failure.example, failure.configuration), failure)
    return list(failed.values())


def with_sums(
    rows: Sequence[Row],
    sums: Mapping[str, Sums],
    outcome: PassOutcome[Any],
    facts: PassFacts,
    is_one_series: bool = True,
) -> list[Row]:
    """The rows with how many examples each finished or failed, and where it has figures its times and memory.

    Shards are not ``is_one_series``: their times have no common order, and so no trend, and their memory was that of
    other hosts.
    """
    preprocessing = summarise_latency(outcome.preprocessing_us).native

    def with_own(row: Row) -> Row:
        own = sums.get(row.name)
        if own is None:
            return row
        figures = row.figures | figures_of({"failed_examples": len(own.failures)})
        if row.status == "not measured":
            return replace(row, figures=figures)
        figures |= figures_of({"examples": own.finished})
        times = {PREPROCESSING: preprocessing, **row.times}
        if row.is_emulated:
            return replace(row, figures=figures, times=times)
        invokes_us = invoke_times(own.times)
        latency = summarise_latency(invokes_us)
        row = replace(row, figures=figures | latency_figures(latency), times={INVOKE: latency.native, **times})
        if not is_one_series:
            return row
        peak_kb = facts.peak_memory_kb.get(row.name)
        memory = figures_of({"peak_memory_mb": None if peak_kb is None else round(peak_kb / 1024, 1)})
        trend = drift_in_words(drift(invokes_us))
        return replace(row, figures=row.figures | memory, texts=row.texts | ({DRIFT: trend} if trend else {}))

    return [with_own(row) for row in rows]


def latency_ratios(times: Mapping[str, Sequence[QuietTime]], pairs: Iterable[Pair]) -> dict[Pair, LatencyRatio]:
    """How many times as long the second configuration of each pair takes, on the examples that were timed on both."""
    found = {}
    for baseline, other in pairs:
        theirs = {each.example: each for each in times.get(other, ())}
        both = [(each, theirs[each.example]) for each in times.get(baseline, ()) if each.example in theirs]
        before, after = ([each[side].invokes_us[0] for each in both] for side in (0, 1))
        ratio = latency_ratio(before, after, [(one.process, another.process) for one, another in both])
        if ratio is not None:
            found[baseline, other] = ratio
    return found


def _rows(
    recorded: Recorded,
    rows: Sequence[Row],
    run: RecordsOfRun,
    failed: Sequence[FailedExample],
    environment: Environment,
) -> list[Row]:
    """The rows with what is known of each whatever the task."""
    task, request = recorded.run.task, recorded.run.request
    rows = [_with_crashes(row, recorded.facts) for row in rows]
    if not recorded.merged and (request.record_examples or (task.whole is not None and task.whole.keeps_times)):
        rows = [_with_times(row, run.times) for row in rows]
    emulated = {row.name for row in rows if row.is_emulated}
    ratios = latency_ratios(run.times, (pair for pair in run.pairs if not emulated & {*pair}))
    rows = [_with_ratio(row, rows, ratios) for row in rows]
    rows = with_cpu_ratios(rows, {pair: each.ratio for pair, each in ratios.items()})
    return [_with_first_failure(row, failed, environment.load) for row in rows]


def _with_times(row: Row, times: Mapping[str, Sequence[QuietTime]]) -> Row:
    """The row with the times that its latency sums up; shards have none, whose times have no common order."""
    has_times = row.status == "measured" and not row.is_emulated and row.name in times
    return replace(row, series={INVOKE_US: invoke_times(times[row.name])} if has_times else {})


Ratios = Mapping[Pair, LatencyRatio]
"""How many times as long the second of two configurations takes."""


def _with_ratio(row: Row, rows: Sequence[Row], ratios: Ratios) -> Row:
    """The row with its time by that of the reference, on the examples that both ran."""
    reference = reference_of(row, rows)
    found = None if reference is None else ratios.get((reference.name, row.name))
    if found is None:
        return row
    figure = figures_of({"latency_ratio": found.ratio})["latency_ratio"]
    known = replace(figure, interval=found.interval, withheld=found.withheld or "", count=found.pairs)
    counts = row.counts | {"processes": found.processes}
    return replace(row, figures=row.figures | {"latency_ratio": known}, counts=counts)


def _with_first_failure(row: Row, failed: Sequence[FailedExample], load: Load | None) -> Row:
    """The row with its first example without an answer, and what else the machine did while it was timed."""
    first = next((each for each in failed if each.configuration in (row.name, None)), None)
    texts = {} if first is None else {"first_failed": first.example, "first_failure": first.reason}
    return replace(row, texts=row.texts | texts, load=None if row.latency is None else load)


def _given(run: TaskRun) -> dict[str, str]:
    """What decides the figures beside the task's own facts."""
    pictures, shard = run.pictures, run.request.execution.shard
    given = {"pictures": digest_of_files(pictures)[:12]} if pictures else {}
    return given | ({SHARD: str(shard)} if shard.count > 1 else {})


def _warnings(recorded: Recorded, found: Concluded, rows: Sequence[Row]) -> list[str]:
    run, facts, reference = recorded.run, recorded.facts, recorded.run.request.reference_name
    is_timed = any(row.latency is not None and row.latency.count for row in rows)
    unsound = ""
    if reference is not None and facts.unsound:
        unsound = unsound_in_words(reference, facts.unsound, recorded.outcome.examples_done)
    found_by_all = [
        facts.not_traced,
        *facts.warnings,
        unsound,
        recorded.found.advice,
        *recorded.found.checked.notes,
        *run.task.notes,
        *found.warnings,
        *(f"{row.name}: not clean: {row.not_clean}" for row in rows if row.not_clean),
        load_in_words(facts.load) if is_timed else "",
    ]
    return [text for text in found_by_all if text]


def _records_of(recorded: Recorded, judged: Sequence[Row], sums: Mapping[str, Sums]) -> RecordsOfRun:
    run = recorded.run
    return RecordsOfRun(
        examples=run.task.examples,
        outcome=recorded.outcome,
        measured=[entry.name for entry in judged if entry.status == "measured"],
        pairs=comparison_pairs(judged),
        times={name: own.times for name, own in sums.items()},
        reference=run.request.reference_name,
        margin=run.request.margin,
        keeps_examples=run.request.record_examples,
        first_run_us=recorded.found.first_run_us,
        beside=recorded.beside,
        pictures=run.request.folder_of_pictures,
    )


def _judged(run: TaskRun, described: Row, recorded: Recorded) -> Row:
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


def _with_lines(task: Task, result: Result) -> Result:
    """The result with the lines that the task gives of each measured configuration; a warning where it fails."""
    if task.native is None:
        return result
    lines: dict[str, list[str]] = {}
    warnings = []
    for row in result.measured_tests:
        try:
            lines[row.name] = [str(line) for line in task.native(result, row)]
        except FAULTS as error:
            warnings.append(sentence(error, f"native gave no lines of {row.name}", place_of(task.native)))
    rows = [replace(row, lines=lines.get(row.name, [])) for row in result.rows]
    return with_warnings(replace(result, rows=rows), warnings)


def _complete_with_all_records(result: Result, recorded: Recorded) -> Result:
    """The result, which is not complete where a record of an example is missing; what is damaged is said."""
    total = len(recorded.examples)
    missing = missing_records(result)
    if result.examples_done != total:
        missing = f"there are records of {result.examples_done} of {total} examples"
    is_whole = not (result.complete and missing)
    after = "what stood there was done again" if is_whole else "evaltools resume does again what stood there"
    damage = [warning(f"{text}; {after}") for text in recorded.damage]
    if is_whole:
        return replace(result, notes=[*damage, *result.notes])
    notes = [warning(f"{missing}; evaltools resume does the others"), *damage, *result.notes]
    return replace(result, complete=False, stopped="records are missing", notes=notes)


def _with_crashes(row: Row, facts: PassFacts) -> Row:
    """The row with the crashes of its processes, and what else makes figures of it no clean pass."""
    crashes = Crashes(row.crashes, row.first_crash) + facts.crashes.get(row.name, Crashes())
    row = with_crashes(row, crashes)
    if row.status == "not measured":
        return row
    reasons = [f"{row.crashes_of_runs}, at first because {row.first_crash}"] if row.crashes else []
    not_clean = facts.not_clean
    if not_clean.get(row.name, row.first_crash) != row.first_crash:
        reasons.append(not_clean[row.name])
    return replace(row, not_clean="; ".join(reasons))


def judge_records(described: Row, outcome: PassOutcome[Any]) -> Row:
    """The configuration, ``not measured`` where its records give no figures."""
    name = described.name
    if described.status == "not measured":
        return described
    if name not in outcome.given_up and any(record.failure is None for record in outcome.records[name]):
        return described
    return replace(described, status="not measured", reason=described.reason or _why_no_figures(outcome, described))


def _why_no_figures(outcome: PassOutcome[Any], described: Row) -> str:
    name = described.name
    if name in outcome.given_up:
        end = outcome.given_up[name]
        return f"its process died or hung too often in a row (--max_crashes); the last time: {end.reason}"
    if outcome.examples_done:
        first = next((record.failure for record in outcome.records[name] if record.failure is not None), None)
        return f"not one example succeeded{f': {first.reason}' if first else ''}"
    if outcome.stopped:
        return "no example was finished"
    is_reference = described.role == "reference"
    return "not run, since no other configuration can" if is_reference else "there is no example"
