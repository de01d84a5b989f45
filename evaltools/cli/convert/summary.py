"""What ``evaltools convert`` prints after it has written: files and counts, remarks, the next command."""

from __future__ import annotations

import shlex
from pathlib import Path

from evaltools.cli.convert.output import DetectionFolder, pictures_besides
from evaltools.datasets.image_folder import is_picture
from evaltools.datasets.native_ground_truth import NativeConversion
from evaltools.datasets.object_annotations import AnnotatedImages, label_lines
from evaltools.datasets.picture_files import AnnotatedFolder


def detection_summary(source: AnnotatedFolder, target: DetectionFolder, conversion: NativeConversion) -> str:
    """The lines to print on stderr."""
    remarks = [*source.remarks, *_data_remarks(source.data), *_picture_remarks(source, target)]
    lines = [
        *_counts(source.data, target, conversion),
        *(f"note: {remark}" for remark in remarks),
        "next:",
        f"  evaltools coco --model_file=... --ground_truth_images_path={quoted(target.pictures)} "
        f"--ground_truth_annotations={quoted(target.instances)} --model_output_labels={quoted(target.labels)}",
    ]
    return "\n".join(lines)


def quoted(path: Path | None) -> str:
    """A path quoted for a shell; ``...`` for None."""
    return shlex.quote(str(path)) if path else "..."


def _counts(data: AnnotatedImages, target: DetectionFolder, conversion: NativeConversion) -> list[str]:
    annotations = [annotation for image in data.images for annotation in image.annotations]
    empty = sum(not image.annotations for image in data.images)
    crowds = sum(annotation.is_crowd for annotation in annotations)
    used = len({annotation.category_id for annotation in annotations})
    left_out = f"; {conversion.dropped} left out, a side lies beyond the picture" if conversion.dropped else ""
    regions = f", {crowds} of them crowd regions (ordinary objects in {target.ground_truth.name})" if crowds else ""
    lines = [
        f"{len(data.images)} pictures, {empty} of them without objects; {len(annotations)} objects in {used} of "
        f"{len(data.categories)} categories",
        f"  {target.ground_truth}: {len(annotations) - conversion.dropped} objects, for the native tool{left_out}",
        f"  {target.instances}: {len(annotations)} objects{regions}",
        f"  {target.labels}: {len(label_lines(data.categories))} lines, line i (from 0) names category i",
    ]
    return [*lines, f"  {target.copies}: {len(data.images)} pictures"] if target.copy_images else lines


def _data_remarks(data: AnnotatedImages) -> list[str]:
    annotations = [annotation for image in data.images for annotation in image.annotations]
    remarks = []
    if data.unlisted_annotations:
        remarks.append(
            f"{data.unlisted_annotations} annotations are of pictures that the file does not list, and are left out"
        )
    flat = sum(min(annotation.bbox[2:]) <= 0 for annotation in annotations)
    if flat:
        remarks.append(f"{flat} objects have a box without area, which no detection matches")
    if any(annotation.category_id == 0 for annotation in annotations):
        remarks.append(
            "there are objects of category 0; the native tool adds 1 to a model's classes, so it never finds one. "
            "Number the categories from 1 where that matters"
        )
    return remarks


def _picture_remarks(source: AnnotatedFolder, target: DetectionFolder) -> list[str]:
    names = [image.file_name for image in source.data.images]
    remarks = []
    unread = [name for name in names if not is_picture(name)]
    if unread:
        remarks.append(f"{len(unread)} pictures, such as {unread[0]}, are of a kind that no evaluation here reads")
    if target.pictures is None:
        return remarks
    elsewhere = [path for path in source.pictures if path.parent != target.pictures]
    if elsewhere and not target.copy_images:
        remarks.append(
            f"{len(elsewhere)} pictures, such as {elsewhere[0]}, lie in subfolders, where an evaluation does not look; "
            "--copy_images=true puts all into one folder"
        )
    others = pictures_besides(target.pictures, names)
    if others:
        remarks.append(
            f"{target.pictures} has {len(others)} more pictures, such as {others[0]}, without an entry in the ground "
            "truth; evaltools coco leaves them out, the native tool takes them for pictures without objects"
        )
    return remarks
