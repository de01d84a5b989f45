"""An ImageNet evaluation from request to typed result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.datasets.labels import LabelFile, labels_beside, read_labels
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import RunIdentity, digest
from evaltools.errors import DataError
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.runtime import Session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.tasks.imagenet.figures import imagenet_figures, topk_verdicts
from evaltools.tasks.imagenet.label_check import explain_label_count, knows_nothing, require_fitting_labels, shifted
from evaltools.tasks.imagenet.result import Classified, Data, ExampleAnswer, ExampleRecord, ImagenetPart
from evaltools.tasks.imagenet.task import (
    ImagenetOptions,
    ImagenetTask,
    LabelledImages,
    TopKObservation,
    build_task,
    check_model,
    class_count,
    load_labelled_images,
    units_of,
)
from evaltools.tasks.shared.evaluation import (
    Evaluation,
    Findings,
    OpenConfigurations,
    read_reference_model,
    require_stated,
)
from evaltools.tasks.shared.figures import MeasuredPass
from evaltools.tasks.shared.image_input import channel_order_of, describe_normalization
from evaltools.tasks.shared.merging import with_files
from evaltools.tasks.shared.request import TaskRequest
from evaltools.tasks.shared.sound_reference import other_range_in_words

_FEWEST_FOR_CONSTANT: Final = 20


class ImagenetEvaluation(Evaluation[TopKObservation]):
    """An evaluation over labelled pictures."""

    name = "imagenet"
    options_type = ImagenetOptions
    task: ImagenetTask

    def __init__(self, request: TaskRequest) -> None:
        self.request = request
        options = self.options
        self.model = read_model(request.model_file)
        check_model(self.model, options.native, options.input_layout)
        self.labels: Final = read_labels(options.model_output_labels, "--model_output_labels", options.native)
        self.images: Final = load_labelled_images(options)
        classes = class_count(self.model)
        missing = classes - len(self.labels.lines)
        if options.label_offset is None and (abs(missing) > 1 or (missing and options.native)):
            wrong = _label_count(options, classes, self.labels)
            raise DataError(f"{wrong}. Take the label list that belongs to this model")
        class_labels = shifted(self.labels.lines, classes, options.label_offset or 0)
        if options.label_check and not options.native and not set(self.images.truths) & set(class_labels):
            raise DataError(_no_common_label(request, self.labels, self.images))
        self.reference_model = read_reference_model(request)
        models = [self.model]
        if self.reference_model is not None:
            _require_same_classes(self.reference_model, request, classes)
            models.append(self.reference_model)
        self.task = build_task(models, self.images, class_labels, options)
        self._better_order = ""

    @property
    def options(self) -> ImagenetOptions:
        """The task's own options."""
        options: ImagenetOptions = self.request.options
        return options

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated."""
        return self.images.paths

    @property
    def sent_pictures(self) -> Mapping[str, Sequence[Path]]:
        """Each part of a run gets its own pictures."""
        return {"ground_truth_images_path": self.pictures}

    def identity(self) -> RunIdentity:
        """The identity of a run: model, pictures and their labels."""
        truths = {"the ground truth": digest(self.images.truths), "the labels": self.labels.sha256}
        return with_files(self.identity_with(truths), "the pictures", self.images.paths)

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` unless one picture goes in and one vector of scores comes out."""
        for entry in opened.entries:
            _check_session(entry.session, entry.model)

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Run a few pictures to check that the labels fit."""
        if opened.runnable:
            self.try_labels(next(entry.session for entry in opened.entries if entry.model is self.model))
        return opened.runnable

    def check_on_host(self) -> None:
        """Try the labels on the reference, on the host, before the run is done elsewhere.

        Not if the host cannot run it. Raises :class:`DataError` where another reading of the labels fits far better.
        """
        configuration = self.request.reference or Configuration("label check", kernels="builtin")
        if not self.options.label_check:
            return
        with open_all([(self.model, configuration)], open_isolated, self.request.allow_fallback) as entries:
            for entry in entries.values():
                if isinstance(entry, Opened):
                    _check_session(entry.session, self.model)
                    self.try_labels(entry.session)

    def try_labels(self, session: Session) -> None:
        """Run a few pictures; raises :class:`DataError` where another reading of the labels fits far better."""
        options, labels = self.options, self.labels.lines
        task = self.task.with_input(self.task.to_tensor)
        if options.label_check and options.label_offset is None and len(labels) != len(task.class_labels):
            explanation = explain_label_count(task, session, labels)
            raise DataError(f"{_label_count(options, len(task.class_labels), self.labels)}.\n  {explanation}")
        if options.label_check and not options.native:
            self._better_order = require_fitting_labels(task, session, labels, options.label_offset or 0)

    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
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
            examples=_example_records(self.task, outcome) if self.options.record_examples else None,
        )
        return Findings(
            configurations=figures.configurations,
            sums=figures.sums,
            part=part,
            verdicts=topk_verdicts(figures.comparisons, self.options.margin),
            warnings=self._warnings(part),
        )

    def _units_of(self, name: str) -> Callable[[float], float]:
        """What makes a number of a raw score of a configuration."""
        is_other = self.reference_model is not None and name == self.request.reference_name
        return units_of((is_other and self.reference_model) or self.model, self.options.native)

    @classmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        """The number of pictures."""
        count: int = result.part.data.example_count
        return count

    def _data(self, outcome: PassOutcome[TopKObservation]) -> Data:
        options, images = self.options, self.images
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
            found.append(f"{len(skipped)} files that are not pictures were left out, such as {skipped[0]!r}")
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


def _require_same_classes(reference: ModelFile, request: TaskRequest, classes: int) -> None:
    """Raise :class:`UsageError` and its kinds where the reference's model cannot be compared."""
    check_model(reference, layout=request.options.input_layout)
    if class_count(reference) != classes:
        raise DataError(
            f"{reference.path} has {class_count(reference)} scores, {request.model_file} has {classes}; models that "
            "are compared need the same classes"
        )


def _check_session(session: Session, model: ModelFile) -> None:
    """Refuse a model whose tensors at run time are not those that its file states; raises :class:`ModelError`."""
    require_stated(model, session, "input", model.inputs[0], session.inputs[0])
    require_stated(model, session, "output", model.outputs[0], session.outputs[0])


def _label_count(options: ImagenetOptions, classes: int, labels: LabelFile) -> str:
    return f"{options.model_output_labels} has {len(labels.lines)} lines, the model's output has {classes}"


def _no_common_label(request: TaskRequest, labels: LabelFile, images: LabelledImages) -> str:
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


def _list_name(request: TaskRequest, path: Path) -> str:
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
