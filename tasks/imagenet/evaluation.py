"""An ImageNet evaluation from request to typed result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.labels import LabelFile, labels_beside, read_labels
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import RunIdentity, digest
from evaltools.errors import DataError, UsageError
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.result.evaluation import ConfigurationResult
from evaltools.runtime import Open, Session, TensorSpec
from evaltools.runtime.process.isolated import open_isolated
from evaltools.tasks.imagenet.figures import imagenet_figures, topk_verdicts
from evaltools.tasks.imagenet.label_check import explain_label_count, knows_nothing, require_fitting_labels, shifted
from evaltools.tasks.imagenet.result import Classified, Data, ExampleAnswer, ExampleRecord, ImagenetPart
from evaltools.tasks.imagenet.task import (
    ImagenetOptions,
    ImagenetRequest,
    ImagenetTask,
    LabelledImages,
    TopKObservation,
    build_task,
    check_model,
    check_session,
    class_count,
    load_labelled_images,
)
from evaltools.tasks.shared.evaluation import Evaluation, Findings, ReadyTask
from evaltools.tasks.shared.image_input import channel_order_of, describe_normalization
from evaltools.tasks.shared.measuring import OpenConfigurations, PassSetup
from evaltools.tasks.shared.one_pass import MeasuredPass
from evaltools.tasks.shared.run_identity import RunAtPlace, with_files
from evaltools.tasks.shared.sound_reference import other_range_in_words
from evaltools.tasks.shared.two_models import SessionWithOwnInput

_FEWEST_FOR_CONSTANT: Final = 20


class ImagenetEvaluation(Evaluation[TopKObservation]):
    """An evaluation over labelled pictures; make it with :func:`prepare`."""

    name = "imagenet"

    def __init__(
        self,
        request: ImagenetRequest,
        model: ModelFile,
        images: LabelledImages,
        labels: LabelFile,
        task: ImagenetTask,
        reference: tuple[ModelFile, ImagenetTask] | None = None,
    ) -> None:
        self.request: ImagenetRequest = request
        self.model = model
        self._reference = reference
        self.images: Final = images
        self.labels: Final = labels
        self.task: Final = task
        self._better_order = ""

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs; that of the reference may be another."""
        other = self._reference[0] if self._reference else self.model
        return [
            (other if configuration is self.request.reference else self.model, configuration)
            for configuration in self.request.configurations
        ]

    @property
    def example_count(self) -> int:
        """The number of pictures."""
        return len(self.images.paths)

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated."""
        return self.images.paths

    def identity(self) -> RunIdentity:
        """The identity of a run: model, pictures and their labels."""
        truths = {"the ground truth": digest(self.images.truths), "the labels": self.labels.sha256}
        if self._reference is not None:
            truths["the reference's model"] = self._reference[0].sha256
        return with_files(self.identity_with(truths), "the pictures", self.images.paths)

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` unless one picture goes in and one vector of scores comes out."""
        for entry in opened.entries:
            check_session(entry.session, entry.model)

    def ready(self, opened: OpenConfigurations, journal: Journal) -> ReadyTask[TopKObservation]:
        """The task, after a few pictures were run to check that the labels fit."""
        if opened.runnable:
            self.try_labels(next(entry.session for entry in opened.entries if entry.model is self.model))
        return ReadyTask(self.task, self._setup(), runs=opened.runnable)

    def _setup(self) -> PassSetup:
        setup = PassSetup(self.request.reference_name, self.pass_options)
        return setup if self._reference is None else replace(setup, wrap=self._with_own_input)

    def _with_own_input(self, name: str, session: Session) -> Session:
        """A session that is given the inputs of both models, the reference's behind."""
        assert self._reference is not None
        specs = [
            TensorSpec(tensor.name, np.dtype(tensor.dtype), tensor.shape)
            for model in (self.model, self._reference[0])
            for tensor in model.inputs
        ]
        return SessionWithOwnInput(session, int(name == self.request.reference_name), specs)

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> ReadyTask[TopKObservation]:
        """The task; labels are not tried again."""
        return ReadyTask(self.task, self._setup())

    def check_labels_on_host(self, open_with: Open = open_isolated) -> None:
        """Try the labels on the reference, on the host, before the run is done elsewhere.

        Not if the host cannot run it.

        Raises :class:`DataError` where another reading of the labels fits far better.
        """
        request = self.request
        configuration = request.reference or Configuration("label check", kernels="builtin")
        if not request.label_check:
            return
        with open_all([(self.model, configuration)], open_with, request.allow_fallback) as entries:
            for entry in entries.values():
                if isinstance(entry, Opened):
                    check_session(entry.session, self.model)
                    self.try_labels(entry.session)

    def try_labels(self, session: Session) -> None:
        """Run a few pictures; raises :class:`DataError` where another reading of the labels fits far better."""
        options, labels = self.request.options, self.labels.lines
        task = self.task.with_input(self.task.to_tensor)
        if options.label_offset is None and len(labels) != len(task.class_labels):
            explanation = explain_label_count(task, session, labels)
            raise DataError(f"{_label_count(options, len(task.class_labels), self.labels)}.\n  {explanation}")
        if self.request.label_check and not options.native:
            self._better_order = require_fitting_labels(task, session, labels, options.label_offset or 0)

    def findings(
        self, described: Sequence[ConfigurationResult], measured: MeasuredPass, ready: ReadyTask[TopKObservation]
    ) -> Findings:
        """Data, accuracies, comparisons, and every answer if that was asked for."""
        outcome = measured.outcome
        task = self.task
        figures = imagenet_figures(
            described, measured, task.top_k, task.class_labels, self.images.truths, self._units_of
        )
        part = ImagenetPart(
            data=self._data(outcome),
            classified=figures.classified,
            comparisons=figures.comparisons,
            examples=_example_records(self.task, outcome) if self.request.record_examples else None,
        )
        return Findings(
            configurations=figures.configurations,
            sums=figures.sums,
            part=part,
            verdicts=topk_verdicts(figures.comparisons, self.request.margin),
            warnings=self._warnings(part),
        )

    def _units_of(self, name: str) -> Callable[[float], float]:
        """What makes a number of a raw score of a configuration."""
        if self._reference is not None and name == self.request.reference_name:
            return self._reference[1].in_real_units
        return self.task.in_real_units

    def _data(self, outcome: PassOutcome[TopKObservation]) -> Data:
        options, images = self.request.options, self.images
        return Data(
            images=str(options.ground_truth_images_path),
            example_count=len(images.paths),
            skipped_files=len(images.folder.skipped),
            denylisted=images.denylisted,
            ground_truth_sha256=images.truths_sha256,
            labels_sha256=self.labels.sha256,
            label_offset=options.label_offset or 0,
            normalization=describe_normalization(self.task.to_tensor),
            channel_order=channel_order_of(self.task.to_tensor),
            preprocessing_latency=summarise_latency(outcome.preprocessing_us),
            order=options.order,
            seed=options.seed if options.order == "random" else None,
        )

    def _warnings(self, part: ImagenetPart) -> list[str]:
        other_range = other_range_in_words(self.model, self.task.to_tensor.value_range())
        found = [text for text in (other_range, self._better_order) if text]
        skipped = self.images.folder.skipped
        if skipped:
            found.append(f"{len(skipped)} files that are no pictures were left out, such as {skipped[0]!r}")
        repeated = [label for label, count in Counter(self.labels.lines).items() if count > 1]
        if repeated:
            example = f"such as {repeated[0]!r}; either output counts as right"
            found.append(f"labels that stand for more than one output: {len(repeated)}, {example}")
        unknown = sorted(set(self.images.truths) - set(self.task.class_labels))
        if unknown:
            example = f"such as {unknown[0]!r}; they count as wrong"
            found.append(f"ground truth labels that are not in the label list: {len(unknown)}, {example}")
        for name, answered in part.classified.items():
            found.extend(_signs_of_damage(name, answered.metrics))
        first = next(iter(part.classified.items()), None)
        return found if first is None else found + _signs_of_other_truths(*first, self.images.truths)


def prepare(request: ImagenetRequest) -> ImagenetEvaluation:
    """Read and check model, labels and pictures; raises :class:`~evaltools.errors.UsageError` and its kinds."""
    options = request.options
    model = read_model(request.model_file)
    check_model(model, options.native, options.input_layout)
    labels = read_labels(options.model_output_labels, "--model_output_labels", options.native)
    images = load_labelled_images(options)
    classes = class_count(model)
    missing = classes - len(labels.lines)
    if options.label_offset is None and (abs(missing) > 1 or (missing and options.native)):
        raise DataError(f"{_label_count(options, classes, labels)}. Take the label list that belongs to this model")
    class_labels = shifted(labels.lines, classes, options.label_offset or 0)
    if request.label_check and not options.native and not set(images.truths) & set(class_labels):
        raise DataError(_no_common_label(request, labels, images))
    task = build_task(model, images, class_labels, options)
    if request.reference_model_file is None:
        return ImagenetEvaluation(request, model, images, labels, task)
    reference = _reference_model(request, classes)
    of_reference = build_task(reference, images, class_labels, options)
    return ImagenetEvaluation(request, model, images, labels, task.beside(of_reference), (reference, of_reference))


def _reference_model(request: ImagenetRequest, classes: int) -> ModelFile:
    """The other model of the reference; raises :class:`UsageError` and its kinds where they cannot be compared."""
    if request.reference is None:
        raise UsageError("--reference_model_file has no effect without a reference; leave one of the two out")
    model = read_model(Path(str(request.reference_model_file)))
    check_model(model, layout=request.options.input_layout)
    if class_count(model) != classes:
        raise DataError(
            f"{model.path} has {class_count(model)} scores, {request.model_file} has {classes}; models that are "
            "compared need the same classes"
        )
    return model


def _label_count(options: ImagenetOptions, classes: int, labels: LabelFile) -> str:
    return f"{options.model_output_labels} has {len(labels.lines)} lines, the model's output has {classes}"


def _no_common_label(request: ImagenetRequest, labels: LabelFile, images: LabelledImages) -> str:
    """Names every list that was tried."""
    beside = labels_beside(request.model_file)
    others = [path for path in beside if path != labels.path] if labels.path in beside else []
    tried = [f"{_list_name(request, labels.path)} (such as {labels.lines[-1]!r})"]
    tried += [_list_name(request, path) for path in others]
    return (
        f"none of the {len(set(images.truths))} labels in {request.options.ground_truth_labels} (such as "
        f"{images.truths[0]!r}) is in {', nor in '.join(tried)}. Both files must use the same words, letter for "
        "letter; --labels=FILE names the labels of the model's outputs"
    )


def _list_name(request: ImagenetRequest, path: Path) -> str:
    return f"the metadata of {path}" if path == request.model_file else str(path)


def _signs_of_damage(name: str, metrics: ClassificationMetrics) -> list[str]:
    found = []
    if metrics.outputs_with_nonfinite:
        found.append(f"{name}: {metrics.outputs_with_nonfinite} outputs hold NaN or infinite scores")
    if metrics.distinct_answers == 1 and metrics.topk.example_count >= _FEWEST_FOR_CONSTANT:
        found.append(f"{name}: the same class came first for every picture")
    return found


def _signs_of_other_truths(name: str, answered: Classified, truths: Sequence[str]) -> list[str]:
    topk = answered.metrics.topk
    hits = round(topk.accuracies[0] * topk.example_count) if topk.accuracies else 0
    if not knows_nothing(hits, topk.example_count, truths):
        return []
    return [
        f"{name}: {hits} of {topk.example_count} first answers are right, no more than of answers that know nothing of "
        "the pictures; see that line i of the ground truth is the label of the i-th picture by name, and that the "
        "labels are those of this model"
    ]


def _example_records(task: ImagenetTask, outcome: PassOutcome[TopKObservation]) -> list[ExampleRecord]:
    found = []
    for together in outcome.by_example():
        answers = {
            name: ExampleAnswer(
                classes=list(record.observation.classes),
                scores=list(record.observation.scores),
                rank=record.observation.rank,
                invoke_us=record.invokes_us[-1],
            )
            for name, record in together.items()
            if record.observation is not None
        }
        if answers:
            example = next(iter(together.values())).example
            found.append(ExampleRecord(example.id, task.images.truths[example.index], answers))
    return found
