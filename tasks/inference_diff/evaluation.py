"""An inference diff from request to typed result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.run import PassOptions
from evaltools.engine.run_folder import RunIdentity, decode, encode, journals_of
from evaltools.engine.task import Steps
from evaltools.errors import ImageError, InferenceError
from evaltools.request import Request
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.runtime import Open, Session
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.assembly import DiffNotes, diff_findings
from evaltools.tasks.inference_diff.measure_noise_floor import expected_seconds, first_answer, measure_noise_floor
from evaltools.tasks.inference_diff.noise_floor import (
    LOCAL_REFERENCE,
    RepeatOutcomes,
    plan_repeats,
    session_wrapper,
    warm_up,
)
from evaltools.tasks.inference_diff.output_order import COMPARED_RUNS, order_by_values
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest, prepare, read_request
from evaltools.tasks.inference_diff.result import OutputOrder
from evaltools.tasks.inference_diff.saved_outputs import (
    SavingSession,
    against_saved,
    saving_reference,
    with_host_names,
)
from evaltools.tasks.inference_diff.task import DiffObservation, InferenceDiffTask
from evaltools.tasks.inference_diff.value_ranges import are_sane
from evaltools.tasks.shared.evaluation import Evaluation, Findings, OpenConfigurations, require_stated
from evaltools.tasks.shared.figures import MeasuredPass
from evaltools.tasks.shared.host_names import HostNames
from evaltools.tasks.shared.merging import RunAtPlace, files_below, with_files
from evaltools.tasks.shared.observer import Observer, counted

_SHORT_S: Final = 5.0
"""A noise floor that takes so many seconds is waited for without a first answer."""
_FIRST_RUNS: Final = "first runs"
_NOISE_FLOOR: Final = "noise floor"
_OUTPUT_ORDER: Final = "order of outputs"
_NARROWED: Final = "narrowed inputs"
"""A fact of the run: float inputs of which nothing is known are drawn from a narrower range."""


class DiffEvaluation(Evaluation[DiffObservation]):
    """A comparison of outputs."""

    name = "inference_diff"

    def __init__(self, request: DiffRequest) -> None:
        self.request: DiffRequest = request
        self.material = prepare(request)
        self.model = self.material.model
        self.reference_model = self.material.pair.reference if self.material.pair else None
        self.notes = DiffNotes()

    @classmethod
    def read(cls, request: Request) -> DiffRequest:
        """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
        return read_request(request)

    @property
    def task(self) -> InferenceDiffTask:
        """The task, with the outputs of two models in the order that is known."""
        return self.material.task

    @property
    def steps(self) -> Steps[DiffObservation]:
        """What the pass does with each run."""
        return self.task.steps

    @property
    def one_worker(self) -> bool:  # type: ignore[override]
        """With a state, and where outputs are saved, runs follow each other."""
        return self.material.stateful or self.material.saving is not None

    @property
    def pass_options(self) -> PassOptions:
        """When the pass stops, and how often it invokes the model per run: three times with ``--compat=native``."""
        return replace(super().pass_options, invocations=self.request.invocations)

    def identity(self) -> RunIdentity:
        """The identity of a run: also that of the files that inputs are read from."""
        request = self.request
        files = [Path(text.rpartition("=")[2]) for text in request.inputs.files]
        folders = [path for path in (*files, request.inputs.images, request.load_reference) if path is not None]
        return with_files(self.identity_with({}), "the inputs", files_below(folders))

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs are others in the runtime than in its file."""
        advice = "convert the model again, or state the shape with --input_shape"
        for entry in opened.entries:
            for stated, actual in zip(entry.model.inputs, entry.session.inputs, strict=True):
                require_stated(entry.model, entry.session, "input", stated, actual, advice)

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Take the range of inputs and the order of outputs from an earlier part of the run, or find the order out."""
        self._journal = journal
        if self.material.plan is not None and journal.fact(_NARROWED):
            self.material.plan.source.draw_from(self.material.plan.narrowed())
        self.material = self._in_order_of_values(opened.sessions, journal)
        has_reference = self.material.loaded is not None or self.request.reference_name in opened.sessions
        return has_reference and any(configuration.name in opened.sessions for configuration in self.request.tests)

    def wrap(self, name: str, session: Session) -> Session:
        """The session that takes the planned inputs, and saves its outputs if asked to."""
        fitting = session_wrapper(self.material, name == self.request.reference_name)(session)
        return SavingSession(fitting, name, self.material.saving) if self.material.saving else fitting

    def before(self, sessions: Mapping[str, Session]) -> None:
        """Warm each session up."""
        request, material = self.request, self.material
        first_run_us = self.notes.first_run_us
        inputs = _first_inputs(material) if request.warmup_runs else None
        for name, session in sessions.items() if inputs is not None else ():
            quiet = session.inner if isinstance(session, SavingSession) else session
            assert inputs is not None
            first = warm_up(quiet, inputs, request.warmup_runs, request.invocations)
            first_run_us[name] = first.invokes_us[0] if first else None
            if name == request.reference_name and first and _narrow_inputs(material, quiet, first.outputs):
                self._journal.state({_NARROWED: "yes"})
                inputs = _first_inputs(material)
        self._journal.state({_FIRST_RUNS: encode(first_run_us)})

    def _in_order_of_values(self, sessions: Mapping[str, Session], journal: Journal) -> DiffMaterial:
        """The material with outputs whose order only values show, which a resumed run has from before.

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

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> None:
        """Take the times of the first runs of all places, the order of outputs and the range of inputs."""
        first_run_us = {name: time for place in places for name, time in _first_runs_at(place).items()}
        plan = self.material.plan
        order = next((text for place in places if (text := _fact_at(place, _OUTPUT_ORDER))), None)
        if order is not None:
            self.material = self.material.in_order(decode(order, OutputOrder, places[0].folders[0]))
        if plan is not None and any(_fact_at(place, _NARROWED) for place in places):
            plan.source.draw_from(plan.narrowed())
        self.notes = DiffNotes(first_run_us)

    def after_pass(self, measured: MeasuredPass, opened: Sequence[Opened], observer: Observer, open_with: Open) -> None:
        """Measure the noise floor; those of shards are measured once, when they are merged."""
        if self.request.execution.shard.count > 1:
            return
        _close(opened)
        self._measure_noise_floor(opened, measured, observer, open_with)

    def after_merge(
        self, measured: MeasuredPass, places: Sequence[RunAtPlace], observer: Observer, open_with: Open
    ) -> None:
        """Measure the noise floor on the host; if several places are compared, only those of the host's CPU."""
        elsewhere = any(place.name for place in places)
        wanted = self.wanted
        if elsewhere:
            wanted = [(self.material.reference_model, Configuration(LOCAL_REFERENCE, kernels="builtin"))]
        with open_all(wanted, open_with, self.request.allow_fallback) as entries:
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            _close(opened)
            if opened:
                self._measure_noise_floor(opened, measured, observer, open_with, not elsewhere)

    def _measure_noise_floor(
        self,
        opened: Sequence[Opened],
        measured: MeasuredPass,
        observer: Observer,
        open_with: Open,
        with_repeats: bool = True,
    ) -> None:
        """Measure the noise floor, if they were asked for and the pass was not stopped."""
        if not self.request.noise_floor_runs:
            return
        if measured.outcome.stopped is not None:
            self.notes = replace(self.notes, noise_floor=RepeatOutcomes(interrupted=True))
            return
        repeats = plan_repeats(self.material, opened, self.request.reference, with_repeats)
        seconds = expected_seconds(self.request, measured.outcome, len(repeats))
        if seconds > _SHORT_S:
            observer.message(first_answer(self.request, self.material, measured.outcome, seconds))
        with counted(observer, _NOISE_FLOOR, len(repeats)) as step:
            noise_floor = measure_noise_floor(
                self.request, self.material, opened, repeats, measured.outcome, open_with, step
            )
        self.notes = replace(self.notes, noise_floor=noise_floor)
        self.interrupted = noise_floor.interrupted

    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
        """Judge how far outputs differ; the folder of saved outputs gets its manifest."""
        return diff_findings(self.request, self.material, described, measured, self.notes)

    @property
    def sent_pictures(self) -> Mapping[str, Sequence[Path]]:
        """The pictures that inputs are made of."""
        plan = self.material.plan
        return {"input_images": plan.pictures} if plan and plan.pictures else {}

    @classmethod
    def saving_reference(cls, request: Request, folder: Path) -> Request | None:
        """The request that saves the reference's outputs to ``folder``."""
        return saving_reference(request, folder)

    @classmethod
    def against_saved(cls, request: Request, folder: Path) -> Request:
        """The request that compares with the saved outputs in ``folder``."""
        return against_saved(request, folder)

    @classmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        """The number of runs."""
        count: int = result.part.num_runs
        return count

    @classmethod
    def with_host_names(cls, result: EvaluationResult, names: HostNames) -> EvaluationResult:
        """The result with the host's names of inputs and of the loaded reference."""
        return replace(result, part=with_host_names(result.part, names))

    @classmethod
    def breaks_limits(cls, result: EvaluationResult) -> bool:
        """Whether a limit that was given as an option is broken."""
        return any(comparison.within_limits is False for comparison in result.part.comparisons)

    @classmethod
    def exit_code(cls, result: EvaluationResult) -> int:
        """As for all tasks, but that a configuration that was not measured always counts."""
        lost = any(entry.status == "not measured" for entry in result.configurations)
        return exit_codes.NOT_MEASURED if lost and result.stopped != "interrupted" else super().exit_code(result)


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
    for index in range(min(COMPARED_RUNS, len(material.task.names))):
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
