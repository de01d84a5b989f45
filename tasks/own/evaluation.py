"""An evaluation of a task of your own, from request to typed result."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import field
from msgspec.structs import replace

from evaltools.engine.describe import comparison_pairs
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import RunIdentity, digest
from evaltools.engine.task import Example, Prepared
from evaltools.errors import ImageError, InferenceError, TaskError, UsageError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.request import Request
from evaltools.result.evaluation import ConfigurationResult
from evaltools.runtime import Session
from evaltools.runtime.session import Array
from evaltools.tasks.own.definition import Mean, Pooled
from evaltools.tasks.own.faults import place_of
from evaltools.tasks.own.figures import FigureTable, ScoresSeen, WorstDrawings, verdicts
from evaltools.tasks.own.loading import Loaded
from evaltools.tasks.own.options import Option, values_of
from evaltools.tasks.own.pictures import picture_transform
from evaltools.tasks.own.result import ExampleScores, OwnPart
from evaltools.tasks.own.task import ObservedScores, OwnTask, build, scored_at
from evaltools.tasks.shared.evaluation import Evaluation, Findings, ReadyTask
from evaltools.tasks.shared.image_input import StatedLayout
from evaltools.tasks.shared.measuring import OpenConfigurations, PassSetup, require_stated
from evaltools.tasks.shared.one_pass import MeasuredPass, judge_records, sum_up
from evaltools.tasks.shared.request import TaskRequest, shared_fields
from evaltools.tasks.shared.run_identity import TASK, RunAtPlace, checksums_of, files_below, with_files
from evaltools.tasks.shared.sound_reference import are_sound, fitting_normalization, other_range_in_words


class OwnRequest(TaskRequest, frozen=True):
    """What to evaluate with which configurations.

    ``options`` are what the task's function is called with. ``margin`` is the change of a metric that counts as none
    in verdicts. ``input_layout`` and ``channel_order`` are of pictures; the latter is empty where it was not stated.
    """

    loaded: Loaded
    options: Mapping[str, Any] = field(default_factory=dict)
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN
    input_layout: StatedLayout = "auto"
    channel_order: str = ""

    @property
    def recorded_options(self) -> dict[str, Any]:
        """The options by which scores can differ."""
        return {**self.options, **({"channel_order": "bgr"} if self.channel_order == "bgr" else {})}


def read_request(request: Request, loaded: Loaded, options: Sequence[Option]) -> OwnRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    output = given.path("output_file_path")
    if output is not None and output.suffix.lower() in (".pb", ".bin"):
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
    return OwnRequest(
        **fields,
        loaded=loaded,
        options=values_of(tuple(options), {name: given.stated[name] for name in names if name in given}, loaded.name),
        record_examples=given.is_on("record_examples"),
        margin=margin,
        input_layout=cast(StatedLayout, given.text("input_layout")) if "input_layout" in given else "auto",
        channel_order=given.text("channel_order") if "channel_order" in given else "",
    )


class OwnEvaluation(Evaluation[ObservedScores]):
    """An evaluation of the examples that a task gives; make it with :func:`prepare`."""

    def __init__(self, request: OwnRequest, model: ModelFile, task: OwnTask) -> None:
        self.name = request.loaded.task
        self.request: OwnRequest = request
        self.model = model
        self.task: Final = task

    @property
    def example_count(self) -> int:
        """The number of examples of the task."""
        return len(self.task.examples)

    @property
    def beside_reference(self) -> bool:
        """Whether scores depend on the reference's outputs."""
        return self.task.task.agree is not None

    def identity(self) -> RunIdentity:
        """The identity of a run: the task's file, its options and the files that they name, its examples, the model."""
        loaded = self.request.loaded
        found = self.identity_with(
            {
                TASK: f"{self.name} {loaded.function.name}",
                "the task's file": loaded.origin.sha256 if loaded.origin else "",
                "the examples": digest(example.id for example in self.task.examples),
            }
        )
        origin = loaded.origin
        if origin is not None and not origin.module:
            found = replace(found, code=checksums_of((origin.file, *origin.beside)))
        for name, value in self.request.options.items():
            if isinstance(value, Path):
                found = with_files(found, f"the files of {name}", files_below([value]))
        return found

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs are others in the runtime.

        The task makes inputs for what the file states.
        """
        for session in opened.sessions.values():
            for stated, actual in zip(self.model.inputs, session.inputs, strict=True):
                require_stated(self.model, session, "input", stated, actual, "convert the model again")

    def ready(self, opened: OpenConfigurations, journal: Journal) -> ReadyTask[ObservedScores]:
        """The task, after a few of its examples were tried on the first configuration that runs.

        A trial would change the state of a model that keeps one.
        """
        keeps_state = self.task.keeps_state
        if opened.runnable and not keeps_state:
            try_examples(self.task, next(iter(opened.sessions.values())))
        advice = "" if keeps_state else self._input_advice(opened.sessions)
        setup = PassSetup(self.request.reference_name, self.pass_options, one_worker=keeps_state)
        return ReadyTask(self.task, setup, advice, runs=opened.runnable)

    def _input_advice(self, sessions: Mapping[str, Session]) -> str:
        """Which normalisation fits, where pictures are fed other values than the model shows or can take."""
        request, stated = self.request, self.request.options.get("normalization")
        session = sessions.get(request.reference_name or "")
        if not isinstance(stated, str) or session is None:
            return ""
        try:
            fed = picture_transform(self.task.inputs[0], stated).value_range()
        except TaskError:
            return ""

        def outputs_with(name: str) -> Sequence[Array] | None:
            task = build(request.loaded, {**request.options, "normalization": name}, self.model)
            try:
                return session.run(task.prepare(task.examples[0]).inputs).outputs
            except (TaskError, ImageError, InferenceError):
                return None

        other = other_range_in_words(self.model, fed)
        outputs = None if other else outputs_with(stated)
        if outputs is None or are_sound(outputs):
            return other
        fitting = fitting_normalization(outputs_with)
        return f"outputs overflow where pictures are fed as {fed[0]:.4g}..{fed[1]:.4g}" + (
            f"; --normalization={fitting} fits" if fitting else ", and with every other normalization that has a name"
        )

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> ReadyTask[ObservedScores]:
        """The task; its examples are not tried again."""
        return ReadyTask(self.task, PassSetup(self.request.reference_name, self.pass_options))

    def findings(
        self, described: Sequence[ConfigurationResult], measured: MeasuredPass, ready: ReadyTask[ObservedScores]
    ) -> Findings:
        """Means, comparisons, and every score if that was asked for."""
        request, task, outcome = self.request, self.task.task, measured.outcome
        origin = None if request.loaded.is_built_in else request.loaded.origin
        judged = [judge_records(entry, outcome) for entry in described]
        seen = {entry.name: ScoresSeen() for entry in judged if entry.status == "measured"}
        drawn = {name: WorstDrawings(name) for name in seen}
        sums = sum_up(measured, comparison_pairs(judged), {name: [seen[name], drawn[name]] for name in seen})
        table = FigureTable(task.metrics, {name: each.rows for name, each in seen.items()})
        compared = [comparison for pair in sums.pairs for comparison in table.comparisons(*pair)]
        part = OwnPart(
            name=request.loaded.function.name,
            source=str(origin) if origin else "",
            sha256=origin.sha256 if origin else "",
            options={name: str(value) for name, value in request.recorded_options.items() if value is not None},
            example_count=self.example_count,
            examples_sha256=digest(example.id for example in self.task.examples),
            preprocessing_latency=summarise_latency(outcome.preprocessing_us),
            metrics=[Mean(metric.name, metric.better, metric.margin) for metric in task.metrics],
            means=[mean for name, each in seen.items() for mean in table.means(name, each.certain)],
            comparisons=compared,
            scores=self._scores(table) if request.record_examples else None,
            drawings=[entry for each in drawn.values() for entry in each.found],
        )
        return Findings(
            configurations=[sums.with_figures(entry) for entry in judged],
            sums=sums,
            part=part,
            verdicts=verdicts(compared, task.metrics, request.margin),
            warnings=[
                *filter(None, [ready.notes]),
                *self._warnings(seen.values()),
                *_without_figure(task.metrics, part, seen.values()),
            ],
        )

    def _scores(self, table: FigureTable) -> list[ExampleScores]:
        scores = {name: table.of_examples(name) for name in table.rows}
        found = []
        for example in self.task.examples:
            given = {name: each[example.index] for name, each in scores.items() if example.index in each}
            if given:
                found.append(ExampleScores(example.id, given))
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


def prepare(request: OwnRequest) -> OwnEvaluation:
    """Read the model and make the task; raises :class:`~evaltools.errors.UsageError` and its kinds."""
    if request.loaded.origin is None and request.execution.run_dir is not None:
        function = request.loaded.function
        raise UsageError(
            f"{place_of(function.function)}: the task {function.name} is in no file that could be loaded again, so its "
            "run cannot be resumed; put it into a file of its own, under a name, or leave out run_dir"
        )
    model = read_model(request.model_file)
    if model.stateful and request.execution.shard.count > 1:
        raise UsageError(
            f"--shard_count={request.execution.shard.count}: {model.path} keeps a state from example to example, so "
            "that one host must do all; leave the shards out"
        )
    if model.stateful and request.options.get("order") == "random":
        raise UsageError(
            f"--order=random: {model.path} keeps a state from example to example, so that all must run in their order; "
            "leave it out"
        )
    task = build(request.loaded, request.options, model, request.input_layout, request.channel_order)
    return OwnEvaluation(request, model, task)


def try_examples(task: OwnTask, session: Session) -> None:
    """Raise :class:`UsageError` where the task's code fails on the first, the middle and the last example alike."""
    faults = []
    for example in dict.fromkeys(task.examples[place] for place in (0, len(task.examples) // 2, -1)):
        fault = _fault(task, example, session)
        if fault is None:
            return
        faults.append(fault)
    raise UsageError(faults[0])


def _fault(task: OwnTask, example: Example, session: Session) -> str | None:
    """The error of the task's own code on an example; None where there is none, or where something else fails."""
    try:
        prepared: Prepared = task.prepare(example)
        outputs = session.run(prepared.inputs).outputs
        task.observe(prepared, outputs, outputs)
    except TaskError as error:
        return str(error)
    except (ImageError, InferenceError):
        return None
    return None
