"""An ImageNet evaluation from request to typed result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.datasets.labels import LabelFile, read_labels
from evaltools.engine import Execution, Open, Opened, Outcome, PassOptions, open_all, run_journal
from evaltools.engine.run_folder import digest
from evaltools.errors import DataError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.report.assemble import describe_model
from evaltools.report.environment import describe_environment
from evaltools.report.result import (
    SCHEMA_VERSION,
    ConfigurationResult,
    Data,
    EvaluationResult,
    ExampleAnswer,
    ExampleRecord,
)
from evaltools.runtime import Session
from evaltools.runtime.isolated import open_isolated
from evaltools.tasks.imagenet.figures import imagenet_figures
from evaltools.tasks.imagenet.label_check import shifted
from evaltools.tasks.imagenet.label_probe import explain_label_count, require_fitting_labels
from evaltools.tasks.imagenet.task import (
    ImagenetOptions,
    ImagenetTask,
    LabelledImages,
    TopKObservation,
    build_task,
    check_model,
    check_session,
    class_count,
    load_labelled_images,
)
from evaltools.tasks.shared.evaluation import Drive, Observer, carry_out, open_configurations
from evaltools.tasks.shared.image_input import describe_normalization
from evaltools.tasks.shared.measured import Measured, describe_execution, nothing_measured
from evaltools.tasks.shared.run_identity import (
    Place,
    begin_run,
    changed_meanwhile,
    fingerprint_of_files,
    libraries_of,
    merged_run,
)
from evaltools.tasks.shared.startup import CHECKS, OPENING, Startup

_FEWEST_FOR_CONSTANT: Final = 20


@dataclass(frozen=True)
class ImagenetRequest:
    """What to evaluate with which configurations.

    ``max_failed_examples`` None: no limit. ``margin`` is the change of accuracy, 0..1, that counts as none in verdicts.
    ``flags`` are those that a resumed run must repeat. ``command`` is only recorded.
    """

    model_file: Path
    options: ImagenetOptions
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    allow_fallback: bool = False
    label_check: bool = True
    max_failed_examples: int | None = None
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN
    execution: Execution = field(default_factory=Execution)
    flags: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests


@dataclass(frozen=True)
class ImagenetMaterial:
    """The checked inputs of an evaluation."""

    model: ModelFile
    images: LabelledImages
    labels: LabelFile
    task: ImagenetTask


def evaluate(request: ImagenetRequest, observer: Observer, open_with: Open = open_isolated) -> EvaluationResult:
    """Check everything, open the configurations, try the labels, run the pass.

    Raises :class:`~evaltools.errors.UsageError` before any long work for a model, pictures or labels that are wrong.
    Configurations that cannot run are ``not measured`` in the result; without a single test configuration that can run,
    nothing is.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    startup = Startup()
    material = prepare(request)
    startup.mark(CHECKS)
    wanted = [(material.model, configuration) for configuration in request.configurations]
    with run_journal(request.execution.run_dir) as journal:
        with open_configurations(wanted, request.reference, open_with, request.allow_fallback, observer) as opened:
            for session in opened.sessions.values():
                check_session(session, material.model)
            startup.mark(OPENING)
            identity = _identity(request, material)
            begin_run(journal, opened.described, identity, request.execution, request.command)
            measured = nothing_measured(opened.sessions)
            if opened.runnable:
                _check_labels(request, material, next(iter(opened.sessions.values())))
                reference = request.reference.name if request.reference else None
                drive = Drive(reference, PassOptions(request.max_failed_examples))
                measured = carry_out(
                    material.task, opened, journal, drive, request.execution, observer, open_with, startup
                )
        result = _assemble(request, material, opened.described, measured, started_at, observer)
        changed = changed_meanwhile(journal, identity, _identity(request, material))
        return replace(result, warnings=[*result.warnings, *changed])


def merge(request: ImagenetRequest, places: Sequence[Place], observer: Observer) -> EvaluationResult:
    """The result of the shards in some run folders, as if one run had done them all.

    ``places`` are where they are; with several, each did everything. Raises
    :class:`~evaltools.errors.UsageError` where they are not all the shards of this run, each finished.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    material = prepare(request)
    with run_journal(None) as journal:
        options = PassOptions(request.max_failed_examples, max_crashes=request.execution.max_crashes)
        reference = request.reference.name if request.reference else None
        merged = merged_run(journal, places, material.task, _identity(request, material), reference, options)
        observer.opened(merged.described)
        return _assemble(request, material, merged.described, merged.measured, started_at, observer)


def _assemble(
    request: ImagenetRequest,
    material: ImagenetMaterial,
    described: Sequence[ConfigurationResult],
    measured: Measured,
    started_at: str,
    observer: Observer,
) -> EvaluationResult:
    observer.measured()
    outcome = measured.outcome
    figures = imagenet_figures(described, measured, material.task.top_k, request.margin)
    return EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task="imagenet",
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped,
        examples_done=outcome.examples_done,
        environment=describe_environment(list(request.command), started_at, outcome.elapsed_s),
        model=describe_model(material.model),
        data=_data(request, material, outcome),
        configurations=figures.configurations,
        comparisons=figures.comparisons,
        failed=figures.failed,
        warnings=_warnings(material, figures.configurations),
        examples=_example_records(material.task, outcome) if request.record_examples else None,
        execution=describe_execution(request.execution, measured),
        latency_comparisons=figures.latency_comparisons,
        pictures_digest=digest(path.name for path in material.images.paths),
    )


def _identity(request: ImagenetRequest, material: ImagenetMaterial) -> dict[str, str]:
    return {
        "the task": "imagenet",
        "the model": material.model.sha256,
        **fingerprint_of_files("the pictures", material.images.paths),
        "the ground truth": digest(material.images.truths),
        "the labels": material.labels.sha256,
        **libraries_of(request.configurations),
        **request.flags,
    }


def prepare(request: ImagenetRequest) -> ImagenetMaterial:
    """Read and check model, labels and pictures; raises :class:`~evaltools.errors.UsageError` and its kinds."""
    options = request.options
    model = read_model(request.model_file)
    check_model(model, options.native)
    labels = read_labels(options.model_output_labels, "--model_output_labels", options.native)
    images = load_labelled_images(options)
    classes = class_count(model)
    missing = classes - len(labels.lines)
    if options.label_offset is None and (abs(missing) > 1 or (missing and options.native)):
        raise DataError(f"{_label_count(options, classes, labels)}. Take the label list that belongs to this model")
    class_labels = shifted(labels.lines, classes, options.label_offset or 0)
    if request.label_check and not options.native and not set(images.truths) & set(class_labels):
        raise DataError(_no_common_label(options, labels, images))
    return ImagenetMaterial(model, images, labels, build_task(model, images, class_labels, options))


def check_labels(request: ImagenetRequest, material: ImagenetMaterial, open_with: Open = open_isolated) -> None:
    """Try the labels on the reference here, for a run that is done elsewhere; not where it cannot run here.

    Raises :class:`DataError` where another reading of them fits far better.
    """
    configuration = request.reference or Configuration("label check", kernels="builtin")
    with open_all([(material.model, configuration)], open_with, request.allow_fallback) as entries:
        for entry in entries.values():
            if isinstance(entry, Opened):
                check_session(entry.session, material.model)
                _check_labels(request, material, entry.session)


def _label_count(options: ImagenetOptions, classes: int, labels: LabelFile) -> str:
    return f"{options.model_output_labels} has {len(labels.lines)} lines, the model's output has {classes}"


def _no_common_label(options: ImagenetOptions, labels: LabelFile, images: LabelledImages) -> str:
    return (
        f"none of the {len(set(images.truths))} labels in {options.ground_truth_labels} (such as "
        f"{images.truths[0]!r}) is in {options.model_output_labels} (such as {labels.lines[-1]!r}). "
        "Both files must use the same words, letter for letter"
    )


def _check_labels(request: ImagenetRequest, material: ImagenetMaterial, session: Session) -> None:
    """Try a few pictures on the reference, or on the first configuration that runs."""
    options, task, labels = request.options, material.task, material.labels.lines
    if options.label_offset is None and len(labels) != len(task.class_labels):
        explanation = explain_label_count(task, session, labels)
        raise DataError(f"{_label_count(options, len(task.class_labels), material.labels)}.\n  {explanation}")
    if request.label_check and not options.native:
        require_fitting_labels(task, session, labels, options.label_offset or 0)


def _data(request: ImagenetRequest, material: ImagenetMaterial, outcome: Outcome[TopKObservation]) -> Data:
    options, images = request.options, material.images
    return Data(
        images=str(options.ground_truth_images_path),
        example_count=len(images.paths),
        skipped_files=len(images.folder.skipped),
        denylisted=images.denylisted,
        ground_truth_sha256=images.truths_sha256,
        labels_sha256=material.labels.sha256,
        label_offset=options.label_offset or 0,
        normalization=describe_normalization(material.task.to_tensor),
        preprocessing_latency=summarise_latency(outcome.preprocessing_us),
    )


def _warnings(material: ImagenetMaterial, configurations: Sequence[ConfigurationResult]) -> list[str]:
    found = []
    skipped = material.images.folder.skipped
    if skipped:
        found.append(f"{len(skipped)} files that are no pictures were left out, such as {skipped[0]!r}")
    repeated = [label for label, count in Counter(material.labels.lines).items() if count > 1]
    if repeated:
        example = f"such as {repeated[0]!r}; either output counts as right"
        found.append(f"labels that stand for more than one output: {len(repeated)}, {example}")
    unknown = sorted(set(material.images.truths) - set(material.task.class_labels))
    if unknown:
        example = f"such as {unknown[0]!r}; they count as wrong"
        found.append(f"ground truth labels that are not in the label list: {len(unknown)}, {example}")
    for configuration in configurations:
        found.extend(_signs_of_damage(configuration))
    return found


def _signs_of_damage(configuration: ConfigurationResult) -> list[str]:
    metrics = configuration.classification
    if metrics is None:
        return []
    found = []
    if metrics.outputs_with_nonfinite:
        found.append(f"{configuration.name}: {metrics.outputs_with_nonfinite} outputs hold NaN or infinite scores")
    if metrics.distinct_answers == 1 and metrics.topk.example_count >= _FEWEST_FOR_CONSTANT:
        found.append(f"{configuration.name}: the same class came first for every picture")
    return found


def _example_records(task: ImagenetTask, outcome: Outcome[TopKObservation]) -> list[ExampleRecord]:
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
