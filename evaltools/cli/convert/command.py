"""``evaltools convert FORMAT``: annotations in, files for ``evaltools coco`` and ``evaltools imagenet`` out; logs in.

A new format is a reader in ``evaltools.datasets``, a function with its entry of ``CONVERTERS`` in ``convert_run``, and
an entry of ``FORMATS`` here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from evaltools.cli.shared.streams import complain, tell
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK, USAGE
from evaltools.parameter import Parameter, did_you_mean
from evaltools.request.flags import GivenFlags, parse_flags
from evaltools.tasks.shared.options import ALLOW_FALLBACK

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
VOC_PARAMETERS: Final = (
    Parameter(
        "annotations_folder",
        "Folder of the XML files, usually Annotations. Required.",
        role="input_folder",
        required=True,
    ),
    Parameter(
        "images_folder",
        "Folder of the pictures, usually JPEGImages. Required unless --copy_images=false.",
        role="input_folder",
    ),
    Parameter("image_set_file", "List of the pictures to take, such as ImageSets/Main/val.txt.", role="input_file"),
    Parameter(
        "labels_file",
        "Class names, one per line: the first is category 1, or 0 if it is ???, background or __background__.",
        role="input_file",
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


class Format(NamedTuple):
    """What a format is, and its flags."""

    summary: str
    description: str
    parameters: tuple[Parameter, ...]


FORMATS: Final = {
    "coco": Format(
        "COCO instances JSON, as preprocess_coco_minival.py does it",
        "COCO instances JSON -> files for evaltools coco and the native coco_object_detection/run_eval.",
        (*COCO_PARAMETERS, *OUTPUT_PARAMETERS),
    ),
    "yolo": Format(
        "a folder of pictures with YOLO label files (boxes or outlines)",
        "YOLO label files -> files for evaltools coco. The category of a class is its number + 1.",
        (*YOLO_PARAMETERS, *OUTPUT_PARAMETERS),
    ),
    "voc": Format(
        "a folder of Pascal VOC XML files",
        "Pascal VOC XML -> files for evaltools coco. Difficult objects become crowd regions:\n"
        "neither demanded nor punished.",
        (*VOC_PARAMETERS, *OUTPUT_PARAMETERS),
    ),
    "imagenet": Format(
        "label files from the ILSVRC2012 development kit, as generate_validation_labels.py does it",
        "ILSVRC2012 development kit -> label files for evaltools imagenet.",
        IMAGENET_PARAMETERS,
    ),
    "ios-log": Format(
        "the output of TensorFlow's benchmark app for iOS, a result as evaltools benchmark gives it",
        "Console text of TensorFlow's benchmark app for iOS -> table, and a result of evaltools benchmark.\n"
        "Starts with the same flags, which the log states, are rounds of one configuration.",
        IOS_LOG_PARAMETERS,
    ),
}
PARAMETERS: Final = tuple(parameter for entry in FORMATS.values() for parameter in entry.parameters)
EXIT_CODES: Final = """\
exit codes:
  0    everything was written
  2    a flag or a file is wrong; nothing was written
  3    ios-log: a configuration failed, or nothing shows that its delegate ran
  5    a file could not be written
  130  interrupted; there is no new ground_truth.pb, and no result"""


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
    from evaltools.cli.convert.run import CONVERTERS

    return CONVERTERS[name](flags)


def _printed(text: str) -> int:
    return OK if tell(text) else NOT_WRITTEN


def _wrong_format(name: str) -> str:
    if name.startswith("-"):
        return f"convert: the format comes first, before {name}: evaltools convert FORMAT {name}"
    return f"convert: {name!r} is no format; use {', '.join(FORMATS)}.{did_you_mean(name.lower(), FORMATS)}"


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
