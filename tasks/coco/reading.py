"""Finds out how to read the outputs of a detector: it is known beforehand, or a few pictures show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from evaltools.datasets.labels import LabelFile
from evaltools.engine.task import Example
from evaltools.errors import DataError, ImageError, InferenceError, ModelError
from evaltools.metrics.boxes import MIN_IOU
from evaltools.metrics.native_average_precision import overlap
from evaltools.model import ModelFile
from evaltools.preprocess import ImageToTensor
from evaltools.runtime import Session
from evaltools.tasks.coco.classes import ClassMapping, choose_mapping, mapping_of_head, undecided
from evaltools.tasks.coco.decoders import Coordinates
from evaltools.tasks.coco.figures import OverlappingObjects
from evaltools.tasks.coco.heads import DecoderCandidate
from evaltools.tasks.coco.outputs import recognised_output_map, require_fitting
from evaltools.tasks.coco.result import HeadUsed, OutputMap
from evaltools.tasks.coco.task import CocoTask, Floats, FoundObjects, real_outputs
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth
from evaltools.tasks.coco.warnings import findings_of
from evaltools.tasks.shared.image_input import PictureFrame, load_picture

PICTURES_TRIED: Final = 4
MORE_PICTURES: Final = 32
_FEWEST_RIGHT: Final = 3
_CLEARLY_BETTER: Final = 2
Reading = OutputMap | HeadUsed
Source = Literal["stated", "shape", "shape and values", "ground truth", "default"]


class CocoMaterial(Struct, frozen=True):
    """The checked inputs of an evaluation; ``outputs`` and ``mapping`` None: not stated, to be recognised.

    ``candidates`` are the decoders that may read a raw head, none where the outputs are no raw head.
    """

    model: ModelFile
    labels: LabelFile | None
    pictures: EvaluatedPictures
    to_tensor: ImageToTensor
    outputs: OutputMap | None
    mapping: ClassMapping | None
    category_ids: tuple[int, ...]
    candidates: tuple[DecoderCandidate, ...] = ()

    def candidate(self, name: str) -> DecoderCandidate:
        """The candidate with the decoder of that name."""
        return next(each for each in self.candidates if each.decoder.name == name)

    def mapping_of(self, reading: Reading | None) -> ClassMapping | None:
        """What category a class is, by the raw head; None where it does not say."""
        if not isinstance(reading, HeadUsed):
            return None
        return mapping_of_head(self.candidate(reading.decoder).head.classes, self.category_ids)


class _Probe(Struct, frozen=True):
    """The outputs for one picture, which is given by its number."""

    index: int
    outputs: list[Floats]
    frame: PictureFrame


def reading_of(material: CocoMaterial, sessions: Sequence[Session]) -> Reading:
    """How to read the outputs: as known beforehand and checked against real outputs, or as these show.

    Pictures are tried on the first session that can run them, which is the reference if there is one. If none can, and
    the reading is not known, the last session's :class:`InferenceError` is raised.
    """
    for number, session in enumerate(sessions, start=1):
        try:
            if material.candidates:
                return _head_used(material, session)
            if material.outputs is None:
                return _recognised(material, session)
            require_fitting(
                material.model, material.outputs, _probes(material, session, 1, material.to_tensor)[0].outputs
            )
            break
        except InferenceError:
            if material.outputs is None and number == len(sessions):
                raise
    assert material.outputs is not None
    return material.outputs


def mapping_shown(material: CocoMaterial, task: CocoTask, sessions: Sequence[Session]) -> ClassMapping | None:
    """What category a class is by the first pictures, on the first session that can run them all.

    None where there is no such session, or no detection lies on an object. Raises :class:`UsageError` where the
    detections leave it open.
    """
    truth = material.pictures.truth
    for session in sessions:
        try:
            pictures = _first_pictures(task, session)
        except InferenceError:
            continue
        objects = OverlappingObjects(truth)
        for example, found in pictures:
            objects.add(example, found)
        mapping, used = choose_mapping(None, material.category_ids, objects.pairs)
        if used.source == "detected":
            return mapping
        if objects.pairs or objects.doubtful:
            findings = findings_of([(example.index, found) for example, found in pictures], truth, mapping)
            raise undecided(used, len(pictures), objects.doubtful, findings)
        return None
    return None


def _first_pictures(task: CocoTask, session: Session) -> list[tuple[Example, FoundObjects]]:
    """What is found in the first pictures that can be read."""
    found = []
    for example in task.examples[:MORE_PICTURES]:
        try:
            prepared = task.prepare(example)
        except ImageError:
            continue
        found.append((example, task.observe(prepared, session.run(prepared.inputs).outputs)))
    return found


def _recognised(material: CocoMaterial, session: Session) -> OutputMap:
    """The reading that a few pictures show; more pictures are tried if nothing may have been found in these."""
    try:
        return _recognised_from(material, session, PICTURES_TRIED)
    except ModelError:
        return _recognised_from(material, session, MORE_PICTURES)


def _recognised_from(material: CocoMaterial, session: Session, count: int) -> OutputMap:
    probes = _probes(material, session, count, material.to_tensor)
    return recognised_output_map(material.model, [probe.outputs for probe in probes])


def _probes(material: CocoMaterial, session: Session, count: int, to_tensor: ImageToTensor) -> list[_Probe]:
    """The outputs for the first pictures that can be read."""
    found: list[_Probe] = []
    unreadable = ""
    for index, path in enumerate(material.pictures.paths):
        try:
            picture = load_picture(path, to_tensor)
        except ImageError as error:
            unreadable = f"{path.name}: {error}"
            continue
        outputs = real_outputs(material.model, session.run((picture.values,)).outputs)
        found.append(_Probe(index, outputs, picture.frame))
        if len(found) == count:
            break
    if not found:
        raise DataError(
            f"not one of {len(material.pictures.paths)} pictures can be read ({unreadable}); give pictures that can"
        )
    return found


def _head_used(material: CocoMaterial, session: Session) -> HeadUsed:
    """The decoder that was stated, else the one that shape, values and ground truth show."""
    probes = {
        each.decoder.name: _probes(material, session, PICTURES_TRIED, each.to_tensor) for each in material.candidates
    }
    units = {each.decoder.name: _coordinates(material, each, probes[each.decoder.name]) for each in material.candidates}
    for each in [each for each in material.candidates if units[each.decoder.name] == "unknown"]:
        more = _coordinates(material, each, _probes(material, session, MORE_PICTURES, each.to_tensor))
        units[each.decoder.name] = "shares" if more == "unknown" else more
    possible = [each for each in material.candidates if units[each.decoder.name] != "contradicted"]
    stated = material.candidates[0].options.decoder
    if not possible or units.get(stated) == "contradicted":
        raise _contradicted(material, [each.decoder.name for each in possible], stated)
    truth = material.pictures.truth
    right, compared = {}, 0
    if truth is not None:
        for each in possible:
            name = each.decoder.name
            found = [(probe.index, each.found(probe.outputs, units[name], probe.frame)) for probe in probes[name]]
            right[name], compared = right_boxes(found, truth, material.mapping, material.category_ids)
    name, source, better = _choice(material, possible, stated, right)
    coordinates = units[name]
    assert coordinates != "contradicted"
    assert coordinates != "unknown"
    shape = list(material.candidate(name).head.shape)
    return HeadUsed(name, shape, coordinates, source, compared, right, better)


def _coordinates(material: CocoMaterial, candidate: DecoderCandidate, probes: Sequence[_Probe]) -> Coordinates:
    """What unit the boxes are in, from all rows with finite numbers; unknown where there are none."""
    for probe in probes:
        if probe.outputs[0].shape != candidate.head.shape:
            raise ModelError(
                f"{material.model.path}: the runtime gives an output of {list(probe.outputs[0].shape)}, the file says "
                f"{list(candidate.head.shape)}; convert the model again with fixed sizes"
            )
    rows = np.concatenate([candidate.head.rows(probe.outputs[0]) for probe in probes])
    rows = rows[np.isfinite(rows).all(axis=1)]
    return candidate.decoder.coordinates(rows, candidate.head) if len(rows) else "unknown"


def right_boxes(
    found: Sequence[tuple[int, FoundObjects]], truth: Truth, mapping: ClassMapping | None, category_ids: Sequence[int]
) -> tuple[int, int]:
    """How many of the best boxes lie on an object of their class (IoU 0.5 or more), and how many are compared.

    In a picture with n objects the n best boxes count, so that a wrong reading gains nothing by giving many boxes. What
    category a class is: as stated, else in the way that makes most of them right.
    """
    pairs: list[tuple[int, int]] = []
    compared = 0
    for index, objects in found:
        true = truth.native[index]
        count = len(true.class_ids)
        compared += count
        if count and len(objects.classes):
            overlaps = overlap(objects.boxes[:count], true.boxes)
            sure = np.flatnonzero(overlaps.max(axis=1) >= MIN_IOU)
            categories = true.class_ids[overlaps.argmax(axis=1)[sure]]
            pairs += zip(objects.classes[sure].tolist(), categories.tolist(), strict=True)
    agreeing = choose_mapping(mapping, category_ids, pairs)[1].agreeing
    return (agreeing[mapping.name] if mapping is not None else max(agreeing.values())), compared


def _choice(
    material: CocoMaterial, possible: Sequence[DecoderCandidate], stated: str, right: Mapping[str, int]
) -> tuple[str, Source, str | None]:
    """The decoder to use, the reason, and a clearly better one if the decoder was stated."""
    names = [each.decoder.name for each in possible]
    winner = _clear_winner(right) if len(names) > 1 else None
    if stated in names:
        return stated, "stated", winner if winner != stated else None
    if len(material.candidates) == 1:
        return names[0], "shape", None
    if len(names) == 1:
        return names[0], "shape and values", None
    if winner is not None:
        return winner, "ground truth", None
    count = len(material.category_ids)
    fitting = [each.decoder.name for each in possible if each.head.classes == count]
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


def _contradicted(material: CocoMaterial, possible: Sequence[str], stated: str) -> ModelError:
    tried = [stated] if stated != "auto" else [each.decoder.name for each in material.candidates]
    advice = f"they may be those of --decoder={possible[0]}" if possible else "export the model with its boxes decoded"
    return ModelError(
        f"{material.model.path}: read as {' or '.join(tried)}, boxes have negative widths or heights, or end before "
        f"they begin; the values of {material.model.outputs[0]} are others. {advice[0].upper()}{advice[1:]}"
    )
