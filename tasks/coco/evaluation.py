"""A detection evaluation from request to typed result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.datasets.labels import LabelFile, read_labels
from evaltools.engine.describe import comparison_pairs
from evaltools.engine.journal import Journal
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import RunIdentity, encode
from evaltools.engine.task import Record
from evaltools.errors import DataError, InferenceError, OutputError
from evaltools.metrics.coco_stats import require_evaluator
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.model import ModelFile, read_model
from evaltools.preprocess import ImageToTensor
from evaltools.request import Options, Request
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
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
from evaltools.tasks.coco.report import lines_of_detections, plan_detections, write_detections
from evaltools.tasks.coco.result import ClassMappingUsed, CocoData, CocoDetection, GroundTruthUsed, HeadUsed, OutputMap
from evaltools.tasks.coco.task import (
    DEFAULT_EVALUATOR,
    CocoOptions,
    CocoTask,
    FoundObjects,
    ReadSide,
    check_detector,
    detector_input,
    read_objects,
)
from evaltools.tasks.coco.truth import EvaluatedPictures, dense_category_ids, load_pictures
from evaltools.tasks.coco.warnings import OddPictures, general_warnings
from evaltools.tasks.shared.evaluation import (
    Evaluation,
    Findings,
    OpenConfigurations,
    read_reference_model,
    require_stated,
)
from evaltools.tasks.shared.figures import Accumulator, MeasuredPass, Pair, judge_records, sum_up
from evaltools.tasks.shared.image_input import channel_order_of, describe_normalization
from evaltools.tasks.shared.merging import RunAtPlace, fact_in, with_files
from evaltools.tasks.shared.request import TaskRequest
from evaltools.tasks.shared.sound_reference import other_range_in_words

_OUTPUTS: Final = "how the outputs are read"
_HEAD: Final = "how the raw head is read"
_CLASSES: Final = "which category a class is"
_OF_REFERENCE: Final = " of the reference's model"


class _Known(Struct, frozen=True):
    """How the outputs of a model are read, None where that is not known.

    ``shown`` is what the first pictures show of the category of a class, None where it was not looked at.
    """

    reading: Reading | None = None
    shown: ClassMapping | None = None


class DetectionEvaluation(Evaluation[FoundObjects]):
    """An evaluation over annotated pictures.

    ``materials`` are those of the model under test and, if it is another, of the reference's.
    """

    name = "coco"
    options_type = CocoOptions
    task: CocoTask

    def __init__(self, request: TaskRequest) -> None:
        self.request = request
        options = self.options
        labels = None
        if options.model_output_labels is not None:
            labels = read_labels(options.model_output_labels, "--model_output_labels")
        self.material: Final = _material(read_model(request.model_file), options, labels)
        self.model = self.material.model
        self.reference_model = read_reference_model(request)
        self.materials: Final = [self.material]
        if self.reference_model is not None:
            self.materials.append(_material(self.reference_model, options, labels, self.material.pictures))
        self.known = [_Known() for _ in self.materials]
        self.trouble = ""
        self.task = self._task()

    @property
    def options(self) -> CocoOptions:
        """The task's own options."""
        options: CocoOptions = self.request.options
        return options

    @classmethod
    def more_files(cls, request: Request, outputs: Iterable[Path]) -> Any:
        """The files of ``--detections_path``."""
        return plan_detections(request, outputs)

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated."""
        return self.material.pictures.paths

    @property
    def sent_pictures(self) -> Mapping[str, Sequence[Path]]:
        """The pictures that are evaluated."""
        return {"ground_truth_images_path": self.pictures}

    def identity(self) -> RunIdentity:
        """The identity of a run: model, pictures, annotations and labels."""
        truth, labels = self.material.pictures.truth, self.material.labels
        files = {"the ground truth": truth.sha256 if truth else "", "the labels": labels.sha256 if labels else ""}
        return with_files(self.identity_with(files), "the pictures", self.pictures)

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose input is another in the runtime.

        Outputs are not checked: those of detectors may have other shapes than the file states.
        """
        for entry in opened.entries:
            require_stated(entry.model, entry.session, "input", entry.model.inputs[0], entry.session.inputs[0])

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Run a few pictures to find out how to read the outputs."""
        if opened.runnable:
            try:
                self.known = [self._found_out(material, opened) for material in self.materials]
            except InferenceError as error:
                self.trouble = f"no picture could be run, so its outputs cannot be distinguished: {error}"
        for suffix, known in zip(("", _OF_REFERENCE), self.known, strict=False):
            reading = known.reading
            journal.state(
                {
                    _OUTPUTS + suffix: encode(reading if isinstance(reading, OutputMap) else None),
                    _HEAD + suffix: encode(reading if isinstance(reading, HeadUsed) else None),
                    _CLASSES + suffix: encode(known.shown),
                }
            )
        self.task = self._task()
        return self.known[0].reading is not None

    def _found_out(self, material: CocoMaterial, opened: OpenConfigurations) -> _Known:
        """What the first pictures show, on the sessions of the material's model."""
        sessions = [entry.session for entry in opened.entries if entry.model is material.model]
        if not sessions:
            return _Known()
        reading = reading_of(material, sessions)
        is_open = material.mapping is None and material.mapping_of(reading) is None
        if not is_open or material.pictures.truth is None:
            return _Known(reading)
        task = CocoTask(material.pictures, [self._side(material, reading)])
        return _Known(reading, mapping_shown(material, task, sessions))

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> None:
        """Read outputs as the shards did."""
        folder = places[0].folders[0]
        self.known = []
        for suffix in ("", _OF_REFERENCE)[: len(self.materials)]:
            outputs: OutputMap | None = fact_in(folder, _OUTPUTS + suffix, OutputMap | None)
            shown: ClassMapping | None = fact_in(folder, _CLASSES + suffix, ClassMapping | None)
            head: HeadUsed | None = fact_in(folder, _HEAD + suffix, HeadUsed | None)
            self.known.append(_Known(outputs or head, shown))
        self.task = self._task()

    def _task(self) -> CocoTask:
        """The task with what is known of the outputs; where nothing is known nothing is run, so any reading will do."""
        readings = [known.reading for known in self.known]
        return CocoTask(self.material.pictures, list(map(self._side, self.materials, readings)))

    def _side(self, material: CocoMaterial, reading: Reading | None) -> ReadSide:
        if isinstance(reading, HeadUsed):
            candidate = material.candidate(reading.decoder)
            found = partial(candidate.found, coordinates=reading.coordinates)
            return ReadSide(
                material.model, candidate.to_tensor, lambda outputs, picture: found(outputs, picture=picture)
            )
        places, threshold = reading or NATIVE_ORDER, self.options.score_threshold or 0.0
        return ReadSide(
            material.model,
            material.to_tensor,
            lambda outputs, picture: read_objects(outputs, places, picture, threshold),
        )

    def _place(self, name: str) -> int:
        """The place of a configuration's material."""
        return len(self.materials) - 1 if name == self.request.reference_name else 0

    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
        """Latency, the COCO figures, and how far boxes agree."""
        outcome, material = measured.outcome, self.material
        truth = material.pictures.truth
        judged = [_judged(entry, outcome, self.trouble) for entry in described]
        names = [entry.name for entry in judged if entry.status == "measured"]
        odd = OddPictures(truth, material.labels if self.options.native else None)
        before = [self._mapping(place, []) for place in range(len(self.materials))]
        are_alike = len({mapping.name for mapping, _ in before}) == 1
        boxes = {
            pair: BoxPairs(None if are_alike else tuple(before[self._place(name)][0] for name in pair))
            for pair in comparison_pairs(judged)
        }
        looked_at: dict[str, list[Accumulator[FoundObjects]]] = {name: [odd] for name in outcome.records}
        objects: dict[int, OverlappingObjects] = {}
        for name in names:
            if self._place(name) not in objects:
                objects[self._place(name)] = OverlappingObjects(truth)
                looked_at[name].append(objects[self._place(name)])
        sums = sum_up(measured, list(boxes), looked_at, {pair: [seen] for pair, seen in boxes.items()})
        records = {name: outcome.records[name] for name in names}
        mappings = {place: self._mapping(place, seen.pairs) for place, seen in objects.items()}
        detection = self._detection(records, mappings, boxes, outcome.preprocessing_us)
        return Findings(
            configurations=[sums.with_figures(entry) for entry in judged],
            sums=sums,
            part=detection,
            verdicts=verdicts_on_map(detection.comparisons, detection.figures, self.options.margin),
            warnings=[
                *filter(None, [other_range_in_words(material.model, material.to_tensor.value_range())]),
                *general_warnings(material.model, material.pictures, material.labels, detection, odd),
            ],
        )

    def _mapping(self, place: int, pairs: Sequence[tuple[int, int]]) -> tuple[ClassMapping, ClassMappingUsed]:
        """Which category a class of a model is, from what is known and the ``pairs`` that were found."""
        material, known = self.materials[place], self.known[place]
        return choose_mapping(
            material.mapping, material.category_ids, pairs, material.mapping_of(known.reading), known.shown
        )

    def _detection(
        self,
        measured: Mapping[str, Collection[Record[FoundObjects]]],
        mappings: Mapping[int, tuple[ClassMapping, ClassMappingUsed]],
        boxes: Mapping[Pair, BoxPairs],
        preprocessing_us: Sequence[int],
    ) -> CocoDetection:
        """What is shown of the reading is that of the model under test."""
        options, pictures, reading = self.options, self.material.pictures, self.known[0].reading
        resamples = options.bootstrap_resamples if len(measured) > 1 else 0
        evaluator = options.coco_evaluator or DEFAULT_EVALUATOR
        used = {name: mappings[self._place(name)][0] for name in measured}
        found = [
            figures_of(name, records, pictures.truth, used[name], evaluator, resamples)
            for name, records in measured.items()
        ]
        figures = [entry for entry, _ in found]
        options, to_tensor = _as_read(self.material, options, reading)
        shown = mappings.get(0) or next(iter(mappings.values()), None)
        return CocoDetection(
            data=coco_data(
                options,
                pictures,
                self.material.labels,
                to_tensor,
                output_map=reading if measured and isinstance(reading, OutputMap) else None,
                class_mapping=shown[1] if shown else None,
                preprocessing_latency=summarise_latency(preprocessing_us),
                head=reading if measured and isinstance(reading, HeadUsed) else None,
            ),
            figures=figures,
            comparisons=compare_configurations(boxes, figures, {entry.configuration: draws for entry, draws in found}),
            pictures=detected_pictures(pictures, measured, used) if options.keeps_pictures else None,
        )

    @classmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        """The number of pictures."""
        count: int = result.part.data.example_count
        return count

    @classmethod
    def as_asked(cls, result: EvaluationResult, options: Options) -> EvaluationResult:
        """The result without the detections that were kept only for other files."""
        if options.is_on("record_examples"):
            return result
        return replace(result, part=replace(result.part, pictures=None))

    @classmethod
    def debug_lines(cls, result: EvaluationResult, options: Options) -> list[str]:
        """Every detection, where that was asked for."""
        return lines_of_detections(result) if options.is_on("debug_mode") else []

    @classmethod
    def write_more(cls, result: EvaluationResult, files: Any, console: Console) -> list[OutputError]:
        """Write the files of ``--detections_path``."""
        return write_detections(result, files, console)


def _material(
    model: ModelFile, options: CocoOptions, labels: LabelFile | None, known: EvaluatedPictures | None = None
) -> CocoMaterial:
    """What one model is evaluated with; the pictures and their truth are read unless they are ``known``."""
    candidates = candidates_of(model, options)
    if not candidates:
        check_detector(model, options.native, options.input_layout)
    to_tensor = detector_input(model, options)
    pictures = known or load_pictures(
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
        require_evaluator(options.coco_evaluator or DEFAULT_EVALUATOR)
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
    return CocoMaterial(model, labels, pictures, to_tensor, outputs, mapping, category_ids, candidates)


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


def _judged(
    described: ConfigurationResult, outcome: PassOutcome[FoundObjects], trouble: str | None
) -> ConfigurationResult:
    judged = judge_records(described, outcome)
    is_lost = judged.status != described.status
    return replace(judged, reason=trouble) if trouble and is_lost else judged


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
