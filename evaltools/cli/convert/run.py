"""``evaltools convert`` behind its flags: one function per format, listed in ``CONVERTERS``; returns the exit code."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.cli.convert.ios_log import convert_ios_log
from evaltools.cli.convert.output import DetectionFolder, write_detection_folder
from evaltools.cli.convert.summary import detection_summary, quoted
from evaltools.cli.shared.streams import complain
from evaltools.datasets import ilsvrc
from evaltools.datasets.coco_instances import read_instances
from evaltools.datasets.image_selection import read_allowlist, select_images
from evaltools.datasets.labels import read_labels
from evaltools.datasets.picture_files import AnnotatedFolder, inner_path
from evaltools.datasets.voc import read_voc
from evaltools.datasets.yolo import labels_folder_beside, names_in_yaml, read_yolo
from evaltools.errors import DataError, UsageError
from evaltools.exit_codes import OK
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.request.flags import GivenFlags
from evaltools.request.yaml_file import read_yaml


def convert_coco(flags: GivenFlags) -> int:
    """Convert COCO instances JSON, by the rules of the native script."""
    instances_file, images_folder = Path(flags.text("instances_file")), flags.path("images_folder")
    allowlist_file = flags.path("allowlist_file")
    allowlist = read_allowlist(allowlist_file, "--allowlist_file") if allowlist_file else None
    data = read_instances(instances_file, "--instances_file")
    selection = select_images(data, allowlist, flags.number("num_images"), flags.is_on("keep_empty_images"))
    if not selection.data.images:
        raise DataError(
            f"--instances_file={instances_file}: none of its {len(data.images)} pictures is taken; "
            f"{selection.left_out_empty} have no objects. Pass --keep_empty_images=true, or another --allowlist_file"
        )
    where = f"--instances_file={instances_file}"
    names = [inner_path(image.file_name, where) for image in selection.data.images]
    pictures = tuple(images_folder / name for name in names) if images_folder else ()
    images = tuple(
        replace(image, file_name=name.name) for image, name in zip(selection.data.images, names, strict=True)
    )
    remarks = selection.remarks
    if selection.left_out_empty:
        remarks += (
            f"{selection.left_out_empty} pictures without objects are left out, as the native script does; "
            "--keep_empty_images=true keeps them",
        )
    source = AnnotatedFolder(replace(selection.data, images=images), pictures, remarks)
    return _write(flags, source, [instances_file, allowlist_file])


def convert_yolo(flags: GivenFlags) -> int:
    """Convert pictures with YOLO label files."""
    images_folder = Path(flags.text("images_folder"))
    labels_folder = flags.path("labels_folder") or labels_folder_beside(images_folder)
    if labels_folder is None:
        raise UsageError(
            f"missing: --labels_folder=...; no folder in --images_folder={images_folder} is named images, so there is "
            "no folder labels beside it"
        )
    names_file = Path(flags.text("names_file"))
    source = read_yolo(images_folder, labels_folder, _class_names(names_file), flags.is_on("coco_ids"))
    return _write(flags, source, [names_file, labels_folder])


def _class_names(path: Path) -> tuple[str, ...]:
    if path.suffix.lower() in (".yaml", ".yml"):
        return names_in_yaml(read_yaml(path, "--names_file"), f"--names_file={path}")
    return read_labels(path, "--names_file").lines


def convert_voc(flags: GivenFlags) -> int:
    """Convert Pascal VOC XML files."""
    annotations_folder, images_folder = Path(flags.text("annotations_folder")), flags.path("images_folder")
    image_set_file, labels_file = flags.path("image_set_file"), flags.path("labels_file")
    labels = read_labels(labels_file, "--labels_file").lines if labels_file else None
    source = read_voc(annotations_folder, images_folder, image_set_file, labels)
    return _write(flags, source, [annotations_folder, image_set_file, labels_file])


def _write(flags: GivenFlags, source: AnnotatedFolder, inputs: list[Path | None]) -> int:
    target = DetectionFolder(
        folder=Path(flags.text("output_folder")),
        images_folder=flags.path("images_folder"),
        copy_images=flags.is_on("copy_images"),
        inputs=tuple(path for path in inputs if path),
    )
    conversion = write_detection_folder(source, target)
    complain(detection_summary(source, target, conversion))
    return OK


def convert_imagenet(flags: GivenFlags) -> int:
    """Convert label files of the ILSVRC2012 development kit."""
    devkit, wnids = Path(flags.text("ilsvrc_devkit_dir")), flags.is_on("wnids")
    names = ("validation_labels_output", "model_output_labels_output")
    truths, classes = (flags.path(name) for name in names)
    if not truths and not classes:
        raise UsageError("missing: --validation_labels_output=..., --model_output_labels_output=..., or both")
    if flags.is_on("background") and not classes:
        raise UsageError("--background=true is for --model_output_labels_output; give that, or leave it out")
    _check_label_outputs(
        devkit, {f"--{name}": path for name, path in zip(names, (truths, classes), strict=True) if path}
    )
    synsets = ilsvrc.read_synsets(devkit)
    lines = []
    if truths:
        labels = ilsvrc.validation_labels(synsets, ilsvrc.read_validation_ids(devkit), wnids)
        write_file(truths, _text(labels))
        lines.append(f"{truths}: {len(labels)} labels of {len(set(labels))} classes, in order of the pictures' names")
    if classes:
        labels = ilsvrc.class_labels(synsets, wnids, flags.is_on("background"))
        write_file(classes, _text(labels))
        lines.append(f"{classes}: {len(labels)} lines, the classes by ascending WordNet id")
    shared = {} if wnids else ilsvrc.shared_labels(synsets)
    if shared:
        stated = "; ".join(f"{label}: {' and '.join(ids)}" for label, ids in shared.items())
        lines.append(
            f"note: {len(shared)} names stand for more than one class ({stated}); --wnids=true keeps them apart"
        )
    complain("\n".join([*lines, *_imagenet_command(truths, classes)]))
    return OK


def _check_label_outputs(devkit: Path, outputs: dict[str, Path]) -> None:
    for flag, path in outputs.items():
        require_writable(path, flag)
        for part in (ilsvrc.META_FILE, ilsvrc.GROUND_TRUTH_FILE):
            if os.path.realpath(path) == os.path.realpath(devkit / part):
                raise UsageError(f"{flag}={path} is a file of the kit; give another name")


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _imagenet_command(truths: Path | None, classes: Path | None) -> list[str]:
    return [
        "next:",
        "  evaltools imagenet --model_file=... --ground_truth_images_path=... "
        f"--ground_truth_labels={quoted(truths)} --model_output_labels={quoted(classes)}",
    ]


CONVERTERS: Final[dict[str, Callable[[GivenFlags], int]]] = {
    "coco": convert_coco,
    "yolo": convert_yolo,
    "voc": convert_voc,
    "imagenet": convert_imagenet,
    "ios-log": convert_ios_log,
}
"""What runs each of ``convert.FORMATS``."""
