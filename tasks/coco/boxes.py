"""The metric of a detector's boxes: what a run's records say of them, from mAP to the pictures that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.metrics.coco_stats import CocoEvaluator, require_evaluator
from evaltools.preprocess import ImageToTensor
from evaltools.result.evaluation import ConfigurationResult
from evaltools.tasks.coco.changes import verdicts_on_map
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping
from evaltools.tasks.coco.detector import DetectorOptions
from evaltools.tasks.coco.figures import (
    BoxPairs,
    OverlappingObjects,
    compare_configurations,
    detected_pictures,
    figures_of,
)
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.reading import Choice, DetectionData
from evaltools.tasks.coco.result import BoxesPart, ClassMappingUsed, CocoData, GroundTruthUsed
from evaltools.tasks.coco.truth import EvaluatedPictures
from evaltools.tasks.coco.warnings import OddPictures, general_warnings
from evaltools.tasks.own.collecting import Concluded, RecordsOfRun
from evaltools.tasks.own.definition import Whole
from evaltools.tasks.own.steps import ObservedScores
from evaltools.tasks.shared.figures import RunSums
from evaltools.tasks.shared.image_input import channel_order_of, describe_normalization

DEFAULT_EVALUATOR: Final[CocoEvaluator] = "pycocotools"
_FEWEST_RESAMPLES: Final = 100
_MOST_RESAMPLES: Final = 100_000


class Judging(Struct, frozen=True):
    """How figures are taken and changes judged.

    Changes are judged over ``resamples`` draws of the pictures, 0: not at all. ``keeps_pictures``: every detection is
    wanted. ``evaluator`` None: the default one, which needs a truth like every other.
    """

    evaluator: CocoEvaluator | None = None
    resamples: int = 1000
    keeps_pictures: bool = False
    has_truth: bool = True

    def __post_init__(self) -> None:
        if self.resamples and not _FEWEST_RESAMPLES <= self.resamples <= _MOST_RESAMPLES:
            raise UsageError(
                f"--bootstrap_resamples={self.resamples}: use {_FEWEST_RESAMPLES} to {_MOST_RESAMPLES}, or 0 to judge "
                "no change"
            )
        if self.evaluator is not None and not self.has_truth:
            raise UsageError("--coco_evaluator has no effect without a ground truth; give one, or leave it out")
        if self.has_truth:
            require_evaluator(self.used)

    @property
    def used(self) -> CocoEvaluator:
        """What takes the figures."""
        return self.evaluator or DEFAULT_EVALUATOR


@dataclass(frozen=True, kw_only=True)
class Boxes(Whole):
    """The boxes of each picture, as :meth:`~evaltools.tasks.coco.objects.FoundObjects.as_rows` has them.

    ``choices`` say by model how its outputs are read.
    """

    part: ClassVar[str] = "boxes"
    collector: ClassVar[str] = "evaltools.tasks.coco.boxes:CollectedBoxes"
    name: str = "boxes"
    data: DetectionData
    judging: Judging
    choices: tuple[Choice, ...]


class _OfObjects(Protocol):
    def add(self, example: int, observation: FoundObjects, /) -> None: ...


class _Seen:
    """Gives what was observed of a picture, as objects, to others."""

    def __init__(self, *others: _OfObjects) -> None:
        self._others = others

    def add(self, example: int, observation: ObservedScores[Any]) -> None:
        found = objects_in(observation)
        for other in self._others:
            other.add(example, found)


class _SeenOfPair:
    def __init__(self, pairs: BoxPairs) -> None:
        self._pairs = pairs

    def add(self, example: int, of_baseline: ObservedScores[Any], of_other: ObservedScores[Any]) -> None:
        self._pairs.add(example, objects_in(of_baseline), objects_in(of_other))


def objects_in(observation: ObservedScores[Any]) -> FoundObjects:
    """What was found in a picture; raises :class:`~evaltools.errors.DataError` for a damaged record."""
    return FoundObjects.of_rows(observation.whole)


class CollectedBoxes:
    """The boxes of all configurations; it is a :class:`~evaltools.tasks.own.collecting.Collected`."""

    def __init__(self, metric: Boxes, run: RecordsOfRun) -> None:
        self._metric, self._run = metric, run
        data = metric.data
        truth = data.pictures.truth
        self._odd = OddPictures(truth, data.labels if data.options.native else None, run.outcome.names)
        self._objects: dict[int, OverlappingObjects] = {}
        watching: dict[str, list[_OfObjects]] = {name: [self._odd] for name in run.outcome.records}
        for name in run.measured:
            place = self._place(name)
            if place not in self._objects:
                self._objects[place] = OverlappingObjects(truth)
                watching[name].append(self._objects[place])
        self.own: Final = {name: [_Seen(*others)] for name, others in watching.items()}
        before = [self._mapping(place)[0] for place in range(len(data.sides))]
        are_alike = len({mapping.name for mapping in before}) == 1
        self._boxes = {
            pair: BoxPairs(None if are_alike else tuple(before[self._place(name)] for name in pair))
            for pair in run.pairs
        }
        self.paired: Final = {pair: [_SeenOfPair(boxes)] for pair, boxes in self._boxes.items()}

    def _place(self, name: str) -> int:
        """The place of a configuration's model."""
        return len(self._metric.data.sides) - 1 if name == self._run.reference else 0

    def _mapping(self, place: int, pairs: Sequence[tuple[int, int]] = ()) -> tuple[ClassMapping, ClassMappingUsed]:
        """Which category a class of a model is, from what is known and the ``pairs`` that were found."""
        side, choice = self._metric.data.sides[place], self._metric.choices[place]
        return choose_mapping(side.mapping, side.category_ids, pairs, side.mapping_of(choice.head), choice.shown)

    def conclude(
        self,
        configurations: Sequence[ConfigurationResult],
        sums: RunSums,
    ) -> Concluded:
        """The figures of COCO and of the native tool, how far boxes agree, verdicts on mAP."""
        metric, run = self._metric, self._run
        data, pictures = metric.data, metric.data.pictures
        found = {
            name: [
                (record.example, objects_in(record.observation))
                for record in run.outcome.records[name]
                if record.observation is not None
            ]
            for name in run.measured
        }
        mappings = {place: self._mapping(place, seen.pairs) for place, seen in self._objects.items()}
        used = {name: mappings[self._place(name)][0] for name in found}
        resamples = metric.judging.resamples if len(found) > 1 else 0
        taken = [
            figures_of(name, own, pictures.truth, used[name], metric.judging.used, resamples)
            for name, own in found.items()
        ]
        figures = [entry for entry, _ in taken]
        draws = {entry.configuration: categories for entry, categories in taken}
        shown = mappings.get(0) or next(iter(mappings.values()), None)
        keeps = metric.judging.keeps_pictures or run.keeps_examples or run.has_page
        part = BoxesPart(
            data=data_of(data, metric.choices[0], shown[1] if shown else None, is_measured=bool(found)),
            figures=figures,
            comparisons=compare_configurations(self._boxes, figures, draws),
            pictures=detected_pictures(pictures, found, used) if keeps else None,
        )
        warnings = general_warnings(data.sides[0].model, pictures, data.labels, part, self._odd)
        return Concluded(part, verdicts_on_map(part.comparisons, figures, run.margin), warnings)


def data_of(
    data: DetectionData, choice: Choice, mapping: ClassMappingUsed | None = None, is_measured: bool = False
) -> CocoData:
    """What was evaluated, and how the model under test was read; the outputs are named where it was measured."""
    options, to_tensor = _as_read(data, choice)
    pictures = data.pictures
    return CocoData(
        skipped_files=len(pictures.folder.skipped),
        unlisted_pictures=len(pictures.unlisted),
        ground_truth=_ground_truth_used(pictures),
        labels_sha256=data.labels.sha256 if data.labels else None,
        normalization=describe_normalization(to_tensor),
        resize="stretch" if options.resize == "auto" else options.resize,
        score_threshold=options.score_threshold or 0.0,
        category_names=_category_names(data),
        output_map=choice.outputs if is_measured else None,
        class_mapping=mapping,
        native=options.native,
        head=choice.head if is_measured else None,
        nms_iou=options.nms_iou or None,
        channel_order=channel_order_of(to_tensor),
    )


def _as_read(data: DetectionData, choice: Choice) -> tuple[DetectorOptions, ImageToTensor]:
    """The options and the picture transform that were used, with the decoder's values where none were stated."""
    side = data.sides[0]
    if choice.head is None:
        return data.options, side.to_tensor
    used = side.candidate(choice.head.decoder)
    threshold, iou = used.score_threshold, used.nms_iou or 0.0
    return replace(used.options, score_threshold=threshold, nms_iou=iou), used.to_tensor


def _category_names(data: DetectionData) -> dict[int, str]:
    """Names by number, those of the ground truth where there is one."""
    if data.pictures.truth is not None:
        return {category.id: category.name for category in data.pictures.truth.categories}
    return dict(enumerate(data.labels.lines)) if data.labels is not None else {}


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
