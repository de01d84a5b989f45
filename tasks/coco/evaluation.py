"""A detection evaluation from request to typed result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.datasets.labels import LabelFile, read_labels
from evaltools.engine import Execution, Open, Outcome, PassOptions, run_journal
from evaltools.engine.run_folder import digest, encode
from evaltools.errors import DataError, ImageError, InferenceError, ModelError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.metrics.coco_stats import require_evaluator
from evaltools.metrics.latency import summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.preprocess import ImageToTensor
from evaltools.report.assemble import comparison_pairs, describe_model
from evaltools.report.coco_result import (
    CocoDetection,
    OutputMap,
)
from evaltools.report.environment import describe_environment
from evaltools.report.result import SCHEMA_VERSION, ConfigurationResult, EvaluationResult
from evaltools.runtime import Session
from evaltools.runtime.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping, stated_mapping
from evaltools.tasks.coco.data import coco_data
from evaltools.tasks.coco.figures import (
    BoxPairs,
    OverlappingObjects,
    compare_configurations,
    detected_pictures,
    figures_of,
)
from evaltools.tasks.coco.outputs import (
    NATIVE_ORDER,
    operator_output_map,
    recognised_output_map,
    require_fitting,
    stated_output_map,
)
from evaltools.tasks.coco.task import (
    CocoOptions,
    CocoTask,
    Floats,
    FoundObjects,
    check_detector,
    detector_input,
    real_outputs,
)
from evaltools.tasks.coco.truth import EvaluatedPictures, dense_category_ids, load_pictures
from evaltools.tasks.coco.warnings import OddPictures, general_warnings
from evaltools.tasks.shared.evaluation import Drive, Observer, carry_out, open_configurations, require_stated
from evaltools.tasks.shared.image_input import load_picture
from evaltools.tasks.shared.measured import Measured, describe_execution, nothing_measured
from evaltools.tasks.shared.one_pass import Accumulator, Pair, judge_records, sum_up
from evaltools.tasks.shared.paired_statistics import latency_comparisons, with_conditions
from evaltools.tasks.shared.run_identity import (
    Place,
    begin_run,
    changed_meanwhile,
    fact_in,
    fingerprint_of_files,
    libraries_of,
    merged_run,
)
from evaltools.tasks.shared.startup import CHECKS, OPENING, Startup

_OUTPUTS = "how the outputs are read"
PICTURES_TRIED = 4
_MORE_PICTURES = 32


DEFAULT_RESAMPLES: Final = 1000


@dataclass(frozen=True)
class CocoRequest:
    """What to evaluate with which configurations.

    ``max_failed_examples`` None: no limit. ``keep_pictures`` puts every detection into the result. ``margin`` is the
    change of mAP, 0..1, that counts as none; changes are judged over ``bootstrap_resamples`` draws of the pictures, 0:
    not at all. ``flags`` are those that a resumed run must repeat. ``command`` is only recorded.
    """

    model_file: Path
    options: CocoOptions
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    allow_fallback: bool = False
    max_failed_examples: int | None = None
    keep_pictures: bool = False
    margin: float = DEFAULT_MARGIN
    bootstrap_resamples: int = DEFAULT_RESAMPLES
    execution: Execution = field(default_factory=Execution)
    flags: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests


@dataclass(frozen=True)
class CocoMaterial:
    """The checked inputs of an evaluation; ``outputs`` and ``mapping`` None: not stated, to be recognised."""

    model: ModelFile
    labels: LabelFile | None
    pictures: EvaluatedPictures
    to_tensor: ImageToTensor
    outputs: OutputMap | None
    mapping: ClassMapping | None
    category_ids: tuple[int, ...]


def evaluate_coco(request: CocoRequest, observer: Observer, open_with: Open = open_isolated) -> EvaluationResult:
    """Check everything, open the configurations, tell the outputs apart, run the pass, take the figures.

    Raises :class:`~evaltools.errors.UsageError` before any long work for a model, pictures or ground truth that are
    wrong. Configurations that cannot run are ``not measured`` in the result; without a single test configuration that
    can run, nothing is.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    startup = Startup()
    material = prepare(request)
    startup.mark(CHECKS)
    wanted = [(material.model, configuration) for configuration in request.configurations]
    outputs: OutputMap | None = None
    trouble = None
    with run_journal(request.execution.run_dir) as journal:
        with open_configurations(wanted, request.reference, open_with, request.allow_fallback, observer) as opened:
            advice = "convert the model again"
            for session in opened.sessions.values():
                require_stated(material.model, session, "input", material.model.inputs[0], session.inputs[0], advice)
            startup.mark(OPENING)
            identity = _identity(request, material)
            begin_run(journal, opened.described, identity, request.execution, request.command)
            measured = nothing_measured(opened.sessions)
            if opened.runnable:
                try:
                    outputs = _output_map(material, list(opened.sessions.values()))
                except InferenceError as error:
                    trouble = f"no picture could be run, so its outputs cannot be told apart: {error}"
            journal.state({_OUTPUTS: encode(outputs)})
            if outputs is not None:
                reference = request.reference.name if request.reference else None
                drive = Drive(reference, PassOptions(request.max_failed_examples))
                task = _task(request, material, outputs)
                measured = carry_out(task, opened, journal, drive, request.execution, observer, open_with, startup)
        result = _assemble(request, material, opened.described, outputs, measured, trouble, started_at, observer)
        changed = changed_meanwhile(journal, identity, _identity(request, material))
        return replace(result, warnings=[*result.warnings, *changed])


def merge_coco(request: CocoRequest, places: Sequence[Place], observer: Observer) -> EvaluationResult:
    """The result of the shards in some run folders, as if one run had done them all.

    ``places`` are where they are; with several, each did everything. Raises
    :class:`~evaltools.errors.UsageError` where they are not all the shards of this run, each finished.
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    material = prepare(request)
    outputs: OutputMap | None = fact_in(places[0].folders[0], _OUTPUTS, OutputMap | None)
    options = PassOptions(request.max_failed_examples, max_crashes=request.execution.max_crashes)
    reference = request.reference.name if request.reference else None
    task = _task(request, material, outputs or NATIVE_ORDER)
    with run_journal(None) as journal:
        merged = merged_run(journal, places, task, _identity(request, material), reference, options)
        observer.opened(merged.described)
        return _assemble(request, material, merged.described, outputs, merged.measured, None, started_at, observer)


def _task(request: CocoRequest, material: CocoMaterial, outputs: OutputMap) -> CocoTask:
    return CocoTask(material.model, material.pictures, material.to_tensor, outputs, request.options.score_threshold)


def _identity(request: CocoRequest, material: CocoMaterial) -> dict[str, str]:
    truth = material.pictures.truth
    return {
        "the task": "coco",
        "the model": material.model.sha256,
        **fingerprint_of_files("the pictures", material.pictures.paths),
        "the ground truth": truth.sha256 if truth else "",
        "the labels": material.labels.sha256 if material.labels else "",
        **libraries_of(request.configurations),
        **request.flags,
    }


def _assemble(
    request: CocoRequest,
    material: CocoMaterial,
    described: Sequence[ConfigurationResult],
    outputs: OutputMap | None,
    measured: Measured,
    trouble: str | None,
    started_at: str,
    observer: Observer,
) -> EvaluationResult:
    observer.measured()
    outcome = measured.outcome
    judged = [_judged(entry, outcome, trouble) for entry in described]
    names = [entry.name for entry in judged if entry.status == "measured"]
    objects = OverlappingObjects(material.pictures.truth)
    boxes = {pair: BoxPairs() for pair in comparison_pairs(judged)}
    odd = OddPictures(material.pictures.truth, material.labels if request.options.native else None)
    looked_at: dict[str, list[Accumulator[FoundObjects]]] = {name: [odd] for name in outcome.records}
    for name in names[:1]:
        looked_at[name].append(objects)
    sums = sum_up(measured, list(boxes), looked_at, {pair: [seen] for pair, seen in boxes.items()})
    configurations = with_conditions([sums.with_figures(entry) for entry in judged], sums)
    detection = _detection(request, material, outputs, names, outcome, objects, boxes)
    return EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task="coco",
        complete=outputs is not None and outcome.stopped is None,
        stopped=outcome.stopped,
        examples_done=outcome.examples_done,
        environment=describe_environment(list(request.command), started_at, outcome.elapsed_s),
        model=describe_model(material.model),
        data=None,
        configurations=configurations,
        comparisons=[],
        failed=sums.failed_examples(),
        warnings=general_warnings(material.model, material.pictures, material.labels, detection, odd),
        examples=None,
        coco=detection,
        execution=describe_execution(request.execution, measured),
        latency_comparisons=latency_comparisons(sums),
        pictures_digest=digest(path.name for path in material.pictures.paths),
    )


def prepare(request: CocoRequest) -> CocoMaterial:
    """Read and check model, labels, pictures and ground truth; raises :class:`~evaltools.errors.UsageError`."""
    options = request.options
    model = read_model(request.model_file)
    check_detector(model, options.native)
    labels = None
    if options.model_output_labels is not None:
        labels = read_labels(options.model_output_labels, "--model_output_labels")
    to_tensor = detector_input(model, options)
    pictures = load_pictures(
        options.ground_truth_images_path,
        options.ground_truth_annotations,
        options.ground_truth_proto,
        labels.lines if labels else (),
        options.num_images,
        options.native,
        raw_size=(to_tensor.width, to_tensor.height),
    )
    if pictures.truth is not None:
        require_evaluator(options.coco_evaluator)
    category_ids = dense_category_ids(pictures.truth)
    outputs = operator_output_map(model)
    if options.native:
        outputs = NATIVE_ORDER
        _require_valid_ids(pictures, labels)
    if options.output_map != "auto":
        outputs = stated_output_map(options.output_map, model)
    mapping = stated_mapping(
        "1" if options.native and options.class_offset == "auto" else options.class_offset, category_ids
    )
    return CocoMaterial(model, labels, pictures, to_tensor, outputs, mapping, category_ids)


def _require_valid_ids(pictures: EvaluatedPictures, labels: LabelFile | None) -> None:
    """What makes the native tool stop with ``Encountered invalid class ID``."""
    if labels is None:
        raise DataError("--compat=native needs --model_output_labels: its lines give the number of classes")
    for picture in pictures.truth.native if pictures.truth else ():
        wrong = [number for number in picture.class_ids.tolist() if not 0 <= number < len(labels.lines)]
        if wrong:
            raise DataError(
                f"Encountered invalid class ID: {wrong[0]} in {picture.name}: {labels.path} has {len(labels.lines)} "
                "lines, for the classes 0 to one less. COCO needs 91 lines, the first for the background. Leave out "
                "--compat=native to evaluate all the same"
            )


def _output_map(material: CocoMaterial, sessions: Sequence[Session]) -> OutputMap:
    """The known map, checked against real outputs, or the one that they show.

    Pictures are tried on the first session that can run them, which is the reference if there is one. Where none can,
    and the map is not known, that is the last session's :class:`InferenceError`.
    """
    for number, session in enumerate(sessions, start=1):
        try:
            if material.outputs is None:
                return _recognised(material, session)
            require_fitting(material.model, material.outputs, _probe(material, session, 1)[0])
            break
        except InferenceError:
            if material.outputs is None and number == len(sessions):
                raise
    assert material.outputs is not None
    return material.outputs


def _recognised(material: CocoMaterial, session: Session) -> OutputMap:
    """From a few pictures, or from more where nothing may have been found in those."""
    try:
        return recognised_output_map(material.model, _probe(material, session, PICTURES_TRIED))
    except ModelError:
        return recognised_output_map(material.model, _probe(material, session, _MORE_PICTURES))


def _probe(material: CocoMaterial, session: Session, count: int) -> list[list[Floats]]:
    return [real_outputs(material.model, session.run(inputs).outputs) for inputs in _first_inputs(material, count)]


def _first_inputs(material: CocoMaterial, count: int) -> list[Sequence[Array]]:
    """Inputs of the first pictures that can be read."""
    found: list[Sequence[Array]] = []
    unreadable = ""
    for path in material.pictures.paths:
        try:
            found.append((load_picture(path, material.to_tensor).values,))
        except ImageError as error:
            unreadable = f"{path.name}: {error}"
        if len(found) == count:
            break
    if not found:
        raise DataError(
            f"not one of {len(material.pictures.paths)} pictures can be read ({unreadable}); give pictures that can"
        )
    return found


def _judged(described: ConfigurationResult, outcome: Outcome[FoundObjects], trouble: str | None) -> ConfigurationResult:
    judged = judge_records(described, outcome)
    is_lost = judged.status != described.status
    return replace(judged, reason=trouble) if trouble and is_lost else judged


def _detection(
    request: CocoRequest,
    material: CocoMaterial,
    outputs: OutputMap | None,
    names: Sequence[str],
    outcome: Outcome[FoundObjects],
    objects: OverlappingObjects,
    boxes: Mapping[Pair, BoxPairs],
) -> CocoDetection:
    """The class mapping comes from the first measured configuration, which is the reference if there is one."""
    options, pictures = request.options, material.pictures
    measured = {name: outcome.records[name] for name in names}
    mapping, mapping_used = choose_mapping(material.mapping, material.category_ids, objects.pairs)
    resamples = request.bootstrap_resamples if len(measured) > 1 else 0
    figures = [
        figures_of(name, records, pictures.truth, mapping, options.coco_evaluator, resamples)
        for name, records in measured.items()
    ]
    return CocoDetection(
        data=coco_data(
            options,
            pictures,
            material.labels,
            material.to_tensor,
            output_map=outputs if measured else None,
            class_mapping=mapping_used if measured else None,
            preprocessing_latency=summarise_latency(outcome.preprocessing_us),
        ),
        figures=figures,
        comparisons=compare_configurations(boxes, figures, request.margin),
        pictures=detected_pictures(pictures, measured, mapping) if request.keep_pictures else None,
    )
