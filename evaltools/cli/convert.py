"""``evaltools convert FORMAT``: annotations in, files for ``evaltools coco`` and ``evaltools imagenet`` out; logs in.

A new format is a reader in ``evaltools.datasets``, and here a function that calls it, its flags, and an entry of
``FORMATS``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from evaltools.cli.shared.streams import complain, say_wrapped
from evaltools.errors import DataError, UsageError
from evaltools.exit_codes import INTERRUPTED, NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.gone import FORMATS_GONE
from evaltools.parameter import Parameter, did_you_mean
from evaltools.report.files.output_file import require_output_file, require_writable, write_file
from evaltools.request.flags import GivenFlags, parse_flags
from evaltools.tasks.framework.common_options import ALLOW_FALLBACK

if TYPE_CHECKING:
    from evaltools.datasets.picture_files import AnnotatedFolder

OUTPUT_PARAMETERS: Final = (
    Parameter(
        "output_folder",
        "Folder for ground_truth.pb, instances.json, labels.txt and images/; made if missing. Required.",
        role="output_folder",
        required=True,
    ),
    Parameter("copy_images", "Copy the pictures into images/ of the output folder.", default=True),
)
COCO_PARAMETERS: Final = (
    Parameter(
        "instances_file",
        "COCO instances JSON, such as instances_val2017.json. Required.",
        role="input_file",
        required=True,
    ),
    Parameter("images_folder", "Folder of the pictures. Required unless --copy_images=false.", role="input_folder"),
    Parameter("allowlist_file", "File of picture ids to take, one per line; without it, all.", role="input_file"),
    Parameter("num_images", "Take the first N pictures by ascending id; 0: all.", default=0),
    Parameter("keep_empty_images", "Take pictures without objects too; the native script does not.", default=False),
)
YOLO_PARAMETERS: Final = (
    Parameter("images_folder", "Folder of the pictures. Required.", role="input_folder", required=True),
    Parameter(
        "labels_folder",
        "Folder of the label files, named like the pictures. Without it, the folder labels beside images.",
        role="input_folder",
    ),
    Parameter(
        "names_file",
        "Class names: data.yaml (names:), or a text file, one per line. Required.",
        role="input_file",
        required=True,
    ),
    Parameter(
        "coco_ids", "Number the 80 classes of COCO as COCO does, 1..90 with gaps, instead of 1..80.", default=False
    ),
)
IMAGENET_PARAMETERS: Final = (
    Parameter(
        "ilsvrc_devkit_dir", "The unpacked folder ILSVRC2012_devkit_t12. Required.", role="input_folder", required=True
    ),
    Parameter(
        "validation_labels_output",
        "File for the label of each validation picture, in order of their names.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "model_output_labels_output",
        "File for the labels of the 1000 classes by ascending WordNet id, the order of most models' outputs.",
        role="output_file",
        about="result",
    ),
    Parameter("wnids", "Write WordNet ids, which are unique, instead of names, which are not.", default=False),
    Parameter("background", "Begin the 1000 classes with background, for models with 1001 outputs.", default=False),
)
IOS_LOG_PARAMETERS: Final = (
    Parameter(
        "log_file",
        "Text file with what Xcode's or the device's console showed. Required.",
        role="input_file",
        required=True,
        positional=True,
    ),
    Parameter("graph", "The .tflite model that was measured. Required.", role="input_file", required=True),
    Parameter("output_file_path", "JSON file with the result.", role="output_file", about="result", short="output"),
    ALLOW_FALLBACK,
)


def convert_coco(flags: GivenFlags) -> int:
    """Convert COCO instances JSON, by the rules of the native script."""
    from evaltools.datasets.coco_instances import read_instances
    from evaltools.datasets.object_annotations import read_allowlist, select_images
    from evaltools.datasets.picture_files import AnnotatedFolder, inner_path

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
    from evaltools.datasets.yolo import labels_folder_beside, read_yolo

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
    from evaltools.datasets.labels import read_labels
    from evaltools.datasets.yolo import names_in_yaml
    from evaltools.request.yaml_file import read_yaml

    if path.suffix.lower() in (".yaml", ".yml"):
        return names_in_yaml(read_yaml(path, "--names_file"), f"--names_file={path}")
    return read_labels(path, "--names_file").lines


def _write(flags: GivenFlags, source: AnnotatedFolder, inputs: list[Path | None]) -> int:
    from evaltools.cli.convert_detection import DetectionFolder, detection_summary, write_detection_folder

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
    from evaltools.datasets import ilsvrc

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
    from evaltools.datasets.ilsvrc import GROUND_TRUTH_FILE, META_FILE

    for flag, path in outputs.items():
        require_writable(path, flag)
        for part in (META_FILE, GROUND_TRUTH_FILE):
            if os.path.realpath(path) == os.path.realpath(devkit / part):
                raise UsageError(f"{flag}={path} is a file of the kit; give another name")


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _imagenet_command(truths: Path | None, classes: Path | None) -> list[str]:
    from evaltools.cli.convert_detection import quoted

    return [
        "next:",
        "  evaltools imagenet --model_file=... --ground_truth_images_path=... "
        f"--ground_truth_labels={quoted(truths)} --model_output_labels={quoted(classes)}",
    ]


def convert_ios_log(flags: GivenFlags) -> int:
    """Read the log, write the result, print the table."""
    from evaltools.benchmark.ios import result_of_ios_log
    from evaltools.cli.shared.terminal import make_console
    from evaltools.report.page.screens import print_result
    from evaltools.result.json_file import encode_json

    log, graph, output = Path(flags.text("log_file")), Path(flags.text("graph")), flags.path("output_file_path")
    if output is not None:
        require_output_file(output, "--output_file_path", [log, graph])
    command = ["evaltools", "convert", "ios-log", *(f"--{name}={text}" for name, text in flags.given)]
    result = result_of_ios_log(log, graph, command, flags.is_on("allow_fallback"))
    if output is not None:
        write_file(output, encode_json(result))
    print_result(result, make_console())
    return NOT_MEASURED if any(row.status != "measured" for row in result.rows) else OK


class Format(NamedTuple):
    """What a format is, its flags, and what converts it; that returns the exit code."""

    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    convert: Callable[[GivenFlags], int]


FORMATS: Final = {
    "coco": Format(
        "COCO instances JSON, as preprocess_coco_minival.py does it",
        "COCO instances JSON -> files for evaltools coco and the native coco_object_detection/run_eval.",
        (*COCO_PARAMETERS, *OUTPUT_PARAMETERS),
        convert_coco,
    ),
    "yolo": Format(
        "a folder of pictures with YOLO label files (boxes or outlines)",
        "YOLO label files -> files for evaltools coco. The category of a class is its number + 1.",
        (*YOLO_PARAMETERS, *OUTPUT_PARAMETERS),
        convert_yolo,
    ),
    "imagenet": Format(
        "label files from the ILSVRC2012 development kit, as generate_validation_labels.py does it",
        "ILSVRC2012 development kit -> label files for evaltools imagenet.",
        IMAGENET_PARAMETERS,
        convert_imagenet,
    ),
    "ios-log": Format(
        "the output of TensorFlow's benchmark app for iOS, a result as evaltools benchmark gives it",
        "Console text of TensorFlow's benchmark app for iOS -> table, and a result of evaltools benchmark.\n"
        "Starts with the same flags, which the log states, are rounds of one configuration.",
        IOS_LOG_PARAMETERS,
        convert_ios_log,
    ),
}
PARAMETERS: Final = tuple(parameter for entry in FORMATS.values() for parameter in entry.parameters)
EXIT_CODES: Final = in_words(
    {
        OK: "everything was written",
        USAGE: "a flag or a file is wrong; nothing was written",
        NOT_MEASURED: "ios-log: a configuration failed, or nothing shows that its delegate ran",
        NOT_WRITTEN: "",
        INTERRUPTED: "interrupted; there is no new ground_truth.pb, and no result",
    }
)


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    if not arguments:
        return _printed(_help_text()) or USAGE
    if arguments[0] in ("-h", "--help", "--help=all", "help"):
        return _printed(_help_text())
    name, rest = arguments[0], arguments[1:]
    if name not in FORMATS:
        complain(f"evaltools: {_wrong_format(name)}\n{_help_text()}")
        return USAGE
    chosen = FORMATS[name]
    flags = parse_flags(f"convert {name}", chosen.description, EXIT_CODES, {"flags": chosen.parameters}, rest)
    _require(name, flags)
    return chosen.convert(flags)


def _printed(text: str) -> int:
    return OK if say_wrapped(text) else NOT_WRITTEN


def _wrong_format(name: str) -> str:
    if instead := FORMATS_GONE.get(name):
        return f"convert: {name} is gone: {instead}"
    if name.startswith("-"):
        return f"convert: the format comes first, before {name}: evaltools convert FORMAT {name}"
    return f"convert: {name!r} is not a format; use {', '.join(FORMATS)}.{did_you_mean(name.lower(), FORMATS)}"


def _require(name: str, flags: GivenFlags) -> None:
    missing = flags.missing
    if "copy_images" in flags.parameters and flags.is_on("copy_images") and not flags.text("images_folder"):
        missing += [] if "--images_folder=..." in missing else ["--images_folder=... (or --copy_images=false)"]
    if missing:
        raise UsageError(f"missing: {' '.join(missing)}. See evaltools convert {name} --help")


def _help_text() -> str:
    width = max(map(len, FORMATS))
    formats = "\n".join(f"  {name:<{width}}  {entry.summary}" for name, entry in FORMATS.items())
    return (
        "usage: evaltools convert FORMAT --flag=value ...\n\n"
        "Makes the files that evaltools coco and evaltools imagenet read, and results, from what you have.\n\n"
        f"formats:\n{formats}\n\n"
        f"evaltools convert FORMAT --help lists the flags of a format.\n\n{EXIT_CODES}"
    )
