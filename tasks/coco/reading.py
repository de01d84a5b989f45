"""Finds out how to read the outputs of a detector: it is known beforehand, or a few pictures show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.datasets.labels import LabelFile
from evaltools.errors import DataError, InferenceError, ModelError
from evaltools.model import ModelFile
from evaltools.preprocess import ImageToTensor
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping, class_pairs, mapping_of_head, undecided
from evaltools.tasks.coco.decoders import Coordinates, Floats
from evaltools.tasks.coco.detector import DetectorOptions
from evaltools.tasks.coco.heads import DecoderCandidate
from evaltools.tasks.coco.objects import Found, FoundObjects, read_objects
from evaltools.tasks.coco.outputs import NATIVE_ORDER, recognised_output_map, require_fitting
from evaltools.tasks.coco.result import HeadSource, HeadUsed, OutputMap
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth, lying_on
from evaltools.tasks.coco.warnings import findings_of
from evaltools.tasks.coco.yolo_heads import YOLOV8_POSE, is_turned
from evaltools.tasks.framework.definition import Trial, Tried, WithContext
from evaltools.tasks.framework.image_input import load_picture
from evaltools.tasks.framework.tensors import Outputs, TaskTensor

PICTURES_TRIED: Final = 4
MORE_PICTURES: Final = 32
_FEWEST_RIGHT: Final = 3
_CLEARLY_BETTER: Final = 2


class Side(Struct, frozen=True):
    """One model and what is known of it beforehand; ``outputs`` and ``mapping`` None: not stated, to be recognised.

    ``to_tensor`` feeds it as the options say. ``candidates`` are the decoders that may read a raw head, by name; none
    where the outputs are no raw head. ``person`` is the category of that name.
    """

    model: ModelFile
    to_tensor: ImageToTensor
    outputs: OutputMap | None
    mapping: ClassMapping | None
    category_ids: tuple[int, ...]
    candidates: Mapping[str, DecoderCandidate] = field(default_factory=dict)
    person: int | None = None

    def mapping_of(self, head: HeadUsed | None) -> ClassMapping | None:
        """What category a class is, by the raw head; None where it does not say."""
        if head is None:
            return None
        posing = self.posing(head)
        return mapping_of_head(self.candidates[head.decoder].head.classes, posing or self.category_ids)

    def posing(self, head: HeadUsed | None) -> tuple[int, ...]:
        """The categories that a head with keypoints knows: persons, or the first ones; none for another head."""
        if head is None or head.decoder != YOLOV8_POSE.name:
            return ()
        classes = self.candidates[head.decoder].head.classes
        return (self.person,) if self.person is not None and classes == 1 else self.category_ids[:classes]


class DetectionData(Struct, frozen=True):
    """The checked inputs: pictures with their objects, and a side for the model and for the reference's other one."""

    sides: tuple[Side, ...]
    pictures: EvaluatedPictures
    labels: LabelFile | None
    options: DetectorOptions


class Choice(Struct, frozen=True):
    """How the outputs of a model are read: by an output map or as a raw head; neither where nothing is known.

    ``shown`` is what the first pictures show of the category of a class, None where it was not looked at.
    """

    outputs: OutputMap | None = None
    head: HeadUsed | None = None
    shown: ClassMapping | None = None


Read = Callable[[Outputs], FoundObjects]
"""What makes objects of the outputs for a picture, whose frame is their context."""


def fed(transforms: Sequence[ImageToTensor], path: Path, tensors: Sequence[TaskTensor]) -> WithContext:
    """A picture as the input of a model, with its frame; the last transform is that of the reference's model."""
    picture = load_picture(path, transforms[-1] if tensors[0].of_reference else transforms[0])
    return WithContext((picture.values,), picture.frame)


def reader_of(side: Side, choice: Choice, options: DetectorOptions) -> tuple[ImageToTensor, Read]:
    """How a model is fed and read by a choice; where nothing is known, in the native order."""
    if choice.head is not None:
        candidate, coordinates = side.candidates[choice.head.decoder], choice.head.coordinates
        return candidate.to_tensor, lambda outputs: candidate.found(outputs, coordinates)
    places, threshold = choice.outputs or NATIVE_ORDER, options.score_threshold or 0.0
    return side.to_tensor, lambda outputs: read_objects(outputs, places, threshold)


def choice_of(side: Side, data: DetectionData, trial: Trial) -> Choice:
    """How to read the outputs of a model: as known beforehand and checked against real ones, or as these show.

    Raises :class:`InferenceError` where they are needed and no picture can be run, :class:`ModelError` for outputs
    that are none of a detector, and :class:`UsageError` where they leave open what category a class is.
    """
    choice = Choice(side.outputs)
    if side.candidates:
        choice = Choice(head=_head_used(side, data, trial))
    elif side.outputs is None:
        choice = Choice(_recognised(side, trial))
    else:
        for tried in _first(trial, 1, side.to_tensor, must_run=False):
            require_fitting(side.model, side.outputs, tried.outputs)
    truth = data.pictures.truth
    if truth is None or side.mapping is not None or side.mapping_of(choice.head) is not None:
        return choice
    return replace(choice, shown=mapping_shown(side, choice, data, truth, trial))


def mapping_shown(side: Side, choice: Choice, data: DetectionData, truth: Truth, trial: Trial) -> ClassMapping | None:
    """What category a class is by the first pictures; None where no detection lies on an object, or nothing runs.

    Raises :class:`UsageError` where the detections leave it open.
    """
    to_tensor, read = reader_of(side, choice, data.options)
    some = range(min(MORE_PICTURES, len(trial.targets)))
    tried = trial.run(some, partial(fed, (to_tensor,)), with_copies=True)
    found = {each.place: read(each.outputs) for each in tried}
    pairs, doubtful = class_pairs(found, truth)
    mapping, used = choose_mapping(None, side.category_ids, pairs)
    if used.source == "detected":
        return mapping
    if pairs or doubtful:
        raise undecided(used, len(found), doubtful, findings_of(found, truth, mapping))
    return None


def _first(trial: Trial, count: int, to_tensor: ImageToTensor, must_run: bool = True) -> list[Tried]:
    """The outputs for the first pictures that can be read."""
    places = range(len(trial.targets))
    tried = trial.run(places, partial(fed, (to_tensor,)), with_copies=True, most=count)
    if tried:
        return tried
    if not isinstance(trial.trouble, InferenceError):
        raise DataError(f"not one of {len(places)} pictures can be read ({trial.trouble}); give pictures that can")
    if must_run:
        raise InferenceError(f"no picture could be run, so its outputs cannot be distinguished: {trial.trouble}")
    return []


def _recognised(side: Side, trial: Trial) -> OutputMap:
    """The reading that a few pictures show; more pictures are tried if nothing may have been found in these."""
    try:
        return _recognised_by(side, trial, PICTURES_TRIED)
    except ModelError:
        return _recognised_by(side, trial, MORE_PICTURES)


def _recognised_by(side: Side, trial: Trial, count: int) -> OutputMap:
    tried = _first(trial, count, side.to_tensor)
    real = [[each.outputs.real(number) for number in range(len(each.outputs))] for each in tried]
    return recognised_output_map(side.model, real)


def _head_used(side: Side, data: DetectionData, trial: Trial) -> HeadUsed:
    """The decoder that was stated, else the one that shape, values and ground truth show."""
    stated, truth = data.options.decoder, data.pictures.truth
    tried = {name: _first(trial, PICTURES_TRIED, each.to_tensor) for name, each in side.candidates.items()}
    units: dict[str, Coordinates] = {}
    for name, each in side.candidates.items():
        units[name] = _coordinates(side.model, each, tried[name])
        if units[name] == "unknown":
            more = _coordinates(side.model, each, _first(trial, MORE_PICTURES, each.to_tensor))
            units[name] = "shares" if more == "unknown" else more
    possible = {name: each for name, each in side.candidates.items() if units[name] != "contradicted"}
    if not possible or units.get(stated) == "contradicted":
        for name, each in side.candidates.items():
            _require_upright(side.model, each, _finite_rows(each, tried[name]))
        raise _contradicted(side, list(possible), stated)
    right, compared = {}, 0
    if truth is not None:
        for name, each in possible.items():
            found = {one.place: each.found(one.outputs, units[name]) for one in tried[name]}
            right[name], compared = right_boxes(found, truth, side.mapping, side.category_ids)
    name, source, better = _choice(side, possible, stated, right)
    coordinates = units[name]
    assert coordinates != "contradicted"
    assert coordinates != "unknown"
    head = possible[name].head
    ignored = (
        "" if not head.extra else "coefficients of masks" if len(side.model.outputs) > 1 else "values of keypoints"
    )
    return HeadUsed(
        name,
        list(head.shape),
        coordinates,
        source,
        compared,
        right,
        better,
        ignored=f"{head.extra} {ignored}" if ignored else "",
    )


def _coordinates(model: ModelFile, candidate: DecoderCandidate, tried: Sequence[Tried]) -> Coordinates:
    """What unit the boxes are in, from all rows with finite numbers; unknown where there are none."""
    for output in (each.outputs[candidate.head.place] for each in tried):
        if output.shape != candidate.head.shape:
            raise ModelError(
                f"{model.path}: the runtime gives an output of {list(output.shape)}, the file says "
                f"{list(candidate.head.shape)}; convert the model again with fixed sizes"
            )
    rows = _finite_rows(candidate, tried)
    return candidate.decoder.coordinates(rows, candidate.head) if len(rows) else "unknown"


def _require_upright(model: ModelFile, candidate: DecoderCandidate, rows: Floats) -> None:
    if is_turned(rows, candidate.head):
        raise ModelError(
            f"{model.path}: the last of the {candidate.head.values} values of each box goes from "
            f"{rows[:, -1].min():.3g} to {rows[:, -1].max():.3g}, so it is no score but an angle: these are oriented "
            "boxes (OBB), of which COCO's mAP knows nothing. Give a detector without angles, or compare the outputs "
            "with evaltools diff"
        )


def _finite_rows(candidate: DecoderCandidate, tried: Sequence[Tried]) -> Floats:
    rows = np.concatenate([candidate.head.rows(each.outputs.real(candidate.head.place)) for each in tried])
    finite: Floats = rows[np.isfinite(rows).all(axis=1)]
    return finite


def right_boxes(
    found: Found, truth: Truth, mapping: ClassMapping | None, category_ids: Sequence[int]
) -> tuple[int, int]:
    """How many of the best boxes lie on an object of their class (IoU 0.5 or more), and how many are compared.

    In a picture with n objects the n best boxes count, so that a wrong reading gains nothing by giving many boxes. What
    category a class is: as stated, else in the way that makes most of them right.
    """
    pairs: list[tuple[int, int]] = []
    compared = 0
    for index, objects in found.items():
        true = truth.native[index]
        count = len(true.class_ids)
        compared += count
        on_object, categories = lying_on(objects.boxes[:count], true)
        pairs += zip(objects.classes[:count][on_object].tolist(), categories[on_object].tolist(), strict=True)
    agreeing = choose_mapping(mapping, category_ids, pairs)[1].agreeing
    return (agreeing[mapping.name] if mapping is not None else max(agreeing.values())), compared


def _choice(
    side: Side, possible: Mapping[str, DecoderCandidate], stated: str, right: Mapping[str, int]
) -> tuple[str, HeadSource, str | None]:
    """The decoder to use, the reason, and a clearly better one if the decoder was stated."""
    names = list(possible)
    winner = _clear_winner(right) if len(names) > 1 else None
    if stated in names:
        return stated, "stated", winner if winner != stated else None
    if len(side.candidates) == 1:
        return names[0], "shape", None
    if len(names) == 1:
        return names[0], "shape and values", None
    if winner is not None:
        return winner, "ground truth", None
    count = len(side.category_ids)
    fitting = [name for name, each in possible.items() if each.head.classes == count]
    return (fitting or names)[0], "default", None


def _clear_winner(right: Mapping[str, int]) -> str | None:
    """The reading with clearly more right boxes than any other one.

    >>> _clear_winner({"yolov8": 1, "yolox": 9}), _clear_winner({"yolov8": 5, "yolox": 9}), _clear_winner({})
    ('yolox', None, None)
    """
    ranked = sorted(right, key=lambda name: -right[name])
    if len(ranked) < 2 or right[ranked[0]] < _FEWEST_RIGHT:
        return None
    return ranked[0] if right[ranked[0]] >= _CLEARLY_BETTER * right[ranked[1]] else None


def _contradicted(side: Side, possible: Sequence[str], stated: str) -> ModelError:
    tried = [stated] if stated != "auto" else list(side.candidates)
    advice = f"they may be those of --decoder={possible[0]}" if possible else "export the model with its boxes decoded"
    return ModelError(
        f"{side.model.path}: read as {' or '.join(tried)}, boxes have negative widths or heights, or end before "
        f"they begin; the values of {side.model.outputs[0]} are others. {advice[0].upper()}{advice[1:]}"
    )
