"""The metric of a detector's boxes: what a run's records say of them, from mAP to the pictures that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.metrics.coco_stats import CocoEvaluator, require_evaluator
from evaltools.result.result import Row
from evaltools.tasks.coco.changes import corrected
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping, class_pairs
from evaltools.tasks.coco.conclude import concluded
from evaltools.tasks.coco.figures import compared, detected_pictures, measured
from evaltools.tasks.coco.objects import Found
from evaltools.tasks.coco.reading import Choice, DetectionData, Side
from evaltools.tasks.coco.result import ClassMappingUsed, CocoData, Detected
from evaltools.tasks.coco.truth import Truth
from evaltools.tasks.coco.warnings import general_warnings
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun, reference_among
from evaltools.tasks.framework.definition import Whole
from evaltools.tasks.framework.image_input import channel_order_of, describe_normalization

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
    """The boxes of each picture; ``choices`` say by model how its outputs are read."""

    concluded_by: ClassVar[str] = "evaltools.tasks.coco.boxes:conclude"
    kept: ClassVar[str] = "evaltools.tasks.coco.objects:FoundObjects"
    name: str = "boxes"
    data: DetectionData
    judging: Judging
    choices: tuple[Choice, ...]


StatedPrecision = tuple[tuple[float, ...], float]
"""The average precision at each threshold, and their mean, as the native tool states them."""


def conclude(
    metric: Boxes,
    run: RecordsOfRun,
    configurations: Sequence[Row],
    stated: Mapping[str, StatedPrecision] | None = None,
) -> Concluded:
    """The figures of COCO and of the native tool, how far boxes agree, verdicts on mAP.

    ``stated`` has the native tool's own mAP by configuration, where that tool measured.
    """
    data, judging = metric.data, metric.judging
    pictures, truth = data.pictures, data.pictures.truth
    every: dict[str, Found] = {
        name: {each.example: each.observation.whole for each in records if each.observation is not None}
        for name, records in run.outcome.records.items()
    }
    places = {name: len(data.sides) - 1 if name == run.reference else 0 for name in run.measured}
    chosen: dict[int, tuple[ClassMapping, ClassMappingUsed]] = {}
    for name, place in places.items():
        if place not in chosen:
            side, choice = data.sides[place], metric.choices[place]
            pairs = class_pairs(every[name], truth)[0] if truth else []
            of_head = side.mapping_of(choice.head)
            chosen[place] = choose_mapping(side.mapping, side.category_ids, pairs, of_head, choice.shown)
    resamples = judging.resamples if len(places) > 1 else 0
    known = [_known(truth, side, choice) for side, choice in zip(data.sides, metric.choices, strict=True)]
    taken = {
        name: measured(name, every[name], known[place], chosen[place][0], judging.used, resamples)
        for name, place in places.items()
    }
    for name, (thresholds, overall) in (stated or {}).items():
        each = taken[name]
        if each.figures.native is not None:
            native = replace(each.figures.native, thresholds=thresholds, overall=overall)
            taken[name] = replace(each, figures=replace(each.figures, native=native))
    shown = chosen.get(0) or next(iter(chosen.values()), None)
    read = data_of(data, metric.choices[0], shown[1] if shown else None)
    detected = Detected(
        data=read if stated is None else replace(read, native=True),
        figures=[each.figures for each in taken.values()],
        comparisons=corrected([compared(taken[baseline], taken[other]) for baseline, other in run.pairs]),
        pictures=detected_pictures(pictures, taken),
    )
    return concluded(
        detected,
        reference_among(configurations),
        run,
        facts_of(data_of(data, metric.choices[0])),
        [*general_warnings(data.sides[0].model, pictures, data.labels, detected, every), *_left_out(truth, known[0])],
        judging.keeps_pictures or run.keeps_examples,
    )


def _known(truth: Truth | None, side: Side, choice: Choice) -> Truth | None:
    """The objects that count: of a head with keypoints those of the categories that it knows, else all."""
    posing = side.posing(choice.head)
    return truth.of(posing) if truth is not None and posing else truth


def _left_out(truth: Truth | None, known: Truth | None) -> Iterator[str]:
    if truth is not None and known is not None and len(known.categories) < len(truth.categories):
        names = ", ".join(category.name for category in known.categories)
        yield (
            f"mAP is of {names} alone: the model finds people with their keypoints, and the other "
            f"{len(truth.categories) - len(known.categories)} of {len(truth.categories)} categories do not count"
        )


def facts_of(data: CocoData) -> dict[str, str]:
    """What decides the figures beside the pictures, the model and the configurations."""
    truth = data.ground_truth
    return {
        "ground truth": truth.sha256[:12] if truth else "none",
        "labels": (data.labels_sha256 or "none")[:12],
        "pictures that are not in it": str(data.unlisted_pictures),
        "normalization": data.normalization,
        "resize": data.resize,
        "channel order": data.channel_order,
        "score threshold": f"{data.score_threshold:g}",
    }


def data_of(data: DetectionData, choice: Choice, mapping: ClassMappingUsed | None = None) -> CocoData:
    """What was evaluated, and how the model under test was read, of which outputs where there is a ``mapping``."""
    pictures, side = data.pictures, data.sides[0]
    options, to_tensor = data.options, side.to_tensor
    if choice.head is not None:
        used = side.candidates[choice.head.decoder]
        options, to_tensor = used.options, used.to_tensor
    return CocoData(
        skipped_files=len(pictures.folder.skipped),
        unlisted_pictures=len(pictures.unlisted),
        ground_truth=pictures.truth.used if pictures.truth else None,
        labels_sha256=data.labels.sha256 if data.labels else None,
        normalization=describe_normalization(to_tensor),
        resize="stretch" if options.resize == "auto" else options.resize,
        score_threshold=options.score_threshold or 0.0,
        category_names=_category_names(data),
        output_map=choice.outputs if mapping else None,
        class_mapping=mapping,
        native=options.native,
        head=choice.head if mapping else None,
        nms_iou=options.nms_iou or None,
        channel_order=channel_order_of(to_tensor),
    )


def _category_names(data: DetectionData) -> dict[int, str]:
    """Names by number, those of the ground truth where there is one."""
    if data.pictures.truth is not None:
        return {category.id: category.name for category in data.pictures.truth.categories}
    return dict(enumerate(data.labels.lines)) if data.labels is not None else {}
