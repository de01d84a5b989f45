"""Warnings of a detection evaluation: about pictures, truth and labels, and outputs that are read in a wrong way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from evaltools.tasks.coco.result import ClassMappingUsed, Detected, HeadUsed, describe_mapping
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth, lying_on

_FEWEST_DETECTIONS: Final = 20
_FAR_BEYOND: Final = 0.5
_FEWEST_SWAPPED: Final = 10
_A_STEP: Final = 1 / 128
"""Of 8 bits: scores of 0..1 may end one step further."""


def general_warnings(
    model: ModelFile,
    pictures: EvaluatedPictures,
    labels: LabelFile | None,
    detection: Detected,
    every: Mapping[str, Found],
) -> Iterator[str]:
    """One sentence each, those of configurations with their name in front; ``every`` has what each of them found."""
    data, truth = detection.data, pictures.truth
    places, known = data.output_map, operator_output_map(model)
    if known is not None and places is not None and not str(known).startswith(str(places)):
        yield f"the outputs are read as {places} ({places.source}), but the operator says {known}"
    if data.head is not None:
        yield from _about_head(data.head, model.outputs[0])
    has_classes = truth is not None and any(figures.detections for figures in detection.figures)
    if data.class_mapping is not None and has_classes:
        yield from _about_classes(data.class_mapping)
    reads_well = bool(detection.figures) and not detection.figures[0].findings
    for figures in detection.figures:
        for finding in figures.findings:
            yield f"{figures.configuration}: {_without_reason(finding) if reads_well else finding}"
    yield from pictures.folder.remarks()
    if truth is None:
        yield "no ground truth was given, so there is no mAP; boxes are compared between configurations"
    else:
        yield from _about_truth(pictures, truth)
        yield from _other_sizes(every, truth, pictures.paths)
        if labels is not None:
            yield from _about_labels(labels, truth)
    if labels is not None and data.native:
        yield from _invalid_classes(every, labels, pictures.paths)
    counts = {
        figures.configuration: figures.pictures
        for figures in detection.figures
        if figures.evaluation is not None and figures.evaluation.stats.ap is not None
    }
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield f"the accuracies are those of different pictures, so they cannot be compared: {listed}"


def _without_reason(finding: str) -> str:
    """A finding about what reads well in the reference, from the same outputs: it is not how they are read."""
    return finding.partition(": ")[0]


def _other_sizes(found: Mapping[str, Found], truth: Truth, paths: Sequence[Path]) -> Iterator[str]:
    """About pictures whose size is not that in the ground truth."""
    sizes = {example: (objects.width, objects.height) for own in found.values() for example, objects in own.items()}
    stated = {example: (truth.images[example].width, truth.images[example].height) for example in sizes}
    other = [example for example in sorted(sizes) if sizes[example] != stated[example]]
    if other:
        (width, height), (stated_width, stated_height) = sizes[other[0]], stated[other[0]]
        yield (
            f"{len(other)} pictures have another size than the ground truth states, such as "
            f"{printable_name(paths[other[0]].name)!r}: {width}x{height} instead of {stated_width}x{stated_height}. "
            "Scaled pictures do no harm; turned or cut ones do (EXIF orientation is ignored)"
        )


def _invalid_classes(found: Mapping[str, Found], labels: LabelFile, paths: Sequence[Path]) -> Iterator[str]:
    """About the first detection at which the native tool would stop without figures."""
    lines = len(labels.lines)
    for example, path in enumerate(paths):
        for objects in (own[example] for own in found.values() if example in own):
            invalid = [number for number in objects.classes + 1 if not 0 <= number < lines]
            if invalid:
                yield (
                    f"the native tool would stop at {printable_name(path.name)}: Encountered invalid class ID: "
                    f"{invalid[0]} ({labels.path} has {lines} lines)"
                )
                return


def _about_truth(pictures: EvaluatedPictures, truth: Truth) -> Iterator[str]:
    path, dropped = truth.used.file, truth.used.dropped_by_native
    if pictures.unlisted:
        yield (
            f"{len(pictures.unlisted)} pictures that {path} does not name were left out, such as "
            f"{pictures.unlisted[0]!r}"
        )
    if truth.missing:
        yield (
            f"{len(truth.missing)} pictures of {path} are not in the folder, such as {truth.missing[0]!r}; the "
            "figures are those of the others"
        )
    if truth.unlisted_annotations:
        yield (
            f"{truth.unlisted_annotations} annotations of {path} are of pictures that it does not list; they "
            "count nowhere"
        )
    repeated = {
        image.file_name: len(image.annotations) - len({(each.category_id, each.bbox) for each in image.annotations})
        for image in truth.images
    }
    if any(repeated.values()):
        first = next(name for name, count in repeated.items() if count)
        yield (
            f"{sum(repeated.values())} annotations of {path} repeat the class and the box of another one in "
            f"their picture, such as in {first!r}; a detection finds one of them, and mAP is lower for the other: take "
            "out what is there twice"
        )
    if dropped:
        yield (
            f"{dropped} annotations reach beyond their picture; the native lines leave them out, as "
            "the native tool's preparation does"
        )
    if truth.used.kind == "native proto":
        yield (
            "a native ground_truth.pb knows no crowd regions and no areas of outlines, so the COCO figures may differ "
            "from those of the annotations it was made of; --ground_truth_annotations takes the JSON itself"
        )
    if not any(image.annotations for image in truth.images):
        yield "not one object is annotated in these pictures, so no accuracy is known"


def _about_head(head: HeadUsed, output: TensorInfo) -> Iterator[str]:
    if head.better is not None:
        yield (
            f"with --decoder={head.decoder} {head.right.get(head.decoder, 0)} of the {head.compared} best boxes lie on "
            f"an object of their class, with --decoder={head.better} {head.right[head.better]}"
        )
    elif head.source == "default":
        yield (
            f"decoder = {head.decoder} is taken for the output {head.shape}, which others fit as well: the evidence is "
            "too thin. State it with --decoder"
        )
    if head.coordinates == "pixels" and output.is_quantized and output.dtype in ("int8", "uint8"):
        yield (
            f"the output has boxes in pixels and scores in the same 8 bits: a score is a multiple of {output.scale:g}. "
            "Export the model with boxes in shares of the input"
        )


def _about_classes(mapping: ClassMappingUsed) -> Iterator[str]:
    if mapping.better is not None:
        yield (
            f"category = {describe_mapping(mapping.name)} fits {mapping.agreeing[mapping.name]} of {mapping.pairs} "
            f"confident detections that lie on an object, {describe_mapping(mapping.better)} fits "
            f"{mapping.agreeing[mapping.better]}: --class_offset={mapping.better}"
        )
    elif mapping.source == "default":
        counts = ", ".join(f"{name} fits {count}" for name, count in mapping.agreeing.items())
        yield (
            f"category = {describe_mapping(mapping.name)} is taken, as in the native tool: the evidence is too thin. "
            f"Of {mapping.pairs} confident detections that lie on an object {counts}; state it with --class_offset"
        )


def _about_labels(labels: LabelFile, truth: Truth) -> Iterator[str]:
    lines = labels.lines
    names = [(category.id, category.name.strip().lower()) for category in truth.categories]
    early = [number for number, name in names if 0 < number <= len(lines) and lines[number - 1].strip().lower() == name]
    if 2 * len(early) > len(names):
        yield (
            f"{labels.path} begins one line early: line {early[0] - 1} (from 0) says {lines[early[0] - 1]!r}, which is "
            f"category {early[0]}; put a line such as 'background' in front of it. Figures do not change with it: they "
            "go by numbers"
        )
        return
    most = max((category.id for category in truth.categories), default=0)
    if most >= len(lines):
        yield (
            f"{labels.path} has {len(lines)} lines and the ground truth has category {most}: the native tool "
            "would stop at it, as line i (from 0) belongs to category i"
        )
    inside = [category for category in truth.categories if 0 <= category.id < len(lines)]
    other = [each for each in inside if lines[each.id].strip().lower() != each.name.strip().lower()]
    if other and truth.used.kind != "native proto":
        yield (
            f"{len(other)} of {len(inside)} categories have another name in {labels.path}: category {other[0].id} is "
            f"{other[0].name!r}, line {other[0].id} (from 0) says {lines[other[0].id]!r}"
        )


def findings_of(pictures: Found, truth: Truth | None, mapping: ClassMapping) -> list[str]:
    """One sentence per finding about one configuration, empty where all is well."""
    every = list(pictures.values())
    found = [*_about_counts(every)]
    if any(len(objects.classes) for objects in every):
        found += _about_scores(np.concatenate([objects.scores for objects in every]))
        found += _about_boxes(np.concatenate([objects.boxes for objects in every]))
        if truth is not None:
            found += _unknown_classes(np.concatenate([objects.classes for objects in every]), truth, mapping)
            found += _swapped_sides(pictures, truth)
    elif every:
        found.append(f"nothing was found in {len(every)} pictures")
    return found


def _about_counts(pictures: Sequence[FoundObjects]) -> Iterator[str]:
    nonfinite = sum(objects.nonfinite for objects in pictures)
    if nonfinite:
        yield f"{nonfinite} detections have a NaN or infinite score, class or box; they count nowhere"
    too_many = [objects for objects in pictures if objects.stated > objects.rows]
    if too_many:
        yield (
            f"the count is larger than the outputs in {len(too_many)} pictures (up to "
            f"{max(objects.stated for objects in too_many):g}, with room for {too_many[0].rows}); it was cut"
        )
    odd = [objects.stated for objects in pictures if not objects.stated >= 0 or objects.stated % 1]
    if odd:
        yield f"the count is not a whole number from 0 on in {len(odd)} pictures, such as {odd[0]:g}"
    fractional = sum(objects.fractional for objects in pictures)
    if fractional:
        yield f"{fractional} classes are no whole numbers: is another output meant (--output_map)?"


def _about_scores(scores: npt.NDArray[np.float32]) -> Iterator[str]:
    low, high = float(scores.min()), float(scores.max())
    if low < 0 or high > 1 + _A_STEP:
        yield f"scores go from {low:g} to {high:g}, not 0..1: are they logits, or is another output meant?"
    if low == high and len(scores) >= _FEWEST_DETECTIONS:
        yield f"all {len(scores)} detections have the same score, {low:g}"


def _about_boxes(boxes: npt.NDArray[np.float32]) -> Iterator[str]:
    top, left, bottom, right = boxes.T
    far = int(((boxes < -_FAR_BEYOND) | (boxes > 1 + _FAR_BEYOND)).any(axis=1).sum())
    if far:
        furthest = float(boxes.ravel()[np.abs(boxes).argmax()])
        yield (
            f"{far} of {len(boxes)} boxes reach more than half a picture beyond it (a side at {furthest:g}, where 0..1 "
            "is the picture): are they in pixels?"
        )
    inverted = int(((bottom < top) | (right < left)).sum())
    if inverted:
        yield f"{inverted} of {len(boxes)} boxes end before they begin; expected are top, left, bottom, right"
    outside = int(((bottom <= 0) | (top >= 1) | (right <= 0) | (left >= 1)).sum())
    if outside > inverted:
        yield f"{outside} of {len(boxes)} boxes lie outside the picture"


def _unknown_classes(classes: npt.NDArray[np.int64], truth: Truth, mapping: ClassMapping) -> Iterator[str]:
    if len(set(classes.tolist())) == 1 and len(classes) >= _FEWEST_DETECTIONS and len(truth.categories) > 1:
        yield f"all {len(classes)} detections are of class {classes[0]}"
    unknown = classes[~np.isin(mapping.apply(classes), [category.id for category in truth.categories])]
    if len(unknown):
        yield (
            f"{len(unknown)} of {len(classes)} detections are of classes that the ground truth does not know, such as "
            f"class {unknown[0]} (category {int(mapping.apply(unknown[:1])[0])}); COCO does not count them, the native "
            "tool counts such a class as 0"
        )


def _swapped_sides(pictures: Found, truth: Truth) -> Iterator[str]:
    """Whether far more boxes lie on objects if read as left, top, right, bottom."""
    as_is, swapped = (
        sum(int(lying_on(found.boxes[:, sides], truth.native[index])[0].sum()) for index, found in pictures.items())
        for sides in ([0, 1, 2, 3], [1, 0, 3, 2])
    )
    if swapped >= max(_FEWEST_SWAPPED, 2 * as_is):
        yield (
            f"{swapped} boxes lie on an object if read as left, top, right, bottom, {as_is} as they are: the model "
            "gives the sides in another order"
        )
