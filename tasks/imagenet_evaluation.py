"""An ImageNet evaluation from request to typed result."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final, Protocol

from evaltools.configuration import Configuration
from evaltools.datasets.labels import read_labels
from evaltools.engine import NotMeasured, Opened, Outcome, close_all, open_configuration, run_pass
from evaltools.engine.opening import Open
from evaltools.errors import DataError
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.report.assemble import (
    describe_configuration,
    describe_model,
    failed_examples,
    with_figures,
    without_figures,
)
from evaltools.report.environment import describe_environment
from evaltools.report.result import (
    SCHEMA_VERSION,
    Comparison,
    ConfigurationResult,
    Data,
    EvaluationResult,
    ExampleAnswer,
    ExampleRecord,
)
from evaltools.runtime import open_session
from evaltools.tasks.imagenet import (
    ImagenetOptions,
    ImagenetTask,
    LabelledImages,
    TopKObservation,
    build_task,
    check_model,
    class_count,
    compare,
    input_transform,
    load_labelled_images,
)
from evaltools.tasks.label_check import shifted
from evaltools.tasks.label_probe import explain_label_count, require_fitting_labels

_FEWEST_FOR_CONSTANT: Final = 20


@dataclass(frozen=True)
class ImagenetRequest:
    """What to evaluate with which configurations.

    ``max_failed_examples`` None: no limit. ``command`` is only recorded.
    """

    model_file: Path
    options: ImagenetOptions
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    allow_fallback: bool = False
    label_check: bool = True
    max_failed_examples: int | None = None
    record_examples: bool = False
    command: tuple[str, ...] = ()


class Observer(Protocol):
    """Who wants to know how the evaluation goes."""

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """Called once with what each configuration runs on, before anything is measured."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Entered around the pass; what it yields is called after each example with the failed ones so far."""


@dataclass(frozen=True)
class _Material:
    """The checked inputs of an evaluation."""

    model: ModelFile
    images: LabelledImages
    labels: list[str]
    task: ImagenetTask


def evaluate(request: ImagenetRequest, observer: Observer, open_with: Open = open_session) -> EvaluationResult:
    """Check everything, open the configurations, try the labels, run the pass.

    Raises :class:`~evaltools.errors.UsageError` before any long work for a model, pictures or labels that are wrong.
    Configurations that cannot run are ``not measured`` in the result; without a single test configuration that can run,
    nothing is.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    material = _prepare(request)
    entries = _open_all(request, material.model, open_with)
    opened = {name: entry for name, entry in entries.items() if isinstance(entry, Opened)}
    try:
        described = [
            describe_configuration(entry, "reference" if entry.configuration is request.reference else "test")
            for entry in entries.values()
        ]
        observer.opened(described)
        outcome: Outcome[TopKObservation] = Outcome()
        runnable = any(configuration.name in opened for configuration in request.tests)
        if runnable:
            _check_labels(request, material, next(iter(opened.values())))
            sessions = {name: entry.session for name, entry in opened.items()}
            with observer.progress(len(material.task.examples)) as on_example:
                outcome = run_pass(material.task, sessions, request.max_failed_examples, on_example)
    finally:
        close_all(opened.values())
    configurations = [_figures(entry, material.task, outcome) for entry in described]
    return EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task="imagenet",
        complete=runnable and outcome.stopped is None,
        stopped=outcome.stopped,
        environment=describe_environment(list(request.command), started_at, outcome.elapsed_s),
        model=describe_model(material.model),
        data=_data(request, material, outcome),
        configurations=configurations,
        comparisons=_comparisons(request, list(opened) if outcome.records else [], outcome),
        failed=failed_examples(outcome),
        warnings=_warnings(material, configurations),
        examples=_example_records(material.task, outcome) if request.record_examples else None,
    )


def _prepare(request: ImagenetRequest) -> _Material:
    options = request.options
    model = read_model(request.model_file)
    check_model(model, options.native)
    input_transform(model, options)
    labels = read_labels(options.model_output_labels, "--model_output_labels", options.native)
    images = load_labelled_images(options)
    missing = class_count(model) - len(labels)
    if options.label_offset is None and (abs(missing) > 1 or (missing and options.native)):
        raise DataError(f"{_label_count(options, model, labels)}. Take the label list that belongs to this model")
    class_labels = shifted(labels, class_count(model), options.label_offset or 0)
    unknown = set(images.truths) - set(class_labels)
    if unknown == set(images.truths) and not options.native and request.label_check:
        raise DataError(_no_common_label(options, labels, images))
    return _Material(model, images, labels, build_task(model, images, class_labels, options))


def _label_count(options: ImagenetOptions, model: ModelFile, labels: Sequence[str]) -> str:
    return f"{options.model_output_labels} has {len(labels)} lines, the model's output has {class_count(model)}"


def _no_common_label(options: ImagenetOptions, labels: Sequence[str], images: LabelledImages) -> str:
    return (
        f"none of the {len(set(images.truths))} labels in {options.ground_truth_labels} (such as "
        f"{images.truths[0]!r}) is in {options.model_output_labels} (such as {labels[-1]!r}). "
        "Both files must use the same words, letter for letter"
    )


def _open_all(request: ImagenetRequest, model: ModelFile, open_with: Open) -> dict[str, Opened | NotMeasured]:
    wanted = ((request.reference,) if request.reference else ()) + request.tests
    return {
        configuration.name: open_configuration(model, configuration, open_with, request.allow_fallback)
        for configuration in wanted
    }


def _check_labels(request: ImagenetRequest, material: _Material, opened: Opened) -> None:
    """Try a few pictures on the reference, or on the first configuration that runs."""
    options, task, labels = request.options, material.task, material.labels
    if options.label_offset is None and len(labels) != len(task.class_labels):
        explanation = explain_label_count(task, opened.session, labels)
        raise DataError(f"{_label_count(options, material.model, labels)}.\n  {explanation}")
    if request.label_check and not options.native:
        require_fitting_labels(task, opened.session, labels, options.label_offset or 0)


def _figures(
    described: ConfigurationResult, task: ImagenetTask, outcome: Outcome[TopKObservation]
) -> ConfigurationResult:
    if described.status == "not measured":
        return described
    records = outcome.of(described.name)
    if not any(record.observation for record in records):
        return without_figures(described, _why_no_figures(outcome))
    return with_figures(described, records, task.summarise(records))


def _why_no_figures(outcome: Outcome[TopKObservation]) -> str:
    if outcome.records:
        return "every example failed"
    return "no example was finished" if outcome.interrupted else "no test configuration can run"


def _data(request: ImagenetRequest, material: _Material, outcome: Outcome[TopKObservation]) -> Data:
    options, images = request.options, material.images
    return Data(
        images=str(options.ground_truth_images_path),
        example_count=len(images.paths),
        skipped_files=len(images.folder.skipped),
        denylisted=images.denylisted,
        ground_truth_sha256=_sha256(options.ground_truth_labels),
        labels_sha256=_sha256(options.model_output_labels),
        label_offset=options.label_offset or 0,
        normalization=_normalization_used(material.task),
        preprocessing_latency=summarise_latency(outcome.preprocessing_us),
    )


def _normalization_used(task: ImagenetTask) -> str:
    normalization = task.to_tensor.normalization
    return "native" if normalization is None else f"{normalization} ({normalization.source})"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _comparisons(
    request: ImagenetRequest, measured: Sequence[str], outcome: Outcome[TopKObservation]
) -> list[Comparison]:
    """Every configuration against the reference, and the other tests against the first one."""
    tests = [configuration.name for configuration in request.tests if configuration.name in measured]
    baselines = [request.reference.name] if request.reference and request.reference.name in measured else []
    pairs = [(baseline, test) for baseline in baselines for test in tests]
    pairs += [(tests[0], test) for test in tests[1:]]
    return [Comparison(baseline, other, compare(outcome, baseline, other)) for baseline, other in pairs]


def _warnings(material: _Material, configurations: Sequence[ConfigurationResult]) -> list[str]:
    found = []
    skipped = material.images.folder.skipped
    if skipped:
        found.append(f"{len(skipped)} files that are no pictures were left out, such as {skipped[0]!r}")
    repeated = [label for label, count in Counter(material.labels).items() if count > 1]
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
    answers: dict[int, dict[str, ExampleAnswer]] = {}
    for record in outcome.records:
        if record.observation is not None and record.invoke_us is not None:
            answers.setdefault(record.example.index, {})[record.configuration] = ExampleAnswer(
                classes=list(record.observation.classes),
                scores=list(record.observation.scores),
                rank=record.observation.rank,
                invoke_us=record.invoke_us,
            )
    return [_example_record(task, index, given) for index, given in sorted(answers.items())]


def _example_record(task: ImagenetTask, index: int, answers: Mapping[str, ExampleAnswer]) -> ExampleRecord:
    return ExampleRecord(task.examples[index].id, task.images.truths[index], dict(answers))
