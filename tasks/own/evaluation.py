"""An evaluation of a task of your own, from request to typed result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.describe import comparison_pairs
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import RunIdentity, digest, encode
from evaltools.engine.task import Prepared, Steps
from evaltools.errors import ImageError, InferenceError, TaskError, UsageError
from evaltools.extensions import named
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.known_tasks import task_command
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.request import Request
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.verdict import Verdict
from evaltools.runtime import Open, Session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks.own.collecting import Collected, Concluded, RecordsOfRun
from evaltools.tasks.own.definition import Mean, Pooled, Setting, TopK, name_of
from evaltools.tasks.own.faults import place_of
from evaltools.tasks.own.figures import FigureTable, ScoresSeen, WorstDrawings, verdicts
from evaltools.tasks.own.loading import Loaded
from evaltools.tasks.own.options import Option, values_of
from evaltools.tasks.own.other_kernels import allowed_changes, changes_of_other_kernels
from evaltools.tasks.own.pictures import picture_transform
from evaltools.tasks.own.result import ExampleScores, MetricComparison, OwnPart
from evaltools.tasks.own.task import ObservedScores, OwnTask, build, scored_at
from evaltools.tasks.own.trial import SessionTrial, call_check
from evaltools.tasks.shared.evaluation import (
    Evaluation,
    Findings,
    OpenConfigurations,
    read_reference_model,
    require_stated,
)
from evaltools.tasks.shared.figures import MeasuredPass, RunSums, judge_records, sum_up
from evaltools.tasks.shared.image_input import StatedLayout, require_native_channels
from evaltools.tasks.shared.merging import TASK, RunAtPlace, checksums_of, fact_in, files_below, with_files
from evaltools.tasks.shared.observer import Observer
from evaltools.tasks.shared.request import TaskRequest, require_margin, shared_fields
from evaltools.tasks.shared.sound_reference import are_sound, fitting_normalization, other_range_in_words

_CHOICE: Final = "what the task chose by its first examples"


class OwnOptions(Struct, frozen=True):
    """Which task, and with which options.

    ``values`` are what the task's function is called with. ``margin`` is the change of a metric that counts as none
    in verdicts. ``input_layout`` and ``channel_order`` are of pictures; the latter is empty where it was not stated.
    ``native`` is ``--compat=native``. ``pictures`` is the option whose folder has the pictures that are the examples.
    ``decisive`` are the options by which scores can differ, None: all. ``has_page``: a page is made of the result.
    """

    loaded: Loaded
    values: Mapping[str, Any] = field(default_factory=dict)
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN
    input_layout: StatedLayout = "auto"
    channel_order: str = ""
    native: bool = False
    pictures: str = ""
    decisive: frozenset[str] | None = None
    has_page: bool = False

    @property
    def recorded(self) -> dict[str, Any]:
        """The options by which scores can differ."""
        values = {name: each for name, each in self.values.items() if self.decisive is None or name in self.decisive}
        return {**values, **({"channel_order": "bgr"} if self.channel_order == "bgr" else {})}


def read_request(
    request: Request, loaded: Loaded, options: Sequence[Option], has_native_tool: bool = False
) -> TaskRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    output = given.path("output_file_path")
    if not has_native_tool and output is not None and output.suffix.lower() in (".pb", ".bin"):
        raise UsageError(
            f"--output_file_path={output}: a task of your own has no native protobuf; give a name that ends in .json, "
            ".md or .csv"
        )
    if loaded.origin is None and given.text("executor") == "ray":
        raise UsageError(f"executor=ray: the task {loaded.name} is in no file that others could load; put it into one")
    names = [option.parameter.name for option in options]
    margin = given.real("margin")
    if not 0 < margin < math.inf:
        raise UsageError(f"--margin={margin:g}: use a number above 0, in the unit of the metrics")
    fields = shared_fields(request)
    if loaded.origin is None:
        fields["source"] = None  # no other process could go on with it
    layout = cast(StatedLayout, given.text("input_layout")) if "input_layout" in given else "auto"
    channel_order = given.text("channel_order") if "channel_order" in given else ""
    channel_order = "" if channel_order == "auto" else channel_order
    if request.is_native:
        require_native_channels(layout, channel_order or "rgb")
    own = OwnOptions(
        loaded=loaded,
        values=values_of(tuple(options), {name: given.stated[name] for name in names if name in given}, loaded.name),
        record_examples=given.is_on("record_examples"),
        margin=margin,
        input_layout=layout,
        channel_order=channel_order,
        native=request.is_native,
        pictures=next((each.parameter.name for each in options if each.parameter.role == "pictures"), ""),
        decisive=frozenset(each.parameter.name for each in options if each.parameter.must_agree),
        has_page=bool(given.text("report")),
    )
    return TaskRequest(**fields, options=own)


class _Nothing:
    """What a task without a metric of that kind collects and concludes."""

    own: Mapping[str, Sequence[Any]] = {}
    paired: Mapping[tuple[str, str], Sequence[Any]] = {}

    def conclude(
        self,
        configurations: Sequence[ConfigurationResult],
        sums: RunSums,
    ) -> Concluded:
        """Nothing."""
        return Concluded(None, {})


class OwnEvaluation(Evaluation[ObservedScores[Any]]):
    """An evaluation of the examples that a task gives."""

    task: OwnTask

    def __init__(self, request: TaskRequest) -> None:
        self.request = request
        options = self.options
        self.name = options.loaded.task
        if options.loaded.origin is None and request.execution.run_dir is not None:
            function = options.loaded.function
            raise UsageError(
                f"{place_of(function)}: the task {name_of(function)} is in no file that could be loaded again, so "
                "its run cannot be resumed; put it into a file of its own, under a name, or leave out run_dir"
            )
        self.model = read_model(request.model_file)
        self.reference_model = read_reference_model(request)
        models = [self.model] if self.reference_model is None else [self.model, self.reference_model]
        for model in models:
            _require_order(model, request)
        self.task = self._stated = self._build(models, options.values)
        if self.task.task.whole is not None:
            require_margin(options.margin)
        self.one_worker = self.task.keeps_state
        self._trouble = ""
        self._advice = ""
        self._found: Sequence[str] = ()
        self._choice: Any = None
        self._other_kernels: list[MetricComparison] = []

    @property
    def options(self) -> OwnOptions:
        """Which task, and with which options."""
        options: OwnOptions = self.request.options
        return options

    def _build(self, models: Sequence[ModelFile], values: Mapping[str, Any]) -> OwnTask:
        """The task for these models, whose function gets these values."""
        options = self.options
        setting = Setting(models, options.input_layout, options.channel_order, options.native)
        return build(options.loaded, values, setting)

    @property
    def steps(self) -> Steps[ObservedScores[Any]]:
        """What the pass does with each example."""
        return self.task.steps

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated, where the task takes a folder of them."""
        return [example.input for example in self.task.task.examples] if self.options.pictures else []

    @property
    def sent_pictures(self) -> Mapping[str, Sequence[Path]]:
        """Devices get the pictures that are evaluated."""
        return {self.options.pictures: self.pictures} if self.options.pictures else {}

    def identity(self) -> RunIdentity:
        """The identity of a run: the task's file, its options and the files that they name, its examples, the model."""
        loaded, stated = self.options.loaded, self._stated.task
        found = self.identity_with(
            {
                TASK: f"{self.name} {name_of(loaded.function)}",
                "the task's file": loaded.origin.sha256 if loaded.origin else "",
                "the examples": digest(self.task.names),
                **{f"the {name}": fact for name, fact in stated.facts.items()},
            }
        )
        origin = loaded.origin
        if origin is not None and not origin.module:
            found = replace(found, code=checksums_of((origin.file, *origin.beside)))
        for name, value in self.options.values.items():
            if isinstance(value, Path):
                if name == self.options.pictures:
                    found = with_files(found, "the pictures", self.pictures)
                elif not stated.facts:
                    found = with_files(found, f"the files of {name}", files_below([value]))
        return found

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError`, also where a classifier's scores are others in the runtime than in its file."""
        super().check_sessions(opened)
        for entry in opened.entries if isinstance(self.task.task.whole, TopK) else ():
            require_stated(entry.model, entry.session, "output", entry.model.outputs[0], entry.session.outputs[0])

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Try a few of the examples, and let the task choose by them how outputs are read.

        A trial would change the state of a model that keeps one. Where the task cannot tell how to read outputs that no
        configuration gives, nothing is run.
        """
        if self.task.keeps_state:
            return opened.runnable
        if opened.runnable:
            try:
                self._choose(self._check(opened.entries))
            except InferenceError as error:
                self._trouble = str(error)
                return False
            name, session = next(iter(opened.sessions.items()))
            try_examples(self.task, self.wrap(name, session), name == self.request.reference_name)
        if self.task.task.chosen is not None:
            journal.state({_CHOICE: encode(self._choice)})
        self._advice = self._input_advice(opened.sessions)
        return opened.runnable

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> None:
        """Read outputs as the shards did."""
        if self.task.task.chosen is not None:
            self._choose(fact_in(places[0].folders[0], _CHOICE, Any))

    def _choose(self, choice: Any) -> None:
        self._choice = choice
        if choice is not None:
            self.task = self._stated.chosen(choice)

    def _check(self, entries: Sequence[Opened]) -> Any:
        """Let the task look at a few examples of its models; returns what it chose."""
        check = self._stated.task.check
        if check is None:
            return None
        own = [entry.session for entry in entries if entry.model is self.model]
        others = [entry.session for entry in entries if entry.model is not self.model]
        of_reference = SessionTrial(others, self._stated.of_reference) if others else None
        checked = call_check(check, SessionTrial(own, self._stated.of_test, of_reference))
        self._found = checked.notes
        return checked.choice

    def check_on_host(self) -> None:
        """Let the task check what it can on the reference, on the host, if that can run it."""
        configuration = self.request.reference or Configuration("check", kernels="builtin")
        if self._stated.task.check is None:
            return
        wanted = [(self.model, configuration)]
        with open_all(wanted, open_isolated, self.request.allow_fallback) as entries, suppress(InferenceError):
            opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
            if opened:
                self._check(opened)

    def _input_advice(self, sessions: Mapping[str, Session]) -> str:
        """Which normalisation fits, where pictures are fed other values than the model shows or can take."""
        stated = self.options.values.get("normalization")
        session = sessions.get(self.request.reference_name or "")
        if not isinstance(stated, str) or session is None or self.reference_model is not None:
            return ""
        try:
            fed = picture_transform(self.task.inputs[0], stated).value_range()
        except TaskError:
            return ""

        def outputs_with(name: str) -> Sequence[Array] | None:
            try:
                changed = {**self.options.values, "normalization": name}
                task = self.task.of_test if name == stated else self._build([self.model], changed)
                return session.run(task.prepare(0).inputs).outputs
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

    def after_pass(self, measured: MeasuredPass, opened: Sequence[Opened], observer: Observer, open_with: Open) -> None:
        """See how far other CPU kernels change the agreement; for shards once, when they are merged."""
        if self.request.execution.shard.count == 1 and measured.outcome.stopped is None:
            self._other_kernels = changes_of_other_kernels(self, self.task, observer, open_with)

    def after_merge(
        self, measured: MeasuredPass, places: Sequence[RunAtPlace], observer: Observer, open_with: Open
    ) -> None:
        """See how far other CPU kernels of this computer change the agreement."""
        if measured.outcome.stopped is None:
            self._other_kernels = changes_of_other_kernels(self, self.task, observer, open_with)

    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
        """Means, comparisons, and every score if that was asked for."""
        options, task, outcome = self.options, self.task.task, measured.outcome
        origin = None if options.loaded.is_built_in else options.loaded.origin
        judged = [self._judged(entry, outcome) for entry in described]
        seen = {entry.name: ScoresSeen() for entry in judged if entry.status == "measured"}
        drawn = {name: WorstDrawings(name, self.task.names) for name in seen}
        pairs, metrics = comparison_pairs(judged), task.means
        run = RecordsOfRun(
            examples=task.examples,
            outcome=outcome,
            measured=list(seen),
            pairs=pairs,
            reference=self.request.reference_name,
            margin=options.margin,
            keeps_examples=options.record_examples,
            has_page=options.has_page,
        )
        collected: Collected = named(task.whole.collector)(task.whole, run) if task.whole else _Nothing()
        sums = sum_up(
            measured,
            pairs,
            {
                name: [*(each[name] for each in (seen, drawn) if name in each), *collected.own.get(name, ())]
                for name in outcome.records
            },
            collected.paired,
        )
        configurations = [sums.with_figures(entry) for entry in judged]
        concluded = collected.conclude(configurations, sums)
        table = FigureTable(metrics, {name: each.rows for name, each in seen.items()})
        compared = [comparison for pair in sums.pairs for comparison in table.comparisons(*pair)]
        part_type: type[OwnPart] = task_command(self.name).part_type
        part = part_type(
            name=name_of(options.loaded.function),
            source=str(origin) if origin else "",
            sha256=origin.sha256 if origin else "",
            options={name: str(value) for name, value in options.recorded.items() if value is not None},
            example_count=self.example_count,
            examples_sha256=digest(self.task.names),
            preprocessing_latency=summarise_latency(outcome.preprocessing_us),
            metrics=[Mean(metric.name, metric.better, metric.margin, metric.bounds) for metric in metrics],
            means=[mean for name, each in seen.items() for mean in table.means(name, each.certain)],
            comparisons=compared,
            scores=self._scores(table) if options.record_examples and metrics else None,
            drawings=[entry for each in drawn.values() for entry in each.found],
            other_kernels=self._other_kernels,
            facts=dict(task.facts),
            **({task.whole.part: concluded.part} if task.whole else {}),
        )
        own_verdicts = verdicts(compared, metrics, options.margin, allowed_changes(self._other_kernels))
        return Findings(
            configurations=configurations,
            sums=sums,
            part=part,
            verdicts=merged(concluded.verdicts, own_verdicts),
            warnings=[
                *filter(None, [self._advice]),
                *self._found,
                *task.notes,
                *concluded.warnings,
                *self._warnings(seen.values()),
                *_without_figure(metrics, part, seen.values()),
            ],
        )

    def _judged(self, described: ConfigurationResult, outcome: PassOutcome[ObservedScores[Any]]) -> ConfigurationResult:
        judged = judge_records(described, outcome)
        is_lost = judged.status != described.status
        return replace(judged, reason=self._trouble) if self._trouble and is_lost else judged

    @classmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        """The number of examples of the task."""
        count: int = result.part.example_count
        return count

    def _scores(self, table: FigureTable) -> list[ExampleScores]:
        scores = {name: table.of_examples(name) for name in table.rows}
        found = []
        for example, title in enumerate(self.task.names):
            given = {name: each[example] for name, each in scores.items() if example in each}
            if given:
                found.append(ExampleScores(title, given))
        return found

    def _warnings(self, seen: Iterable[ScoresSeen]) -> list[str]:
        unknown = next((each.unknown for each in seen if each.unknown), ())
        if not unknown:
            return []
        name = unknown[0]
        return [
            f'{scored_at(self.task.task)} also gives {name!r}; add evaltools.mean("{name}") to the metrics to see it'
        ]


def _without_figure(metrics: Sequence[Mean], part: OwnPart, seen: Iterable[ScoresSeen]) -> list[str]:
    """Warnings about metrics of all examples that have no figure, though examples have scores."""
    found = {entry.metric for entry in part.means}
    return [
        f"there is no {metric.name}: nothing in these examples counts for it"
        for metric in metrics
        if isinstance(metric, Pooled) and metric.name not in found and any(each.rows for each in seen)
    ]


def merged(first: Mapping[str, list[Verdict]], then: Mapping[str, list[Verdict]]) -> dict[str, list[Verdict]]:
    """The verdicts of both by configuration."""
    return {name: [*first.get(name, ()), *then.get(name, ())] for name in {**first, **then}}


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


def try_examples(task: OwnTask, session: Session, is_reference: bool) -> None:
    """Raise :class:`UsageError` where the task's code fails on the first, the middle and the last example alike.

    ``is_reference``: the session runs the reference's model.
    """
    faults = []
    for example in dict.fromkeys((0, len(task.names) // 2, len(task.names) - 1)):
        fault = _fault(task, example, session, is_reference)
        if fault is None:
            return
        faults.append(fault)
    raise UsageError(faults[0])


def _fault(task: OwnTask, example: int, session: Session, is_reference: bool) -> str | None:
    """The error of the task's own code on an example; None where there is none, or where something else fails."""
    try:
        prepared: Prepared = task.prepare(example)
        outputs = session.run(prepared.inputs).outputs
        task.observe(prepared, outputs, outputs if is_reference else None)
    except TaskError as error:
        return str(error)
    except (ImageError, InferenceError):
        return None
    return None
