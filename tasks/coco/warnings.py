"""Warnings of a detection evaluation: about pictures, truth and labels, and outputs that are read in a wrong way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.datasets.image_folder import printable_name
from evaltools.datasets.labels import LabelFile
from evaltools.model import ModelFile, TensorInfo
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.objects import Found, FoundObjects
from evaltools.tasks.coco.outputs import operator_output_map
from evaltools.tasks.coco.result import BoxesPart, ClassMappingUsed, HeadUsed, describe_mapping
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth, lying_on


def _other_sizes(found: Mapping[str, Found], truth: Truth, paths: Sequence[Path]) -> list[str]:
    """About pictures whose size is not that in the ground truth."""
    sizes = {example: (objects.width, objects.height) for own in found.values() for example, objects in own.items()}
    stated = {example: (truth.images[example].width, truth.images[example].height) for example in sizes}
    other = [example for example in sorted(sizes) if sizes[example] != stated[example]]
    if not other:
        return []
    (width, height), (stated_width, stated_height) = sizes[other[0]], stated[other[0]]
    return [
        f"{len(other)} pictures have another size than the ground truth states, such as "
        f"{printable_name(paths[other[0]].name)!r}: {width}x{height} instead of {stated_width}x{stated_height}. Scaled "
        "pictures do no harm; turned or cut ones do (EXIF orientation is ignored)"
    ]


def _invalid_classes(found: Mapping[str, Found], labels: LabelFile, paths: Sequence[Path]) -> list[str]:
    """About the first detection at which the native tool would stop without figures."""
    lines = len(labels.lines)
    for example, path in enumerate(paths):
        for objects in (own[example] for own in found.values() if example in own):
            invalid = [number for number in objects.classes + 1 if not 0 <= number < lines]
            if invalid:
                return [
                    f"the native tool would stop at {printable_name(path.name)}: Encountered invalid class ID: "
                    f"{invalid[0]} ({labels.path} has {lines} lines)"
                ]
    return []


def general_warnings(
    model: ModelFile,
    pictures: EvaluatedPictures,
    labels: LabelFile | None,
    detection: BoxesPart,
    every: Mapping[str, Found],
) -> list[str]:
    """One sentence each, those of configurations with their name in front; ``every`` has what each of them found."""
    found = []
    places = detection.data.output_map
    known = operator_output_map(model)
    if known is not None and places is not None and not str(known).startswith(str(places)):
        found.append(f"the outputs are read as {places} ({places.source}), but the operator says {known}")
    if detection.data.head is not None:
        found += _about_head(detection.data.head, model.outputs[0])
    if pictures.folder.skipped:
        found.append(
            f"{len(pictures.folder.skipped)} files that are not pictures were left out, such as "
            f"{pictures.folder.skipped[0]!r}"
        )
    truth = pictures.truth
    if truth is None:
        found.append("no ground truth was given, so there is no mAP; boxes are compared between configurations")
    else:
        found += _about_truth(pictures, truth) + _other_sizes(every, truth, pictures.paths)
        mapping = detection.data.class_mapping
        if mapping is not None and any(figures.detections for figures in detection.figures):
            found += _about_classes(mapping)
    if labels is not None and truth is not None:
        found += _about_labels(labels, truth)
    if labels is not None and detection.data.native:
        found += _invalid_classes(every, labels, pictures.paths)
    if truth is not None:
        found += _unequal_pictures(detection)
    return found + [
        f"{figures.configuration}: {finding}" for figures in detection.figures for finding in figures.findings
    ]


def _unequal_pictures(detection: BoxesPart) -> list[str]:
    """Where mAP is that of other pictures; without one there is nothing to compare."""
    counts = {
        figures.configuration: figures.pictures
        for figures in detection.figures
        if figures.evaluation is not None and figures.evaluation.stats.ap is not None
    }
    if len(set(counts.values())) < 2:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    return [f"the accuracies are those of different pictures, so they cannot be compared: {listed}"]


def _about_truth(pictures: EvaluatedPictures, truth: Truth) -> list[str]:
    found = []
    if pictures.unlisted:
        found.append(
            f"{len(pictures.unlisted)} pictures that {truth.path} does not name were left out, such as "
            f"{pictures.unlisted[0]!r}"
        )
    if truth.missing:
        found.append(
            f"{len(truth.missing)} pictures of {truth.path} are not in the folder, such as {truth.missing[0]!r}; the "
            "figures are those of the others"
        )
    if truth.unlisted_annotations:
        found.append(
            f"{truth.unlisted_annotations} annotations of {truth.path} are of pictures that it does not list; they "
            "count nowhere"
        )
    found += _about_repeated(truth)
    if truth.dropped_by_native:
        found.append(
            f"{truth.dropped_by_native} annotations reach beyond their picture; the native lines leave them out, as "
            "the native tool's preparation does"
        )
    if truth.kind == "native proto":
        found.append(
            "a native ground_truth.pb knows no crowd regions and no areas of outlines, so the COCO figures may differ "
            "from those of the annotations it was made of; --ground_truth_annotations takes the JSON itself"
        )
    if not any(image.annotations for image in truth.images):
        found.append("not one object is annotated in these pictures, so no accuracy is known")
    return found


def _about_repeated(truth: Truth) -> list[str]:
    """Objects with the class and the box of another one in their picture, of which one detection finds one only."""
    repeated = [
        (image, len(image.annotations) - len({(each.category_id, each.bbox) for each in image.annotations}))
        for image in truth.images
    ]
    count = sum(more for _, more in repeated)
    if not count:
        return []
    first = next(image.file_name for image, more in repeated if more)
    return [
        f"{count} annotations of {truth.path} repeat the class and the box of another one in their picture, such as "
        f"in {first!r}; a detection finds one of them, and mAP is lower for the other: take out what is there twice"
    ]


def _about_head(head: HeadUsed, output: TensorInfo) -> list[str]:
    found = []
    if head.better is not None:
        found.append(
            f"with --decoder={head.decoder} {head.right.get(head.decoder, 0)} of the {head.compared} best boxes lie on "
            f"an object of their class, with --decoder={head.better} {head.right[head.better]}"
        )
    elif head.source == "default":
        found.append(
            f"decoder = {head.decoder} is taken for the output {head.shape}, which others fit as well: the evidence is "
            "too thin. State it with --decoder"
        )
    if head.coordinates == "pixels" and output.is_quantized and output.dtype in ("int8", "uint8"):
        found.append(
            f"the output has boxes in pixels and scores in the same 8 bits: a score is a multiple of {output.scale:g}. "
            "Export the model with boxes in shares of the input"
        )
    return found


def _about_classes(mapping: ClassMappingUsed) -> list[str]:
    if mapping.better is not None:
        return [
            f"category = {describe_mapping(mapping.name)} fits {mapping.agreeing[mapping.name]} of {mapping.pairs} "
            f"confident detections that lie on an object, {describe_mapping(mapping.better)} fits "
            f"{mapping.agreeing[mapping.better]}: --class_offset={mapping.better}"
        ]
    if mapping.source == "default":
        counts = ", ".join(f"{name} fits {count}" for name, count in mapping.agreeing.items())
        return [
            f"category = {describe_mapping(mapping.name)} is taken, as in the native tool: the evidence is too thin. "
            f"Of {mapping.pairs} confident detections that lie on an object {counts}; state it with --class_offset"
        ]
    return []


def _about_labels(labels: LabelFile, truth: Truth) -> list[str]:
    found = []
    most = max((category.id for category in truth.categories), default=0)
    if most >= len(labels.lines):
        found.append(
            f"{labels.path} has {len(labels.lines)} lines and the ground truth has category {most}: the native tool "
            "would stop at it, as line i (from 0) belongs to category i"
        )
    if truth.kind == "native proto":
        return found
    inside = [category for category in truth.categories if 0 <= category.id < len(labels.lines)]
    other = [category for category in inside if _same(labels.lines[category.id]) != _same(category.name)]
    if other:
        first = other[0]
        found.append(
            f"{len(other)} of {len(inside)} categories have another name in {labels.path}: category {first.id} is "
            f"{first.name!r}, line {first.id} (from 0) says {labels.lines[first.id]!r}"
        )
    return found


def _same(name: str) -> str:
    return name.strip().lower()


_FEWEST_DETECTIONS: Final = 20
_FAR_BEYOND: Final = 0.5
_FEWEST_SWAPPED: Final = 10


def findings_of(pictures: Found, truth: Truth | None, mapping: ClassMapping) -> list[str]:
    """One sentence per finding about one configuration, empty where all is well."""
    if not pictures:
        return []
    every = list(pictures.values())
    found = _counts(every)
    if any(len(objects.classes) for objects in every):
        found += _scores(np.concatenate([objects.scores for objects in every]))
        found += _boxes(np.concatenate([objects.boxes for objects in every]))
        if truth is not None:
            found += _classes(np.concatenate([objects.classes for objects in every]), truth, mapping)
            found += _swapped_sides(pictures, truth)
    else:
        found.append(f"nothing was found in {len(pictures)} pictures")
    return found


def _counts(pictures: Sequence[FoundObjects]) -> list[str]:
    found = []
    nonfinite = sum(objects.nonfinite for objects in pictures)
    if nonfinite:
        found.append(f"{nonfinite} detections have a NaN or infinite score, class or box; they count nowhere")
    too_many = [objects for objects in pictures if objects.stated > objects.rows]
    if too_many:
        largest = max(objects.stated for objects in too_many)
        found.append(
            f"the count is larger than the outputs in {len(too_many)} pictures (up to {largest:g}, with room for "
            f"{too_many[0].rows}); it was cut"
        )
    odd = [objects.stated for objects in pictures if not objects.stated >= 0 or objects.stated % 1]
    if odd:
        found.append(f"the count is not a whole number from 0 on in {len(odd)} pictures, such as {odd[0]:g}")
    fractional = sum(objects.fractional for objects in pictures)
    if fractional:
        found.append(f"{fractional} classes are no whole numbers: is another output meant (--output_map)?")
    return found


def _scores(scores: npt.NDArray[np.float32]) -> list[str]:
    low, high = float(scores.min()), float(scores.max())
    found = []
    if low < 0 or high > 1:
        found.append(f"scores go from {low:g} to {high:g}, not 0..1: are they logits, or is another output meant?")
    if low == high and len(scores) >= _FEWEST_DETECTIONS:
        found.append(f"all {len(scores)} detections have the same score, {low:g}")
    return found


def _boxes(boxes: npt.NDArray[np.float32]) -> list[str]:
    top, left, bottom, right = boxes.T
    found = []
    far = int(((boxes < -_FAR_BEYOND) | (boxes > 1 + _FAR_BEYOND)).any(axis=1).sum())
    if far:
        furthest = float(boxes.ravel()[np.abs(boxes).argmax()])
        found.append(
            f"{far} of {len(boxes)} boxes reach more than half a picture beyond it (a side at {furthest:g}, where 0..1 "
            "is the picture): are they in pixels?"
        )
    inverted = int(((bottom < top) | (right < left)).sum())
    if inverted:
        found.append(f"{inverted} of {len(boxes)} boxes end before they begin; expected are top, left, bottom, right")
    outside = int(((bottom <= 0) | (top >= 1) | (right <= 0) | (left >= 1)).sum())
    if outside > inverted:
        found.append(f"{outside} of {len(boxes)} boxes lie outside the picture")
    return found


def _classes(classes: npt.NDArray[np.int64], truth: Truth, mapping: ClassMapping) -> list[str]:
    found = []
    if len(set(classes.tolist())) == 1 and len(classes) >= _FEWEST_DETECTIONS and len(truth.categories) > 1:
        found.append(f"all {len(classes)} detections are of class {classes[0]}")
    known = [category.id for category in truth.categories]
    unknown = classes[~np.isin(mapping.apply(classes), known)]
    if len(unknown):
        found.append(
            f"{len(unknown)} of {len(classes)} detections are of classes that the ground truth does not know, such as "
            f"class {unknown[0]} (category {int(mapping.apply(unknown[:1])[0])}); COCO does not count them, the native "
            "tool counts such a class as 0"
        )
    return found


def _swapped_sides(pictures: Found, truth: Truth) -> list[str]:
    """Whether far more boxes lie on objects if read as left, top, right, bottom."""
    as_is, swapped = (
        sum(int(lying_on(found.boxes[:, sides], truth.native[index])[0].sum()) for index, found in pictures.items())
        for sides in ([0, 1, 2, 3], [1, 0, 3, 2])
    )
    if swapped < _FEWEST_SWAPPED or swapped < 2 * as_is:
        return []
    return [
        f"{swapped} boxes lie on an object if read as left, top, right, bottom, {as_is} as they are: the model gives "
        "the sides in another order"
    ]
