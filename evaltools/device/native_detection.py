"""A native coco run as our own detection result: its figures, and from what it prints of each picture, ours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.datasets.image_folder import printable_name
from evaltools.device.native_inputs import NativeInputs, normalization_warnings
from evaltools.device.native_outcome import NativeOutcome, first_measured, with_times
from evaltools.engine.describe import comparison_pairs
from evaltools.engine.run import PassOutcome
from evaltools.engine.run_folder import digest, digest_of_files
from evaltools.engine.task import Example, Record
from evaltools.metrics.boxes import Detection
from evaltools.metrics.coco_stats import require_evaluator
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.metrics.native_numbers import shortest
from evaltools.native.logs.evaluation import LoggedPicture
from evaltools.native.logs.figures import NOTHING_TIMED, NativeFigures
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.coco.boxes import DEFAULT_EVALUATOR, data_of
from evaltools.tasks.coco.changes import verdicts_on_map
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping
from evaltools.tasks.coco.evaluation import facts_of
from evaltools.tasks.coco.figures import (
    BoxPairs,
    OverlappingObjects,
    compare_configurations,
    detected_pictures,
    figures_of,
)
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.outputs import NATIVE_ORDER
from evaltools.tasks.coco.reading import Choice, DetectionData
from evaltools.tasks.coco.result import BoxesPart, CocoPart
from evaltools.tasks.coco.truth import dense_category_ids, picture_size
from evaltools.tasks.coco.warnings import OddPictures, general_warnings
from evaltools.tasks.shared.figures import MeasuredPass, sum_up

_CLASS_OFFSET: Final = 1
_MAPPING: Final = ClassMapping("+1", _CLASS_OFFSET)
_SIX_DIGITS: Final = (
    "the native tool prints detections with six digits; the figures of COCO and the comparisons of boxes are taken "
    "from those, the native mAP is the tool's own"
)
Records = Sequence[Record[FoundObjects]]


def with_detection(
    empty: EvaluationResult, inputs: NativeInputs[DetectionData], outcomes: Sequence[NativeOutcome]
) -> EvaluationResult:
    """The result with what the runs of all configurations gave.

    A run without the detections of every picture is not measured: they are what configurations are compared by.
    """
    assert inputs.to_tensor is not None
    truth, options = inputs.data.pictures.truth, inputs.request.options.values
    if truth is not None:
        require_evaluator(options["coco_evaluator"] or DEFAULT_EVALUATOR)
    raw_size = (inputs.to_tensor.width, inputs.to_tensor.height)
    sizes = [picture_size(path, raw_size) for path in inputs.pictures]
    records: dict[str, Records] = {}
    configurations, stated = [], {}
    for outcome in outcomes:
        described, found = outcome.described, outcome.figures
        if found is not None:
            pictures, reason = _matched(inputs.pictures, outcome.log.pictures)
            if reason is None and (found.overall is None) != (truth is None):
                reason = "the native tool's ground truth was not the one that it was given: it could not read it"
            if reason is None:
                records[described.name] = _records(described.name, inputs.pictures, pictures, sizes)
                stated[described.name] = found
                described = with_times(described, found)
            else:
                described = replace(described, status="not measured", reason=reason)
        configurations.append(described)
    return _detection(empty, inputs, configurations, records, stated)


def _detection(
    empty: EvaluationResult,
    inputs: NativeInputs[DetectionData],
    configurations: Sequence[ConfigurationResult],
    records: Mapping[str, Records],
    stated: Mapping[str, NativeFigures],
) -> EvaluationResult:
    asked, data = inputs.request.options, inputs.data
    options, pictures = asked.values, data.pictures
    truth = pictures.truth
    objects = OverlappingObjects(truth)
    sum_up(MeasuredPass(PassOutcome(records)), [], {name: [objects] for name in list(records)[:1]})
    mapping, mapping_used = choose_mapping(_MAPPING, dense_category_ids(truth), objects.pairs)
    resamples = options["bootstrap_resamples"] if len(records) > 1 else 0
    evaluator = options["coco_evaluator"] or DEFAULT_EVALUATOR
    found_in = {
        name: [(each.example.index, each.observation) for each in own if each.observation is not None]
        for name, own in records.items()
    }
    figures, categories = [], {}
    for name, own in found_in.items():
        found, categories[name] = figures_of(name, own, truth, mapping, evaluator, resamples)
        figures.append(replace(found, native=_as_stated(found.native, stated[name])))
    shown = first_measured(configurations)
    used = mapping_used if records else None
    read = replace(data_of(data, Choice(NATIVE_ORDER), used, is_measured=bool(records)), native=True)
    boxes = {pair: BoxPairs() for pair in comparison_pairs(configurations)}
    odd = OddPictures(truth, None)
    looked_at = {name: [odd] for name in records}
    sum_up(MeasuredPass(PassOutcome(records)), list(boxes), looked_at, {pair: [seen] for pair, seen in boxes.items()})
    keeps_pictures = asked.record_examples or asked.has_page or options["debug_mode"] or options["detections_path"]
    detection = BoxesPart(
        data=read,
        figures=figures,
        comparisons=compare_configurations(boxes, figures, categories),
        pictures=detected_pictures(pictures, found_in, dict.fromkeys(records, mapping)) if keeps_pictures else None,
    )
    warnings = normalization_warnings(inputs) + general_warnings(inputs.model, pictures, inputs.labels, detection, odd)
    verdicts = verdicts_on_map(detection.comparisons, figures, asked.margin)
    return replace(
        empty,
        configurations=[replace(entry, verdicts=verdicts.get(entry.name, [])) for entry in configurations],
        part=CocoPart(
            name=inputs.task,
            source="",
            sha256="",
            options={name: str(value) for name, value in asked.recorded.items() if value is not None},
            example_count=len(pictures.paths),
            examples_sha256=digest(printable_name(path.name) for path in pictures.paths),
            preprocessing_latency=stated[shown].preprocessing if shown else NOTHING_TIMED,
            metrics=[],
            means=[],
            comparisons=[],
            facts=facts_of(read),
            boxes=detection,
        ),
        warnings=[*warnings, _SIX_DIGITS] if records else warnings,
        pictures_digest=digest_of_files(pictures.paths),
    )


def _matched(paths: Sequence[Path], logged: Sequence[LoggedPicture]) -> tuple[list[tuple[Detection, ...]], str | None]:
    """The detections of each picture in the order of evaluation, or why they are not those of all pictures."""
    wanted = [_as_printed(path) for path in paths]
    if [picture.name for picture in logged] == wanted:
        return [picture.detections for picture in logged], None
    found = {picture.name for picture in logged}
    missing = [name for name in wanted if name not in found]
    what = f"{missing[0]!r} is missing" if missing else "they stand in another order"
    return [], (
        f"the native tool's text has the detections of {len(logged)} pictures, there were {len(wanted)}: {what}. Was "
        "it run with --debug_mode=true, and its text kept whole?"
    )


def _as_printed(path: Path) -> str:
    """A picture's name in the form in which it is printed."""
    return os.fsencode(path.name).decode("utf-8", errors="replace").strip()


def _records(
    name: str, paths: Sequence[Path], pictures: Sequence[Sequence[Detection]], sizes: Sequence[tuple[int, int]]
) -> Records:
    return [
        Record(Example(index, printable_name(path.name)), name, (), _found_objects(detections, size))
        for index, (path, detections, size) in enumerate(zip(paths, pictures, sizes, strict=True))
    ]


def _found_objects(detections: Sequence[Detection], size: tuple[int, int]) -> FoundObjects:
    finite = [
        found for found in detections if math.isfinite(found.score) and all(math.isfinite(side) for side in found.box)
    ]
    return FoundObjects(
        classes=np.array([found.category_id - _CLASS_OFFSET for found in finite], np.int64),
        boxes=np.array([found.box for found in finite], np.float32).reshape(-1, 4),
        scores=np.array([found.score for found in finite], np.float32),
        stated=float(len(detections)),
        rows=len(detections),
        nonfinite=len(detections) - len(finite),
        fractional=0,
        width=size[0],
        height=size[1],
    )


def _as_stated(counted: NativeAveragePrecision | None, stated: NativeFigures) -> NativeAveragePrecision | None:
    """The tool's own figures, with the numbers of classes that the detections show."""
    if counted is None or stated.overall is None:
        return None
    values = tuple(shortest(value) for _, value in stated.precisions)
    return replace(counted, thresholds=values, overall=shortest(stated.overall))
