"""The options of a detection evaluation."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter
from evaltools.tasks.shared.options.pictures import (
    IMAGES_PATH,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    NORMALIZATION,
    NUM_IMAGES,
    OUTPUT_FILE_PATH,
)

_EVALUATION: Final = (
    Parameter("model_file", "string", "", "The .tflite detector. Required."),
    IMAGES_PATH,
    Parameter("ground_truth_annotations", "string", "", "COCO instances_*.json of the pictures."),
    Parameter(
        "ground_truth_proto",
        "string",
        "",
        "The native tool's binary ground_truth.pb instead. With neither, boxes of configurations are only compared.",
    ),
    Parameter(
        "model_output_labels",
        "string",
        "",
        "Label file: line i (from 0) names category i. Optional: names are checked and drawn.",
    ),
    OUTPUT_FILE_PATH,
    Parameter("debug_mode", "bool", False, "Print every detection to stdout, in the native tool's lines."),
    NUM_IMAGES,
    Parameter("score_threshold", "float", 0.0, "Leave out detections with a lower score, everywhere; 0: keep all."),
    MAX_FAILED_EXAMPLES,
)
_READING: Final = (
    NORMALIZATION,
    Parameter(
        "resize",
        "string",
        "stretch",
        "stretch: straight to the input's size, as native. letterbox, letterbox_top_left: keep the aspect ratio, in "
        "the middle or at the top left, and map boxes back.",
        choices=("stretch", "letterbox", "letterbox_top_left"),
    ),
    Parameter("letterbox_fill", "int32", 114, "Pixel value around a letterboxed picture, 0..255."),
    Parameter(
        "output_map",
        "string",
        "auto",
        "Which output is what: boxes=0,classes=1,scores=2,count=3 with numbers or names. auto: from the operator, else "
        "by shapes, names and values, which the output names.",
    ),
    Parameter(
        "class_offset",
        "string",
        "auto",
        "Category of a class: a number to add (native: 1), or dense for the k-th category that exists (80->90 in "
        "COCO). auto: what fits the ground truth, which the output names.",
    ),
)
_OUTPUT: Final = (
    Parameter(
        "coco_evaluator",
        "string",
        "pycocotools",
        "What takes the COCO figures; faster-coco-eval gives the same ones (pip install 'evaltools[fast]').",
        choices=("pycocotools", "faster-coco-eval"),
    ),
    Parameter(
        "bootstrap_resamples",
        "int32",
        1000,
        "Draws of the pictures by which changes of the COCO figures are judged; 0: not judged, which saves time.",
    ),
    MARGIN,
    Parameter("record_examples", "bool", False, "Write every detection to the JSON result."),
    Parameter(
        "detections_path",
        "string",
        "",
        "Write the detections in the COCO results format: FILE.json for the first test configuration, FILE.NAME.json "
        "for the others and the reference.",
    ),
    Parameter(
        "disagreements_path",
        "string",
        "",
        "Draw a PNG: the pictures where boxes differ most from the reference, with ground truth, reference and test.",
    ),
)

OPTIONS: Final = {
    "evaluation": _EVALUATION,
    "reading pictures and outputs": _READING,
    "figures and files": _OUTPUT,
}
REQUIRED: Final = ("model_file", "ground_truth_images_path")
DESCRIPTION: Final = """\
Detection mAP on annotated pictures, and whether the boxes are the same, for a reference and any number of
configurations in one pass. Without annotations, only whether the boxes are the same.
stdout: the lines of the native tool. stderr: what ran, progress, tables, findings."""
