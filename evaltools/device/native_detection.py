"""A native coco run as our own detection result: its figures, and from what it prints of each picture, ours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.datasets.image_folder import printable_name
from evaltools.device.native_inputs import NATIVE_CLASS_OFFSET, NativeInputs, normalization_warnings
from evaltools.device.native_outcome import NativeOutcome, with_times
from evaltools.engine.opening import comparison_pairs
from evaltools.engine.run import PassOutcome
from evaltools.engine.steps import Record
from evaltools.metrics.boxes import Detection
from evaltools.metrics.native_numbers import shortest
from evaltools.native.logs.evaluation import LoggedPicture
from evaltools.native.logs.figures import NativeFigures
from evaltools.result.result import Row
from evaltools.tasks.coco.boxes import Boxes, StatedPrecision, conclude
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.truth import picture_size
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun
from evaltools.tasks.framework.request import folder_of_pictures
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.sums import MeasuredPass, sum_up

_SIX_DIGITS: Final = (
    "the native tool prints detections with six digits; the figures of COCO and the comparisons of boxes are taken "
    "from those, the native mAP is the tool's own"
)
Records = Sequence[Record[ObservedScores[Any]]]


def detected(inputs: NativeInputs[Boxes], outcomes: Sequence[NativeOutcome]) -> tuple[list[Row], Concluded]:
    """What the runs of all configurations gave.

    A run without the detections of every picture is not measured: they are what configurations are compared by.
    """
    assert inputs.to_tensor is not None
    truth = inputs.data.data.pictures.truth
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
    return configurations, _concluded(inputs, configurations, records, stated)


def _concluded(
    inputs: NativeInputs[Boxes],
    configurations: Sequence[Row],
    records: Mapping[str, Records],
    stated: Mapping[str, NativeFigures],
) -> Concluded:
    asked = inputs.request.options
    run = RecordsOfRun(
        examples=(),
        outcome=PassOutcome(records, names=[printable_name(path.name) for path in inputs.pictures]),
        measured=list(records),
        pairs=comparison_pairs(configurations),
        margin=asked.margin,
        keeps_examples=asked.record_examples,
        has_page=asked.has_page,
        pictures=folder_of_pictures(asked),
    )
    native = {name: _as_stated(found) for name, found in stated.items()}
    sums = sum_up(MeasuredPass(run.outcome), run.pairs)
    found = conclude(inputs.data, run, configurations, sums, native)
    warnings = [*normalization_warnings(inputs), *found.warnings, *([_SIX_DIGITS] if records else [])]
    return replace(found, warnings=warnings)


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
        Record(
            index,
            name,
            (),
            ObservedScores(whole=_found_objects(detections, size)),
        )
        for index, (path, detections, size) in enumerate(zip(paths, pictures, sizes, strict=True))
    ]


def _found_objects(detections: Sequence[Detection], size: tuple[int, int]) -> FoundObjects:
    finite = [
        found for found in detections if math.isfinite(found.score) and all(math.isfinite(side) for side in found.box)
    ]
    return FoundObjects(
        classes=np.array([found.category_id - NATIVE_CLASS_OFFSET for found in finite], np.int64),
        boxes=np.array([found.box for found in finite], np.float32).reshape(-1, 4),
        scores=np.array([found.score for found in finite], np.float32),
        stated=float(len(detections)),
        rows=len(detections),
        nonfinite=len(detections) - len(finite),
        fractional=0,
        width=size[0],
        height=size[1],
    )


def _as_stated(stated: NativeFigures) -> StatedPrecision:
    """The tool's own figures; without a ground truth 0."""
    return tuple(shortest(value) for _, value in stated.precisions), shortest(stated.overall or 0.0)
