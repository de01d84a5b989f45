"""What a task does with one request: :func:`evaltools.runs.evaluate.evaluate` calls it, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, comparison_pairs, describe_model, open_all
from evaltools.engine.run import PassOptions, PassOutcome
from evaltools.engine.run_folder import RunIdentity, digest, encode
from evaltools.engine.steps import Steps
from evaltools.errors import ImageError, InferenceError, TaskError, UsageError
from evaltools.model import ModelFile, read_model
from evaltools.result.evaluation import ConfigurationResult, Model
from evaltools.runs.merging import (
    TASK,
    RunAtPlace,
    checksums_of,
    fact_in,
    files_below,
    libraries_of,
    with_files,
)
from evaltools.runs.opened import OpenConfigurations, SessionWithOwnInputs, require_stated
from evaltools.runtime import Inference, Open, Session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks.framework.collected_scores import collected
from evaltools.tasks.framework.collecting import AfterPass, Collected, RecordsOfRun
from evaltools.tasks.framework.definition import Checked, Setting, TopK, name_of
from evaltools.tasks.framework.faults import place_of
from evaltools.tasks.framework.observer import Observer
from evaltools.tasks.framework.other_kernels import changes_of_other_kernels
from evaltools.tasks.framework.pictures import picture_transform
from evaltools.tasks.framework.request import TaskOptions, TaskRequest, require_margin
from evaltools.tasks.framework.sound_reference import are_sound, fitting_normalization, other_range_in_words
from evaltools.tasks.framework.steps import ObservedScores, prepared_for, recipe_of, steps_of
from evaltools.tasks.framework.sums import MeasuredPass, judge_records
from evaltools.tasks.framework.task import make_task, tensors_of_models
from evaltools.tasks.framework.trial import SessionTrial, call_check, warm_up

_CHECKED: Final = "what the task found in its first examples"
_FIRST_RUNS: Final = "first runs"


class TaskRun:
    """One run of a task: its request, its checked inputs, and in the end what its records say.

    It reads and checks model and data, and raises :class:`UsageError` and its kinds. The methods are called in the
    order in which they stand here. ``name`` is the task's name in results. ``task`` makes inputs and scores outputs,
    ``tensors`` are those of its models. ``keeps_state``: a model keeps a state from example to example.
    ``interrupted``: Ctrl-C ended what was measured beside the pass.
    """

    def __init__(self, request: TaskRequest) -> None:
        self.request: Final = request
        options = self.options
        self.name: Final = options.loaded.task
        if options.loaded.origin is None and request.execution.run_dir is not None:
            function = options.loaded.function
            raise UsageError(
                f"{place_of(function)}: the task {name_of(function)} is in no file that could be loaded again, so "
                "its run cannot be resumed; put it into a file of its own, under a name, or leave out run_dir"
            )
        models = _models_of(request)
        for model in models:
            _require_order(model, request)
        setting = self._setting(models)
        self.task = self._stated = make_task(options.loaded, options.values, setting)
        models = list(self.task.models) or models
        self.tensors: Final = tensors_of_models(models, setting)
        self.model: Final = models[0]
        self.reference_model: Final = models[1] if len(models) > 1 else None
        self.keeps_state: Final = any(model.stateful for model in models)
        if self.task.whole is not None:
            require_margin(options.margin)
        self.interrupted = False
        self._trouble = ""
        self._advice = ""
        self._checked = Checked()
        self._first_run_us: dict[str, float | None] = {}
        self._first_of_reference: Inference | None = None
        self._beside: Any = None

    @property
    def options(self) -> TaskOptions:
        """Which task, and with which options."""
        return self.request.options

    def _setting(self, models: Sequence[ModelFile]) -> Setting:
        """What the task's function gets beside its options."""
        options, request = self.options, self.request
        return Setting(
            models,
            options.input_layout,
            options.channel_order,
            options.native,
            reference=request.reference,
            tests=request.tests,
        )

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs; that of the reference may be another."""
        other, reference = self.reference_model or self.model, self.request.reference
        return [
            (other if configuration is reference else self.model, configuration)
            for configuration in self.request.configurations
        ]

    @property
    def other_models(self) -> dict[str, Model]:
        """The models of the configurations that run another one than :attr:`model`."""
        others = ((each.name, model) for model, each in self.wanted if model.sha256 != self.model.sha256)
        return {name: describe_model(model) for name, model in others}

    @property
    def example_count(self) -> int:
        """How many examples there are, over all shards."""
        return len(self.task.examples)

    @property
    def steps(self) -> Steps[ObservedScores[Any]]:
        """What the pass does with each example."""
        options = self.options
        recipe = recipe_of(options.loaded, options.values, self.task, self.tensors, self._checked.choice)
        return steps_of(self.task, self.tensors, self.keeps_state, recipe)

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated, in the order of the examples; they are used again where they are fewer."""
        stated = self.task.pictures
        if stated is not None:
            return stated
        return [example.input for example in self.task.examples] if self.options.pictures else []

    def pictures_of(self, option: str) -> tuple[Path, ...]:
        """The pictures in the folder of an option that a device needs, in the order of the examples."""
        assert option == self.options.pictures
        return tuple(dict.fromkeys(self.pictures[: self.example_count]))

    @property
    def pass_options(self) -> PassOptions:
        """When the pass stops, and how often it runs each example."""
        execution = self.request.execution
        return PassOptions(
            self.request.max_failed_examples,
            invocations=self.task.invocations,
            max_crashes=execution.max_crashes,
        )

    def identity(self) -> RunIdentity:
        """What must not change between the parts of a run; it reads the files again at each call.

        These are the task's file, its options and the files that they name, its examples, models and libraries.
        """
        loaded, stated = self.options.loaded, self._stated
        own = {
            TASK: f"{self.name} {name_of(loaded.function)}",
            "the model": self.model.sha256,
            "the task's file": loaded.origin.sha256 if loaded.origin else "",
            "the examples": digest(example.id for example in self.task.examples),
            **{f"the {name}": fact for name, fact in stated.facts.items()},
        }
        if self.reference_model is not None:
            own["the reference's model"] = self.reference_model.sha256
        found = RunIdentity(
            own,
            options=dict(self.request.flags),
            libraries=libraries_of(configuration for _, configuration in self.wanted),
        )
        origin = loaded.origin
        if origin is not None and not origin.module:
            found = replace(found, code=checksums_of((origin.file, *origin.beside)))
        for name, paths in self.options.content.items():
            if paths and name == self.options.pictures:
                found = with_files(found, "the pictures", self.pictures)
            elif paths and not stated.facts:
                found = with_files(found, f"the files of {name}", files_below(paths))
        return found

    def check_on_host(self) -> None:
        """Check on the reference, before a run on devices, what can be found out here, if the reference can run here.

        Raises :class:`UsageError` and its kinds.
        """
        configuration = self.request.reference or Configuration("check", kernels="builtin")
        if self._stated.check is None or self._stated.in_order:
            return
        wanted = [(self.model, configuration)]
        with open_all(wanted, open_isolated, self.request.allow_fallback) as entries, suppress(InferenceError):
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            if opened:
                self._check(opened)

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs are others in the runtime than in its file.

        So it is with the scores of a classifier.
        """
        advice = "convert the model again"
        if "input_shape" in self.options.values:
            advice += ", or state the shape with --input_shape"
        for entry in opened.entries:
            for stated, actual in zip(entry.model.inputs, entry.session.inputs, strict=True):
                require_stated(entry.model, entry.session, "input", stated, actual, advice)
            if isinstance(self.task.whole, TopK):
                require_stated(entry.model, entry.session, "output", entry.model.outputs[0], entry.session.outputs[0])

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Warm up, try a few of the examples, and let the task choose by them how models are fed and outputs read.

        A trial would change the state of a model that keeps one. Returns whether there is anything to run: nothing
        without outputs of the reference that a task needs, nor where the task cannot tell how to read outputs that no
        configuration gives.
        """
        task, can_run = self._stated, opened.runnable
        if can_run and task.whole is not None and task.whole.against_reference:
            can_run = self.request.reference_name in (None, *opened.sessions)
            self._trouble = "" if can_run else "the reference does not run, so that there is nothing to compare with"
        self._warm_up(opened.sessions if can_run else {}, journal)
        if can_run and not self.keeps_state:
            try:
                self._take(self._check(opened.entries))
            except InferenceError as error:
                self._trouble = str(error)
                return False
            if not task.in_order:
                name, session = next(iter(opened.sessions.items()))
                try_examples(self.steps, self.wrap(name, session), name == self.request.reference_name)
        journal.state({_CHECKED: encode(self._checked)})
        self._advice = self._input_advice(opened.sessions)
        return can_run

    def _warm_up(self, sessions: Mapping[str, Session], journal: Journal) -> None:
        """Run the first example as often as the task wants; one that cannot be read is left to the pass to report."""
        task = self._stated
        if not task.warmup_runs:
            return
        with suppress(ImageError, TaskError):
            inputs = prepared_for(task, self.tensors, 0).inputs
            for name, session in sessions.items():
                first = warm_up(self.wrap(name, session), inputs, task.warmup_runs, task.invocations)
                self._first_run_us[name] = first.invokes_us[0] if first else None
                if name == self.request.reference_name:
                    self._first_of_reference = first
        journal.state({_FIRST_RUNS: encode(self._first_run_us)})

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> None:
        """Take what :meth:`ready` found out from run folders, which have the records; no session is open."""
        if self._stated.check is not None:
            self._take(fact_in(places[0].folders[0], _CHECKED, Checked))
        for place in places if self._stated.warmup_runs else ():
            first_run_us = fact_in(place.folders[0], _FIRST_RUNS, dict[str, float | None])
            self._first_run_us |= {name + place.suffix: time for name, time in first_run_us.items()}

    def _take(self, checked: Checked) -> None:
        """Go on with what the check found, and chose."""
        self._checked = checked
        if checked.choice is not None and self._stated.chosen is not None:
            self.task = self._stated.chosen(checked.choice)

    def _check(self, entries: Sequence[Opened]) -> Checked:
        """Let the task look at a few examples of its models."""
        check = self._stated.check
        if check is None:
            return Checked()
        own = [entry.session for entry in entries if entry.model is self.model]
        others = [entry.session for entry in entries if entry.model is not self.model]
        first = self._first_of_reference
        of_reference = SessionTrial(others, self._stated, self.tensors[-1], warmed_up=first) if others else None
        first = first if self.reference_model is None else None
        return call_check(check, SessionTrial(own, self._stated, self.tensors[0], of_reference, first))

    def _input_advice(self, sessions: Mapping[str, Session]) -> str:
        """Which normalisation fits, where pictures are fed other values than the model shows or can take."""
        stated = self.options.values.get("normalization")
        session = sessions.get(self.request.reference_name or "")
        is_of_pictures = isinstance(self.task.examples[0].input, Path)
        if not isinstance(stated, str) or not is_of_pictures or session is None or self.reference_model is not None:
            return ""
        try:
            fed = picture_transform(self.tensors[0].inputs[0], stated).value_range()
        except TaskError:
            return ""

        def outputs_with(name: str) -> Sequence[Array] | None:
            try:
                changed = {**self.options.values, "normalization": name}
                setting = self._setting([self.model])
                task = self.task if name == stated else make_task(self.options.loaded, changed, setting)
                return session.run(prepared_for(task, self.tensors, 0).inputs).outputs
            except (UsageError, TaskError, ImageError, InferenceError):
                return None

        other = other_range_in_words(self.model, fed)
        outputs = None if other else outputs_with(stated)
        if outputs is None or are_sound(outputs):
            return other
        fitting = fitting_normalization(outputs_with)
        return f"outputs overflow where pictures are fed as {fed[0]:.4g}..{fed[1]:.4g}" + (
            f"; --normalization={fitting} fits" if fitting else ", and with every other normalization that has a name"
        )

    def wrap(self, name: str, session: Session) -> Session:
        """The session that takes the task's inputs, of that of a configuration.

        With two models these are the inputs of both, the reference's behind.
        """
        if self.reference_model is None:
            return session
        is_reference = name == self.request.reference_name
        return SessionWithOwnInputs(session, self.model, self.reference_model, is_reference)

    def after_pass(self, measured: MeasuredPass, opened: Sequence[Opened], observer: Observer, open_with: Open) -> None:
        """Measure what figures are to be compared with; for shards once, when they are merged."""
        if self.request.execution.shard.count == 1:
            self._measure_beside(measured, opened, True, observer, open_with)

    def after_merge(
        self, measured: MeasuredPass, places: Sequence[RunAtPlace], observer: Observer, open_with: Open
    ) -> None:
        """Measure the same on this computer. Where several places are compared, only its CPU takes part."""
        if self.task.beside is None:
            self._measure_beside(measured, (), True, observer, open_with)
            return
        is_elsewhere = any(place.name for place in places)
        wanted = self.wanted
        if is_elsewhere:
            wanted = [(self.reference_model or self.model, Configuration("reference", kernels="builtin"))]
        with open_all(wanted, open_with, self.request.allow_fallback) as entries:
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            for entry in opened:
                entry.session.close()  # a device may allow only one at a time
            if opened:
                self._measure_beside(measured, opened, not is_elsewhere, observer, open_with)

    def _measure_beside(
        self, measured: MeasuredPass, opened: Sequence[Opened], are_recorded: bool, observer: Observer, open_with: Open
    ) -> None:
        after = AfterPass(
            task=self.task,
            of_reference=steps_of(self.task, self.tensors[-1:], self.keeps_state),
            model=self.reference_model or self.model,
            reference=self.request.reference,
            outcome=measured.outcome,
            opened=opened,
            are_recorded=are_recorded,
            observer=observer,
            open_with=open_with,
        )
        done = (self.task.beside or changes_of_other_kernels)(after)
        self._beside, self.interrupted = done.found, done.interrupted

    def judged(self, described: ConfigurationResult, outcome: PassOutcome[Any]) -> ConfigurationResult:
        """The configuration, ``not measured`` where its records give no figures."""
        judged = judge_records(described, outcome)
        is_lost = judged.status != described.status
        if self._trouble and is_lost:
            return replace(judged, reason=self._trouble)
        whole, reference = self.task.whole, self.request.reference_name
        if whole is None or not whole.against_reference or judged.role == "reference":
            return judged
        if judged.status == "not measured" or reference is None:
            return judged
        if reference not in outcome.records or _have_both(outcome, reference, judged.name):
            return judged
        reason = f"the reference has no outputs to compare with{_why_first_failed(outcome)}"
        return replace(judged, status="not measured", reason=judged.reason or reason)

    def collected(self, judged: Sequence[ConfigurationResult], outcome: PassOutcome[Any]) -> Collected:
        """What takes the records and concludes of them."""
        run = RecordsOfRun(
            examples=self.task.examples,
            outcome=outcome,
            measured=[entry.name for entry in judged if entry.status == "measured"],
            pairs=comparison_pairs(judged),
            reference=self.request.reference_name,
            margin=self.options.margin,
            keeps_examples=self.options.record_examples,
            has_page=self.options.has_page,
            first_run_us=self._first_run_us,
            beside=self._beside,
        )
        return collected(self.task, self.options, run)

    @property
    def warnings(self) -> list[str]:
        """What was found before the pass."""
        return [*filter(None, [self._advice]), *self._checked.notes, *self.task.notes]


def _models_of(request: TaskRequest) -> list[ModelFile]:
    """The model under test and, if it is another, the reference's.

    Raises :class:`UsageError` where there is no reference, and for a file that is not a model.
    """
    model = read_model(request.model_file)
    if request.reference_model_file is None:
        return [model]
    if request.reference is None:
        raise UsageError("--reference_model_file has no effect without a reference; leave one of the two out")
    return [model, read_model(request.reference_model_file)]


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


def _require_order(model: ModelFile, request: TaskRequest) -> None:
    """Raise :class:`UsageError` for shards or another order of examples where a model keeps a state."""
    if model.stateful and request.execution.shard.count > 1:
        raise UsageError(
            f"--shard_count={request.execution.shard.count}: {model.path} keeps a state from example to example, so "
            "that one host must do all; leave the shards out"
        )
    if model.stateful and request.options.values.get("order") == "random":
        raise UsageError(
            f"--order=random: {model.path} keeps a state from example to example, so that all must run in their order; "
            "leave it out"
        )


def try_examples(steps: Steps[Any], session: Session, is_reference: bool) -> None:
    """Raise :class:`UsageError` where the task's code fails on the first, the middle and the last example alike.

    ``is_reference``: the session runs the reference's model.
    """
    faults = []
    for example in dict.fromkeys((0, len(steps.names) // 2, len(steps.names) - 1)):
        fault = _fault(steps, example, session, is_reference)
        if fault is None:
            return
        faults.append(fault)
    raise UsageError(faults[0])


def _fault(steps: Steps[Any], example: int, session: Session, is_reference: bool) -> str | None:
    """The error of the task's own code on an example; None where there is none, or where something else fails."""
    try:
        prepared = steps.prepare(example)
        outputs = session.run(prepared.inputs).outputs
        steps.observe(prepared, outputs, outputs if is_reference else None, "")
    except TaskError as error:
        return str(error)
    except (ImageError, InferenceError):
        return None
    return None
