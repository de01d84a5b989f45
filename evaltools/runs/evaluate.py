"""From a request to the result of a task: here, on a cluster, or from records that exist; see :func:`measure`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.command import TaskCommand
from evaltools.configuration import Configuration
from evaltools.engine.facts import PASS, PassFacts
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.ledger import PassOutcome
from evaltools.engine.opening import OpenConfigurations, Opened, open_all
from evaltools.engine.run_folder import require_same_files, run_journal
from evaltools.errors import EvaltoolsError
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.result.environment import describe_environment
from evaltools.result.facts import Environment
from evaltools.result.host_names import with_host_names
from evaltools.result.result import Result
from evaltools.runs.conclude import conclude
from evaltools.runs.finished import FinishedShards
from evaltools.runs.first_look import FOUND, check_sessions, first_look
from evaltools.runs.identity import RunAtPlace, begin_run, changed_meanwhile
from evaltools.runs.one_pass import CHECKS, OPENING, Startup, run_pass
from evaltools.runs.recorded import Recorded, recorded_here, recorded_in, require_all
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import OpenProcess
from evaltools.runtime.process.ahead import OpenedAhead
from evaltools.runtime.process.isolated import open_isolated
from evaltools.tasks.framework import read
from evaltools.tasks.framework.beside import AfterPass, Beside, beside_fact, changes_of_other_kernels
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.framework.steps import steps_of

if TYPE_CHECKING:
    from evaltools.adb.watch import Watch


def measure(
    task: TaskCommand,
    request: Request,
    observer: Observer,
    shards: FinishedShards | None = None,
    ahead: OpenedAhead | None = None,
) -> Result:
    """Evaluate here or on a cluster, as the request says, or take the records from finished ``shards``.

    ``ahead`` may have sessions that are open already.

    Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong, and for shards
    that are not all those of this run, each finished.
    """
    if request.options.texts("at"):
        from evaltools.runs.at_devices import on_devices

        request = on_devices(request)
    if shards is None and request.options.text("executor") == "ray":
        from evaltools.runs.on_ray import shards_on_ray

        with shards_on_ray(task, request, partial(observer.progress, "shards"), carry_out_range) as folders:
            return measure(task, request.without_run_options(), observer, FinishedShards.of_one_run(folders))
    if shards is None and request.options.texts("at"):
        from evaltools.runs.at_places import records_at

        with records_at(task, request, observer) as (wanted, found):
            return measure(task, wanted, observer, found)
    asked = read(task, request)
    if shards is None:
        return evaluate(asked, observer, _in_own_process(asked, ahead))
    result = shards.complete(merge(asked, shards.places, observer), asked.configurations)
    return with_host_names(result, shards.host_names)


def evaluate(
    request: TaskRequest,
    observer: Observer,
    open_with: OpenProcess | None = None,
) -> Result:
    """Check everything, open the configurations, run the pass, conclude from its records.

    Raises :class:`~evaltools.errors.UsageError` before any long work for a model or data that are wrong. Configurations
    that cannot run are ``not measured`` in the result. If no test configuration can run, the pass is not run.
    ``open_with`` opens a session; None opens each in a process of its own.
    """
    startup, run = Startup(), TaskRun(request)
    with run_journal(request.execution.run_dir) as journal:
        environment = _open_and_record(run, journal, observer, open_with or _in_own_process(request), startup)
        recorded = recorded_here(run, journal)
    result, finish = conclude(recorded, environment), recorded.run.task.finish
    return result if finish is None else replace(result, not_saved=finish(result))


def record(request: TaskRequest, observer: Observer) -> int:
    """Do what :func:`evaluate` does up to the figures, which are for :func:`merge` to conclude from the run folder.

    Returns the exit code: whether there are records, and of every configuration.
    """
    startup, run = Startup(), TaskRun(request)
    with run_journal(request.execution.run_dir) as journal:
        _open_and_record(run, journal, observer, _in_own_process(request), startup)
        recorded = recorded_here(run, journal)
    if recorded.facts.interrupted or recorded.outcome.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    is_whole = all(entry.status == "measured" for entry in recorded.described)
    return exit_codes.OK if is_whole else exit_codes.NOT_MEASURED


def carry_out_range(plain: dict[str, Any]) -> tuple[int, bytes, str]:
    """Carry out a request, as plain values, for its records alone; in this process, wherever that is.

    Returns the exit code, the journal, and why there is none.
    """
    from evaltools.request.plain import from_plain
    from evaltools.runs.stored import seen_from

    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        try:
            request = seen_from(from_plain(plain, {}), Path.cwd()).stating(run_dir=f"{folder}/run")
            code = record(read(task_command(request.task), request), Observer())
        except EvaltoolsError as error:
            return error.exit_code, b"", str(error)
        journal = Path(folder, "run", JOURNAL_NAME)
        return code, journal.read_bytes() if journal.exists() else b"", ""


def merge(
    request: TaskRequest,
    places: Sequence[RunAtPlace],
    observer: Observer,
    open_with: OpenProcess | None = None,
) -> Result:
    """The result of the shards in run folders, as if one run had done them all.

    Each place did all shards; its folders have their records. What was not measured beside their passes is measured
    here. Raises :class:`~evaltools.errors.UsageError` where they are not all the shards of this run, each finished.
    """
    started_at = _now()
    recorded = recorded_in(TaskRun(request), places)
    require_all(recorded, [folder for place in places for folder in place.folders])
    observer.opened(recorded.described)
    if recorded.beside is None and recorded.outcome.examples_done:
        done = _beside_elsewhere(recorded, any(place.name for place in places), observer, open_with)
        facts = replace(recorded.facts, interrupted=recorded.facts.interrupted or done.interrupted)
        recorded = replace(recorded, beside=done.found, facts=facts)
    observer.measured()
    return conclude(recorded, recorded.facts.environment or _environment(request, started_at))


def _open_and_record(
    run: TaskRun, journal: Journal, observer: Observer, opener: OpenProcess, startup: Startup
) -> Environment:
    """Do what is not in the journal yet, and write down everything that is found."""
    request, started_at = run.request, _now()
    devices, identity = _watched(run), run.identity()
    require_same_files(journal, identity)
    startup.mark(CHECKS)
    with open_all(run.wanted, opener, request.allow_fallback) as entries:
        opened = OpenConfigurations.of(entries.values(), request.reference, run.other_models)
        observer.opened(opened.described)
        check_sessions(run, opened)
        startup.mark(OPENING)
        begin_run(journal, opened.described, identity, request.source)
        found = first_look(run, opened)
        FOUND.write(journal, found)
        facts = PassFacts()
        if found.can_run:
            chosen = run.as_checked(found.checked)
            outcome, facts = run_pass(chosen, opened, journal, observer, opener, startup)
            if request.execution.shard.count == 1:
                done = _measure_beside(chosen, outcome, opened.entries, True, observer, opener)
                if done.found is not None:
                    beside_fact(chosen.task).write(journal, done.found)
                facts = replace(facts, interrupted=facts.interrupted or done.interrupted)
        observer.measured()
        trace = request.execution.trace if found.can_run and facts.not_traced is None else None
        environment = describe_environment(list(request.command), started_at, facts.elapsed_s, trace, facts.load)
        changed = changed_meanwhile(journal, identity, run.identity())
        warnings = [*opened.warnings, *changed]
        over = replace(
            facts, is_over=True, environment=environment, warnings=warnings, device_run=devices and devices.ended()
        )
        PASS.write(journal, over)
    return environment


def _watched(run: TaskRun) -> Watch | None:
    """The devices that programs run on, None where all runs on this computer."""
    configurations = [configuration for _, configuration in run.wanted]
    if not any(each.device for each in configurations):
        return None
    from evaltools.adb.watch import watch

    return watch(configurations)


def _beside_elsewhere(
    recorded: Recorded, is_elsewhere: bool, observer: Observer, open_with: OpenProcess | None
) -> Beside:
    """Measure what the shards have not. Where several places are compared, only the CPU here takes part."""
    run, outcome = recorded.run, recorded.outcome
    opener = open_with or _in_own_process(run.request)
    if run.task.beside is None:
        return _measure_beside(run, outcome, (), True, observer, opener)
    wanted = run.wanted
    if is_elsewhere:
        wanted = [(run.reference_model or run.model, Configuration("reference", kernels="builtin"))]
    with open_all(wanted, opener, run.request.allow_fallback) as entries:
        opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
        for entry in opened:
            entry.session.close()  # a device may allow only one at a time
        return _measure_beside(run, outcome, opened, not is_elsewhere, observer, opener) if opened else Beside()


def _measure_beside(
    run: TaskRun,
    outcome: PassOutcome[object],
    opened: Sequence[Opened],
    are_recorded: bool,
    observer: Observer,
    open_with: OpenProcess,
) -> Beside:
    """Measure what figures are to be compared with."""
    after = AfterPass(
        task=run.task,
        of_reference=steps_of(run.task, run.tensors[-1:], run.keeps_state),
        model=run.reference_model or run.model,
        reference=run.request.reference,
        outcome=outcome,
        opened=opened,
        are_recorded=are_recorded,
        observer=observer,
        open_with=open_with,
    )
    done: Beside = (run.task.beside or changes_of_other_kernels)(after)
    return done


def _in_own_process(request: TaskRequest, ahead: OpenedAhead | None = None) -> OpenProcess:
    opener = open_isolated if ahead is None else ahead.open
    return partial(opener, timeout_s=request.execution.example_timeout_s, timeout_flag="--example_timeout")


def _environment(request: TaskRequest, started_at: str) -> Environment:
    return describe_environment(list(request.command), started_at, 0.0)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
