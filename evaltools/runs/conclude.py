"""The result of a run, as a function of its records: see :func:`conclude`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from evaltools.engine.ledger import PassOutcome
from evaltools.engine.opening import comparison_pairs, describe_model, with_crashes
from evaltools.engine.run_folder import digest_of_files
from evaltools.known_tasks import OWN, with_other_metrics
from evaltools.metrics.latency import LatencyRatio
from evaltools.report.page.sections.run import conditions, pipeline
from evaltools.report.words.facts import load_in_words
from evaltools.result.facts import Environment, FailedExample, Load
from evaltools.result.metrics import figures_of
from evaltools.result.places import reference_of, with_cpu_ratios
from evaltools.result.reading import missing_records
from evaltools.result.result import INVOKE_US, SHARD, Result, Row, warning, with_warnings
from evaltools.runs.recorded import Recorded
from evaltools.runs.task_run import TaskRun
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun, as_in_file, with_concluded
from evaltools.tasks.framework.concluding import concluded
from evaltools.tasks.framework.definition import Task, name_of
from evaltools.tasks.framework.faults import FAULTS, place_of, sentence
from evaltools.tasks.framework.request import folder_of_pictures
from evaltools.tasks.framework.sound_reference import unsound_in_words
from evaltools.tasks.framework.sums import (
    MeasuredPass,
    Pair,
    RunSums,
    describe_execution,
    judge_records,
    latency_ratios,
    sum_up,
    with_conditions,
)


def conclude(recorded: Recorded, environment: Environment) -> Result:
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
    sums = sum_up(measured, comparison_pairs(judged))
    of_records = _records_of(recorded, judged, sums)
    found = concluded(run.task, run.options, of_records, [*map(sums.with_figures, judged)], sums)
    rows = _rows(recorded, [*found.also, *judged], sums, environment)
    result = Result(
        command=run.name,
        subject=name_of(run.options.loaded.function) if run.name == OWN else "",
        environment=environment,
        models=[describe_model(run.model)],
        rows=rows,
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped or "",
        examples_done=outcome.examples_done,
        example_count=run.example_count,
        given=_given(run),
        failed=sums.failed_examples(),
        notes=[*map(warning, _warnings(recorded, found, rows, measured))],
    )
    result = _complete_with_all_records(with_concluded(result, found), recorded)
    result = _with_lines(run.task, with_other_metrics(result))
    execution = describe_execution(measured)
    how_it_went = as_in_file([conditions(result, execution), pipeline(result, execution)])
    return replace(result, blocks=[*result.blocks, *how_it_went])


def _rows(recorded: Recorded, judged: Sequence[Row], sums: RunSums, environment: Environment) -> list[Row]:
    """The rows with what is known of each whatever the task."""
    run, measured, whole = recorded.run, sums.measured, recorded.run.task.whole
    rows = with_conditions([*map(sums.with_figures, judged)], sums)
    rows = [_with_crashes(row, measured) for row in rows]
    if run.options.record_examples or (whole is not None and whole.keeps_times):
        rows = [replace(row, series=_times(row, sums)) for row in rows]
    emulated = {row.name for row in rows if row.is_emulated}
    ratios = {pair: each for pair, each in latency_ratios(sums).items() if not emulated & {*pair}}
    rows = [_with_ratio(row, rows, ratios) for row in rows]
    rows = with_cpu_ratios(rows, {pair: each.ratio for pair, each in ratios.items()})
    failed = sums.failed_examples()
    return [_with_first_failure(row, failed, environment.load) for row in rows]


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


def _warnings(recorded: Recorded, found: Concluded, rows: Sequence[Row], measured: MeasuredPass) -> list[str]:
    run, facts = recorded.run, recorded.facts
    return [
        *filter(None, [facts.not_traced]),
        *facts.warnings,
        *_unsound_reference(run, measured),
        *filter(None, [recorded.found.advice]),
        *recorded.found.checked.notes,
        *run.task.notes,
        *found.warnings,
        *(f"{row.name}: not clean: {row.not_clean}" for row in rows if row.not_clean),
        *_busy(rows, measured),
    ]


def _records_of(recorded: Recorded, judged: Sequence[Row], sums: RunSums) -> RecordsOfRun:
    run = recorded.run
    return RecordsOfRun(
        examples=run.task.examples,
        outcome=recorded.outcome,
        measured=[entry.name for entry in judged if entry.status == "measured"],
        pairs=list(sums.pairs),
        reference=run.request.reference_name,
        margin=run.options.margin,
        keeps_examples=run.options.record_examples,
        has_page=run.options.has_page,
        first_run_us=recorded.found.first_run_us,
        beside=recorded.beside,
        pictures=folder_of_pictures(run.options),
    )


def _times(entry: Row, sums: RunSums) -> dict[str, list[float]]:
    """The times that a latency sums up; none of shards, whose times have no common order."""
    has_times = entry.status == "measured" and not entry.is_emulated and not sums.measured.merged
    return {INVOKE_US: list(sums.invokes_us(entry.name))} if has_times and entry.name in sums.configurations else {}


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


def _busy(rows: Sequence[Row], measured: MeasuredPass) -> list[str]:
    """That the machine was busy, where there are latencies."""
    is_timed = any(row.latency is not None and row.latency.count for row in rows)
    return list(filter(None, [load_in_words(measured.facts.load)])) if is_timed else []


def _unsound_reference(run: TaskRun, measured: MeasuredPass) -> list[str]:
    name, count = run.request.reference_name, measured.facts.unsound
    return [unsound_in_words(name, count, measured.outcome.examples_done)] if name is not None and count else []


def _with_crashes(row: Row, measured: MeasuredPass) -> Row:
    """The row with the crashes of its processes, and what else makes figures of it no clean pass."""
    crashes = Crashes(row.crashes, row.first_crash) + measured.facts.crashes.get(row.name, Crashes())
    row = with_crashes(row, crashes)
    if row.status == "not measured":
        return row
    reasons = [f"{row.crashes_of_runs}, at first because {row.first_crash}"] if row.crashes else []
    not_clean = measured.facts.not_clean
    if not_clean.get(row.name, row.first_crash) != row.first_crash:
        reasons.append(not_clean[row.name])
    return replace(row, not_clean="; ".join(reasons))
