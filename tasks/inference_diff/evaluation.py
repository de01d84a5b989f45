"""An inference diff from request to typed result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.run import PassOptions
from evaltools.engine.run_folder import RunIdentity, decode, encode, journals_of
from evaltools.errors import ImageError, InferenceError
from evaltools.model import ModelFile
from evaltools.result.evaluation import ConfigurationResult
from evaltools.runtime import Open, Session
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.assembly import DiffNotes, diff_findings
from evaltools.tasks.inference_diff.measure_yardsticks import measure_yardsticks
from evaltools.tasks.inference_diff.output_order import COMPARED_RUNS, order_by_values
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest, prepare
from evaltools.tasks.inference_diff.result import OutputOrder
from evaltools.tasks.inference_diff.saved_outputs import SavingSession
from evaltools.tasks.inference_diff.task import DiffObservation
from evaltools.tasks.inference_diff.value_ranges import are_sane
from evaltools.tasks.inference_diff.yardsticks import (
    LOCAL_REFERENCE,
    RerunOutcomes,
    plan_reruns,
    session_wrapper,
    warm_up,
)
from evaltools.tasks.shared.evaluation import Evaluation, Findings, ReadyTask
from evaltools.tasks.shared.measuring import (
    Observer,
    OpenConfigurations,
    PassSetup,
    counted,
    require_stated,
)
from evaltools.tasks.shared.one_pass import MeasuredPass
from evaltools.tasks.shared.run_identity import RunAtPlace, files_below, with_files

_FIRST_RUNS: Final = "first runs"
_YARDSTICKS: Final = "noise floor"
_OUTPUT_ORDER: Final = "order of outputs"
_NARROWED: Final = "narrowed inputs"
"""A fact of the run: float inputs of which nothing is known are drawn from a narrower range."""


class DiffEvaluation(Evaluation[DiffObservation]):
    """A comparison of outputs; make it with :func:`prepare_diff`."""

    name = "inference_diff"

    def __init__(self, request: DiffRequest, material: DiffMaterial) -> None:
        self.request: DiffRequest = request
        self.model = material.model
        self.material = material

    @property
    def example_count(self) -> int:
        """The number of runs."""
        return len(self.material.task.examples)

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs; that of the reference may be another."""
        request, material = self.request, self.material
        tests = [(material.model, configuration) for configuration in request.tests]
        return tests if request.reference is None else [(material.reference_model, request.reference), *tests]

    @property
    def pass_options(self) -> PassOptions:
        """When the pass stops, and how often it invokes the model per run: three times with ``--compat=native``."""
        return replace(super().pass_options, invocations=self.request.invocations)

    def identity(self) -> RunIdentity:
        """The identity of a run: also that of the reference's model, and of the files that inputs are read from."""
        request = self.request
        files = [Path(text.rpartition("=")[2]) for text in request.inputs.files]
        folders = [path for path in (*files, request.inputs.images, request.load_reference) if path is not None]
        found = self.identity_with({"the reference's model": self.material.reference_model.sha256})
        return with_files(found, "the inputs", files_below(folders))

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs are others in the runtime than in its file."""
        advice = "convert the model again, or state the shape with --input_shape"
        for entry in opened.entries:
            is_reference = entry.configuration is self.request.reference
            model = self.material.reference_model if is_reference else self.model
            for stated, actual in zip(model.inputs, entry.session.inputs, strict=True):
                require_stated(model, entry.session, "input", stated, actual, advice)

    def ready(self, opened: OpenConfigurations, journal: Journal) -> ReadyTask[DiffObservation]:
        """The task, on sessions that take the planned inputs; each session warms up before its first run."""
        request, sessions = self.request, opened.sessions
        first_run_us: dict[str, float | None] = {}
        if self.material.plan is not None and journal.fact(_NARROWED):
            self.material.plan.source.draw_from(self.material.plan.narrowed())
        self.material = material = self._in_order_of_values(sessions, journal)

        def wrap(name: str, session: Session) -> Session:
            """The session that takes the planned inputs, and saves its outputs if asked to."""
            fitting = session_wrapper(material, name == request.reference_name)(session)
            return SavingSession(fitting, name, material.saving) if material.saving else fitting

        def warm_up_all(sessions: Mapping[str, Session]) -> None:
            inputs = _first_inputs(material) if request.warmup_runs else None
            for name, session in sessions.items() if inputs is not None else ():
                quiet = session.inner if isinstance(session, SavingSession) else session
                assert inputs is not None
                first = warm_up(quiet, inputs, request.warmup_runs, request.invocations)
                first_run_us[name] = first.invokes_us[0] if first else None
                if name == request.reference_name and first and _narrow_inputs(material, quiet, first.outputs):
                    journal.state({_NARROWED: "yes"})
                    inputs = _first_inputs(material)
            journal.state({_FIRST_RUNS: encode(first_run_us)})

        setup = PassSetup(
            request.reference_name,
            self.pass_options,
            one_worker=material.stateful or material.saving is not None,
            wrap=wrap,
            before=warm_up_all,
        )
        has_reference = material.loaded is not None or request.reference_name in sessions
        runs = has_reference and any(configuration.name in sessions for configuration in request.tests)
        return ReadyTask(material.task, setup, DiffNotes(first_run_us), runs)

    def _in_order_of_values(self, sessions: Mapping[str, Session], journal: Journal) -> DiffMaterial:
        """The material with outputs that only values tell apart in their order, which a resumed run has from before.

        The configuration that is nearest to the reference decides. A model with a state is not run for this.
        """
        material, pair = self.material, self.material.pair
        if pair is None or not pair.order.open:
            return material
        known = journal.fact(_OUTPUT_ORDER)
        if known is not None:
            return material.in_order(decode(known, OutputOrder, journal.folder))
        order = pair.order
        outputs = {} if material.stateful else _first_outputs(material, sessions, self.request.reference_name)
        reference = outputs.pop(self.request.reference_name or "", None)
        if reference and outputs:
            sides = (order, material.model.outputs, pair.reference_outputs)
            found = [order_by_values(*sides, given, reference) for given in outputs.values()]
            order = min(found, key=lambda entry: entry[1])[0]
        journal.state({_OUTPUT_ORDER: encode(order)})
        return material.in_order(order)

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> ReadyTask[DiffObservation]:
        """The task, with the times of the first runs of all places."""
        first_run_us = {name: time for place in places for name, time in _first_runs_at(place).items()}
        plan = self.material.plan
        order = next((text for place in places if (text := _fact_at(place, _OUTPUT_ORDER))), None)
        if order is not None:
            self.material = self.material.in_order(decode(order, OutputOrder, places[0].folders[0]))
        if plan is not None and any(_fact_at(place, _NARROWED) for place in places):
            plan.source.draw_from(plan.narrowed())
        setup = PassSetup(self.request.reference_name, self.pass_options)
        return ReadyTask(self.material.task, setup, DiffNotes(first_run_us))

    def after_pass(
        self,
        ready: ReadyTask[DiffObservation],
        measured: MeasuredPass,
        opened: Sequence[Opened],
        observer: Observer,
        open_with: Open,
    ) -> ReadyTask[DiffObservation]:
        """Measure the yardsticks; those of shards are measured once, when they are merged."""
        if self.request.execution.shard.count > 1:
            return ready
        _close(opened)
        yardsticks = self._measure_yardsticks(opened, measured, observer, open_with)
        return replace(ready, notes=replace(ready.notes, yardsticks=yardsticks), interrupted=yardsticks.interrupted)

    def after_merge(
        self,
        ready: ReadyTask[DiffObservation],
        measured: MeasuredPass,
        places: Sequence[RunAtPlace],
        observer: Observer,
        open_with: Open,
    ) -> ReadyTask[DiffObservation]:
        """Measure the yardsticks on the host; if several places are compared, those of the host's CPU alone."""
        elsewhere = any(place.name for place in places)
        wanted = self.wanted
        if elsewhere:
            wanted = [(self.material.reference_model, Configuration(LOCAL_REFERENCE, kernels="builtin"))]
        with open_all(wanted, open_with, self.request.allow_fallback) as entries:
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            _close(opened)
            if not opened:
                return ready
            yardsticks = self._measure_yardsticks(opened, measured, observer, open_with, not elsewhere)
        return replace(ready, notes=replace(ready.notes, yardsticks=yardsticks), interrupted=yardsticks.interrupted)

    def _measure_yardsticks(
        self,
        opened: Sequence[Opened],
        measured: MeasuredPass,
        observer: Observer,
        open_with: Open,
        with_repeats: bool = True,
    ) -> RerunOutcomes:
        """Measure the yardsticks, if they were asked for and the pass was not stopped."""
        if not self.request.yardstick_runs or measured.outcome.stopped is not None:
            return RerunOutcomes()
        reruns = plan_reruns(self.material, opened, self.request.reference, with_repeats)
        with counted(observer, _YARDSTICKS, len(reruns)) as step:
            return measure_yardsticks(self.request, self.material, opened, reruns, measured.outcome, open_with, step)

    def findings(
        self, described: Sequence[ConfigurationResult], measured: MeasuredPass, ready: ReadyTask[DiffObservation]
    ) -> Findings:
        """Judge how far outputs differ; the folder of saved outputs gets its manifest."""
        return diff_findings(self.request, self.material, described, measured, ready.notes)


def prepare_diff(request: DiffRequest) -> DiffEvaluation:
    """Read and check everything before anything runs; raises :class:`UsageError` and its kinds."""
    return DiffEvaluation(request, prepare(request))


def _first_runs_at(place: RunAtPlace) -> dict[str, float | None]:
    """The time of the first run of each configuration in microseconds; names end with the place, None if none ran."""
    text = _fact_at(place, _FIRST_RUNS)
    times: dict[str, float | None] = {} if text is None else decode(text, dict[str, float | None], place.folders[0])
    return {name + place.suffix: time for name, time in times.items()}


def _fact_at(place: RunAtPlace, name: str) -> str | None:
    with journals_of(place.folders[:1]) as (journal,):
        return journal.fact(name)


def _first_inputs(material: DiffMaterial) -> tuple[Array, ...] | None:
    """The inputs of the first run, for the warm-up; None if they cannot be read, which the pass will report.

    They are not saved here, since :func:`_narrow_inputs` may still change them.
    """
    try:
        return (material.source if material.plan is None else material.plan.source).inputs(0)
    except ImageError:
        return None


def _first_outputs(
    material: DiffMaterial, sessions: Mapping[str, Session], reference: str | None
) -> dict[str, list[tuple[Array, ...]]]:
    """The outputs of a few runs by configuration, of those that have them, in the order of the model so far."""
    runs = []
    assert material.plan is not None, "a second model goes with inputs that are planned here"
    for index in range(min(COMPARED_RUNS, len(material.task.examples))):
        with suppress(ImageError):
            runs.append(material.plan.source.inputs(index))
    found = {}
    for name, session in sessions.items():
        fitting = session_wrapper(material, name == reference)(session)
        with suppress(InferenceError):
            found[name] = [fitting.run(inputs).outputs for inputs in runs]
    return found


def _narrow_inputs(material: DiffMaterial, reference: Session, outputs: Sequence[Array]) -> bool:
    """Draw random floats from a narrower range, if the reference overflows with the present one and not with that.

    ``outputs`` are the reference's first outputs. Only inputs whose range is a guess are changed, as neither the user
    nor the model states it. Returns whether the range was changed. A model with a state keeps the overflow in its
    state, so that nothing is tried with it.
    """
    plan = material.plan
    narrowed = plan.narrowed() if plan is not None and not material.stateful and not are_sane(outputs) else {}
    if plan is None or not narrowed:
        return False
    ranges = plan.ranges
    plan.source.draw_from(narrowed)
    inputs = _first_inputs(material)
    with suppress(InferenceError):
        if inputs is not None and are_sane(reference.run(inputs).outputs):
            return True
    plan.source.draw_from(ranges)
    return False


def _close(opened: Sequence[Opened]) -> None:
    """End the sessions of the pass: a device may allow only one at a time."""
    for entry in opened:
        entry.session.close()
