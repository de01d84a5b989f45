"""An inference diff from request to typed result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.engine import Journal, Open, Opened, Outcome, PassOptions, open_all, run_journal
from evaltools.engine.run_folder import decode, encode, journals_of
from evaltools.errors import ImageError
from evaltools.model import ModelFile
from evaltools.result.evaluation import EvaluationResult
from evaltools.runtime import Session
from evaltools.runtime.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.assembly import DiffPass, assemble_diff
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest, prepare
from evaltools.tasks.inference_diff.reruns import LOCAL_REFERENCE, fit_of, plan_reruns
from evaltools.tasks.inference_diff.saved_outputs import SavingSession
from evaltools.tasks.inference_diff.second_look import second_look
from evaltools.tasks.inference_diff.task import DiffObservation
from evaltools.tasks.inference_diff.yardsticks import (
    SecondLook,
    warm_up,
)
from evaltools.tasks.shared.evaluation import (
    Drive,
    Observer,
    OpenConfigurations,
    carry_out,
    counted,
    open_configurations,
    require_stated,
)
from evaltools.tasks.shared.measured import nothing_measured
from evaltools.tasks.shared.run_identity import (
    Place,
    begin_run,
    changed_meanwhile,
    files_below,
    fingerprint_of_files,
    libraries_of,
    merged_run,
)
from evaltools.tasks.shared.startup import CHECKS, OPENING, Startup

_FIRST_RUNS: Final = "first runs"
_YARDSTICKS: Final = "noise floor"


def evaluate_diff(request: DiffRequest, observer: Observer, open_with: Open = open_isolated) -> EvaluationResult:
    """Check everything, open the configurations, run the pass, measure the yardsticks, judge.

    Raises :class:`~evaltools.errors.UsageError` before anything runs for a model, inputs or folders that are wrong.
    Configurations that cannot run, or that have no outputs to compare, are ``not measured`` in the result.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    startup = Startup()
    material = prepare(request)
    startup.mark(CHECKS)
    with run_journal(request.execution.run_dir) as journal:
        with open_configurations(
            _wanted(request, material), request.reference, open_with, request.allow_fallback, observer
        ) as opened:
            _require_stated_inputs(request, material, opened)
            startup.mark(OPENING)
            identity = _identity(request, material)
            begin_run(journal, opened.described, identity, request.execution, request.command)
            done, look = DiffPass(nothing_measured(opened.sessions)), SecondLook()
            if _can_compare(request, material, opened.sessions):
                done = _run(request, material, opened, journal, observer, open_with, startup)
                if request.execution.shard.count == 1:
                    _close(opened.entries)
                    look = _look(request, material, opened.entries, done.measured.outcome, observer, open_with)
        result = assemble_diff(request, material, opened.described, done, look, started_at, observer)
        changed = changed_meanwhile(journal, identity, _identity(request, material))
        return replace(result, warnings=[*result.warnings, *changed])


def merge_diff(
    request: DiffRequest, places: Sequence[Place], observer: Observer, open_with: Open = open_isolated
) -> EvaluationResult:
    """The result of the shards in some run folders, as if one run had done them all.

    The yardsticks are measured here; where several places are compared, those of the CPU alone. Raises
    :class:`~evaltools.errors.UsageError` where the folders are not all the shards of this run, each finished.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    material = prepare(request)
    options = PassOptions(
        request.max_failed_examples, invocations=request.invocations, max_crashes=request.execution.max_crashes
    )
    reference = request.reference.name if request.reference else None
    first_run_us = {name: time for place in places for name, time in _first_runs_at(place).items()}
    with run_journal(None) as journal:
        merged = merged_run(journal, places, material.task, _identity(request, material), reference, options)
        observer.opened(merged.described)
        look = SecondLook()
        elsewhere = any(place.name for place in places)
        wanted = _wanted(request, material)
        if elsewhere:
            wanted = [(material.reference_model, Configuration(LOCAL_REFERENCE, kernels="builtin"))]
        with open_all(wanted, open_with, request.allow_fallback) as entries:
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            _close(opened)
            if opened:
                outcome = merged.measured.outcome
                look = _look(request, material, opened, outcome, observer, open_with, not elsewhere)
        done = DiffPass(merged.measured, first_run_us)
        return assemble_diff(request, material, merged.described, done, look, started_at, observer)


def _first_runs_at(place: Place) -> dict[str, int | None]:
    """The times of the very first runs, by configurations with the place behind their names; none where none ran."""
    with journals_of(place.folders[:1]) as (journal,):
        text = journal.fact(_FIRST_RUNS)
    times: dict[str, int | None] = {} if text is None else decode(text, dict[str, int | None], place.folders[0])
    return {name + place.suffix: time for name, time in times.items()}


def _wanted(request: DiffRequest, material: DiffMaterial) -> list[tuple[ModelFile, Configuration]]:
    wanted = [(material.model, configuration) for configuration in request.tests]
    return wanted if request.reference is None else [(material.reference_model, request.reference), *wanted]


def _identity(request: DiffRequest, material: DiffMaterial) -> dict[str, str]:
    files = [Path(text.rpartition("=")[2]) for text in request.inputs.files]
    folders = [path for path in (*files, request.inputs.images, request.load_reference) if path is not None]
    return {
        "the task": "inference diff",
        "the model": material.model.sha256,
        "the reference's model": material.reference_model.sha256,
        **fingerprint_of_files("the inputs", files_below(folders)),
        **libraries_of([configuration for _, configuration in _wanted(request, material)]),
        **request.flags,
    }


def _can_compare(request: DiffRequest, material: DiffMaterial, sessions: Mapping[str, Session]) -> bool:
    has_reference = material.loaded is not None or (
        request.reference is not None and request.reference.name in sessions
    )
    return has_reference and any(configuration.name in sessions for configuration in request.tests)


def _require_stated_inputs(request: DiffRequest, material: DiffMaterial, opened: OpenConfigurations) -> None:
    advice = "convert the model again, or state the shape with --input_shape"
    for entry in opened.entries:
        model = material.reference_model if entry.configuration is request.reference else material.model
        for stated, actual in zip(model.inputs, entry.session.inputs, strict=True):
            require_stated(model, entry.session, "input", stated, actual, advice)


def _run(
    request: DiffRequest,
    material: DiffMaterial,
    opened: OpenConfigurations,
    journal: Journal[DiffObservation],
    observer: Observer,
    open_with: Open,
    startup: Startup,
) -> DiffPass:
    reference = request.reference.name if request.reference else None
    first_run_us: dict[str, int | None] = {}

    def wrap(name: str, session: Session) -> Session:
        """Sessions take the planned inputs, and save their outputs if asked to."""
        fitting = fit_of(material, name == reference)(session)
        return SavingSession(fitting, name, material.writer) if material.writer else fitting

    def warm_up_all(sessions: Mapping[str, Session]) -> None:
        inputs = _first_inputs(material) if request.warmup_runs else None
        for name, session in sessions.items() if inputs is not None else ():
            quiet = session.inner if isinstance(session, SavingSession) else session
            assert inputs is not None
            first_run_us[name] = warm_up(quiet, inputs, request.warmup_runs, request.invocations)
        journal.state({_FIRST_RUNS: encode(first_run_us)})

    drive = Drive(
        reference,
        PassOptions(request.max_failed_examples, invocations=request.invocations),
        one_worker=material.stateful or material.writer is not None,
        wrap=wrap,
        before=warm_up_all,
    )
    measured = carry_out(material.task, opened, journal, drive, request.execution, observer, open_with, startup)
    return DiffPass(measured, first_run_us)


def _look(
    request: DiffRequest,
    material: DiffMaterial,
    opened: Sequence[Opened],
    outcome: Outcome[DiffObservation],
    observer: Observer,
    open_with: Open,
    with_repeats: bool = True,
) -> SecondLook:
    """Measure the yardsticks, where that was asked for and the pass went to its end."""
    if not request.yardstick_runs or outcome.stopped is not None:
        return SecondLook()
    reruns = plan_reruns(material, opened, request.reference, with_repeats)
    with counted(observer, _YARDSTICKS, len(reruns)) as step:
        return second_look(request, material, opened, reruns, outcome, open_with, step)


def _first_inputs(material: DiffMaterial) -> tuple[Array, ...] | None:
    """The inputs of the first run; where they cannot be read, which the pass reports, there is no warm-up."""
    try:
        return material.source.inputs(0)
    except ImageError:
        return None


def _close(opened: Sequence[Opened]) -> None:
    """End the sessions of the pass: a device may allow only one at a time."""
    for entry in opened:
        entry.session.close()
