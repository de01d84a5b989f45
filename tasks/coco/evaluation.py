"""A detection evaluation from request to typed result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets.labels import LabelFile, read_labels
from evaltools.engine.describe import comparison_pairs
from evaltools.engine.journal import Journal
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import RunIdentity, encode
from evaltools.engine.task import Record
from evaltools.errors import DataError, InferenceError
from evaltools.metrics.coco_stats import require_evaluator
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor
from evaltools.result.evaluation import ConfigurationResult
from evaltools.tasks.coco.changes import verdicts_on_map
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping, stated_mapping
from evaltools.tasks.coco.figures import (
    BoxPairs,
    OverlappingObjects,
    compare_configurations,
    detected_pictures,
    figures_of,
)
from evaltools.tasks.coco.heads import candidates_of
from evaltools.tasks.coco.outputs import NATIVE_ORDER, operator_output_map, stated_output_map
from evaltools.tasks.coco.reading import CocoMaterial, Reading, mapping_shown, reading_of
from evaltools.tasks.coco.result import ClassMappingUsed, CocoData, CocoDetection, GroundTruthUsed, HeadUsed, OutputMap
from evaltools.tasks.coco.task import (
    CocoOptions,
    CocoRequest,
    CocoTask,
    FoundObjects,
    check_detector,
    detector_input,
    read_objects,
)
from evaltools.tasks.coco.truth import EvaluatedPictures, dense_category_ids, load_pictures
from evaltools.tasks.coco.warnings import OddPictures, general_warnings
from evaltools.tasks.shared.evaluation import Evaluation, Findings, ReadyTask
from evaltools.tasks.shared.image_input import channel_order_of, describe_normalization
from evaltools.tasks.shared.measuring import (
    OpenConfigurations,
    PassSetup,
    require_stated,
)
from evaltools.tasks.shared.one_pass import Accumulator, MeasuredPass, Pair, judge_records, sum_up
from evaltools.tasks.shared.run_identity import RunAtPlace, fact_in, with_files
from evaltools.tasks.shared.sound_reference import other_range_in_words

_OUTPUTS = "how the outputs are read"
_HEAD = "how the raw head is read"
_CLASSES = "which category a class is"


class _Notes(Struct, frozen=True):
    """How the outputs are read, None where ``trouble`` says why that cannot be told.

    ``shown`` is what the first pictures show of the category of a class, None where it was not looked at.
    """

    reading: Reading | None
    trouble: str | None = None
    shown: ClassMapping | None = None


class DetectionEvaluation(Evaluation[FoundObjects]):
    """An evaluation over annotated pictures; make it with :func:`prepare`."""

    name = "coco"

    def __init__(self, request: CocoRequest, material: CocoMaterial) -> None:
        self.request: CocoRequest = request
        self.model = material.model
        self.material: Final = material

    @property
    def example_count(self) -> int:
        """The number of pictures."""
        return len(self.pictures)

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated."""
        return self.material.pictures.paths

    def identity(self) -> RunIdentity:
        """The identity of a run: model, pictures, annotations and labels."""
        truth, labels = self.material.pictures.truth, self.material.labels
        files = {"the ground truth": truth.sha256 if truth else "", "the labels": labels.sha256 if labels else ""}
        return with_files(self.identity_with(files), "the pictures", self.pictures)

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose input is another in the runtime.

        Outputs are not checked: those of detectors may have other shapes than the file states.
        """
        stated = self.model.inputs[0]
        for session in opened.sessions.values():
            require_stated(self.model, session, "input", stated, session.inputs[0], "convert the model again")

    def ready(self, opened: OpenConfigurations, journal: Journal) -> ReadyTask[FoundObjects]:
        """The task, after a few pictures were run to find out how to read the outputs."""
        notes = _Notes(None)
        if opened.runnable:
            try:
                notes = _Notes(reading_of(self.material, list(opened.sessions.values())))
            except InferenceError as error:
                notes = _Notes(None, f"no picture could be run, so its outputs cannot be told apart: {error}")
        reading, material = notes.reading, self.material
        is_open = material.mapping is None and material.mapping_of(reading) is None
        if reading is not None and is_open and material.pictures.truth is not None:
            task = _task(self.request, material, reading)
            notes = replace(notes, shown=mapping_shown(material, task, list(opened.sessions.values())))
        journal.state(
            {
                _OUTPUTS: encode(reading if isinstance(reading, OutputMap) else None),
                _HEAD: encode(reading if isinstance(reading, HeadUsed) else None),
                _CLASSES: encode(notes.shown),
            }
        )
        return self._ready(notes)

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> ReadyTask[FoundObjects]:
        """The task, which reads outputs as the shards did."""
        folder = places[0].folders[0]
        outputs: OutputMap | None = fact_in(folder, _OUTPUTS, OutputMap | None)
        shown: ClassMapping | None = fact_in(folder, _CLASSES, ClassMapping | None)
        return self._ready(_Notes(outputs or fact_in(folder, _HEAD, HeadUsed | None), shown=shown))

    def _ready(self, notes: _Notes) -> ReadyTask[FoundObjects]:
        task = _task(self.request, self.material, notes.reading)
        setup = PassSetup(self.request.reference_name, self.pass_options)
        return ReadyTask(task, setup, notes, notes.reading is not None)

    def findings(
        self, described: Sequence[ConfigurationResult], measured: MeasuredPass, ready: ReadyTask[FoundObjects]
    ) -> Findings:
        """Latency, the COCO figures, and how far boxes agree."""
        outcome, material = measured.outcome, self.material
        truth = material.pictures.truth
        judged = [_judged(entry, outcome, ready.notes.trouble) for entry in described]
        names = [entry.name for entry in judged if entry.status == "measured"]
        objects = OverlappingObjects(truth)
        odd = OddPictures(truth, material.labels if self.request.options.native else None)
        boxes = {pair: BoxPairs() for pair in comparison_pairs(judged)}
        looked_at: dict[str, list[Accumulator[FoundObjects]]] = {name: [odd] for name in outcome.records}
        for name in names[:1]:
            looked_at[name].append(objects)
        sums = sum_up(measured, list(boxes), looked_at, {pair: [seen] for pair, seen in boxes.items()})
        records = {name: outcome.records[name] for name in names}
        detection = _detection(self.request, material, ready.notes, records, objects, boxes, outcome.preprocessing_us)
        return Findings(
            configurations=[sums.with_figures(entry) for entry in judged],
            sums=sums,
            part=detection,
            verdicts=verdicts_on_map(detection.comparisons, detection.figures, self.request.margin),
            warnings=[
                *filter(None, [other_range_in_words(material.model, material.to_tensor.value_range())]),
                *general_warnings(material.model, material.pictures, material.labels, detection, odd),
            ],
        )


def prepare(request: CocoRequest) -> DetectionEvaluation:
    """Read and check model, labels, pictures and ground truth; raises :class:`~evaltools.errors.UsageError`."""
    options = request.options
    model = read_model(request.model_file)
    candidates = candidates_of(model, options)
    if not candidates:
        check_detector(model, options.native, options.input_layout)
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
        order=options.order,
        seed=options.seed,
    )
    if pictures.truth is not None:
        require_evaluator(options.coco_evaluator)
    category_ids = dense_category_ids(pictures.truth, {candidate.head.classes for candidate in candidates})
    outputs = operator_output_map(model)
    if options.native:
        outputs = NATIVE_ORDER
        _require_valid_ids(pictures, labels)
    if options.output_map != "auto":
        outputs = stated_output_map(options.output_map, model)
    mapping = stated_mapping(
        "1" if options.native and options.class_offset == "auto" else options.class_offset, category_ids
    )
    material = CocoMaterial(model, labels, pictures, to_tensor, outputs, mapping, category_ids, candidates)
    return DetectionEvaluation(request, material)


def _require_valid_ids(pictures: EvaluatedPictures, labels: LabelFile | None) -> None:
    """Raise for class ids at which the native tool stops with ``Encountered invalid class ID``."""
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


def _task(request: CocoRequest, material: CocoMaterial, reading: Reading | None) -> CocoTask:
    """The task with this reading of the outputs. With None nothing is run, so that any reading will do."""
    if isinstance(reading, HeadUsed):
        candidate = material.candidate(reading.decoder)
        found = partial(candidate.found, coordinates=reading.coordinates)
        return CocoTask(
            material.model,
            material.pictures,
            candidate.to_tensor,
            lambda outputs, picture: found(outputs, picture=picture),
        )
    places, threshold = reading or NATIVE_ORDER, request.options.score_threshold or 0.0
    return CocoTask(
        material.model,
        material.pictures,
        material.to_tensor,
        lambda outputs, picture: read_objects(outputs, places, picture, threshold),
    )


def _judged(
    described: ConfigurationResult, outcome: PassOutcome[FoundObjects], trouble: str | None
) -> ConfigurationResult:
    judged = judge_records(described, outcome)
    is_lost = judged.status != described.status
    return replace(judged, reason=trouble) if trouble and is_lost else judged


def _detection(
    request: CocoRequest,
    material: CocoMaterial,
    notes: _Notes,
    measured: Mapping[str, Collection[Record[FoundObjects]]],
    objects: OverlappingObjects,
    boxes: Mapping[Pair, BoxPairs],
    preprocessing_us: Sequence[int],
) -> CocoDetection:
    """The class mapping comes from the first measured configuration, which is the reference if there is one."""
    options, pictures, reading = request.options, material.pictures, notes.reading
    mapping, mapping_used = choose_mapping(
        material.mapping, material.category_ids, objects.pairs, material.mapping_of(reading), notes.shown
    )
    resamples = request.bootstrap_resamples if len(measured) > 1 else 0
    found = [
        figures_of(name, records, pictures.truth, mapping, options.coco_evaluator, resamples)
        for name, records in measured.items()
    ]
    figures = [entry for entry, _ in found]
    options, to_tensor = _as_read(material, options, reading)
    return CocoDetection(
        data=coco_data(
            options,
            pictures,
            material.labels,
            to_tensor,
            output_map=reading if measured and isinstance(reading, OutputMap) else None,
            class_mapping=mapping_used if measured else None,
            preprocessing_latency=summarise_latency(preprocessing_us),
            head=reading if measured and isinstance(reading, HeadUsed) else None,
        ),
        figures=figures,
        comparisons=compare_configurations(boxes, figures, {entry.configuration: draws for entry, draws in found}),
        pictures=detected_pictures(pictures, measured, mapping) if request.keep_pictures else None,
    )


def _as_read(
    material: CocoMaterial, options: CocoOptions, reading: Reading | None
) -> tuple[CocoOptions, ImageToTensor]:
    """The options and the picture transform that were used, with the decoder's values where none were stated."""
    if not isinstance(reading, HeadUsed):
        return options, material.to_tensor
    used = material.candidate(reading.decoder)
    threshold, iou = used.score_threshold, used.nms_iou or 0.0
    return replace(used.options, score_threshold=threshold, nms_iou=iou), used.to_tensor


def coco_data(
    options: CocoOptions,
    pictures: EvaluatedPictures,
    labels: LabelFile | None,
    to_tensor: ImageToTensor,
    output_map: OutputMap | None,
    class_mapping: ClassMappingUsed | None,
    preprocessing_latency: Latency,
    head: HeadUsed | None = None,
) -> CocoData:
    """What was evaluated and how it was read; the outputs' map, class mapping and head are those found."""
    return CocoData(
        images=str(options.ground_truth_images_path),
        example_count=len(pictures.paths),
        skipped_files=len(pictures.folder.skipped),
        unlisted_pictures=len(pictures.unlisted),
        ground_truth=_ground_truth_used(pictures),
        labels_sha256=labels.sha256 if labels else None,
        normalization=describe_normalization(to_tensor),
        resize="stretch" if options.resize == "auto" else options.resize,
        score_threshold=options.score_threshold or 0.0,
        category_names=_category_names(pictures, labels),
        output_map=output_map,
        class_mapping=class_mapping,
        preprocessing_latency=preprocessing_latency,
        native=options.native,
        head=head,
        nms_iou=options.nms_iou or None,
        channel_order=channel_order_of(to_tensor),
        order=options.order,
        seed=options.seed if options.order == "random" else None,
    )


def _category_names(pictures: EvaluatedPictures, labels: LabelFile | None) -> dict[int, str]:
    """Names by number, those of the ground truth where there is one."""
    if pictures.truth is not None:
        return {category.id: category.name for category in pictures.truth.categories}
    return dict(enumerate(labels.lines)) if labels is not None else {}


def _ground_truth_used(pictures: EvaluatedPictures) -> GroundTruthUsed | None:
    """What is annotated in the pictures, None without a ground truth."""
    truth = pictures.truth
    if truth is None:
        return None
    annotations = [annotation for image in truth.images for annotation in image.annotations]
    return GroundTruthUsed(
        file=str(truth.path),
        kind=truth.kind,
        sha256=truth.sha256,
        categories=len(truth.categories),
        objects=len(annotations),
        crowd_regions=sum(annotation.is_crowd for annotation in annotations),
        pictures_without_objects=sum(not image.annotations for image in truth.images),
        dropped_by_native=truth.dropped_by_native,
        missing_pictures=len(truth.missing),
    )
