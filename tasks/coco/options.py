"""The options of a detection evaluation."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.shared.options import (
    CHANNEL_ORDER,
    IMAGES_PATH,
    INPUT_LAYOUT,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    MODEL_FILE,
    NORMALIZATION,
    NUM_IMAGES,
    ORDER,
    OUTPUT_FILE_PATH,
    REFERENCE_MODEL_FILE,
    SEED,
)

DECODERS: Final = ("yolov5", "yolov8", "yolox", "yolo_nms")
"""The raw heads that can be read; how, says ``yolo_heads.py``."""
_IN_THE_RESULT: Final = NotNative("detections are in the JSON result, with --record_examples")

_EVALUATION: Final = (
    MODEL_FILE,
    REFERENCE_MODEL_FILE,
    IMAGES_PATH,
    Parameter(
        "ground_truth_annotations", "COCO instances_*.json of the pictures.", role="input_file", short="ground_truth"
    ),
    Parameter(
        "ground_truth_proto",
        "The native tool's binary ground_truth.pb instead. With neither, boxes of configurations are only compared.",
        role="input_file",
    ),
    Parameter(
        "model_output_labels",
        "Label file: line i (from 0) names category i. Optional: names are checked and drawn.",
        role="input_file",
        short="labels",
    ),
    OUTPUT_FILE_PATH,
    Parameter(
        "debug_mode",
        "Print every detection to stdout, in the native tool's lines.",
        default=False,
        about="result",
        in_python="only the command line prints it",
        not_native=_IN_THE_RESULT,
    ),
    NUM_IMAGES,
    ORDER,
    SEED,
    Parameter(
        "score_threshold",
        "Leave out detections with a lower score, everywhere; 0: keep all, which is the default but for raw heads "
        "(0.001; yolox: 0.01).",
        default=0.0,
        given_counts=True,
        not_native=NotNative("the native tool keeps every detection"),
    ),
    MAX_FAILED_EXAMPLES,
)
_READING: Final = (
    NORMALIZATION,
    Parameter(
        "resize",
        "stretch: straight to the input's size, as native. letterbox, letterbox_top_left: keep the aspect ratio, in "
        "the middle or at the top left, and map boxes back. auto: letterbox for raw heads (yolox: letterbox_top_left), "
        "else stretch.",
        default="auto",
        choices=("auto", "stretch", "letterbox", "letterbox_top_left"),
        not_native=NotNative("the native tool stretches pictures", ("stretch",)),
    ),
    Parameter(
        "letterbox_fill",
        "Pixel value around a letterboxed picture, 0..255.",
        default=114,
        only_with=("resize=auto|letterbox|letterbox_top_left",),
        not_native=NotNative("the native tool stretches pictures"),
    ),
    replace(
        CHANNEL_ORDER,
        help="Order of a picture's channels. auto: rgb, but bgr for yolox.",
        default="auto",
        choices=("auto", "rgb", "bgr"),
    ),
    INPUT_LAYOUT,
    Parameter(
        "decoder",
        "What the outputs are: ssd or none (boxes, classes, scores), or a raw head of a YOLO. auto: by shapes, values "
        "and the ground truth, which the output names.",
        default="auto",
        choices=("auto", "ssd", "none", *DECODERS),
        not_native=NotNative("the native tool decodes no raw heads", ("ssd", "none")),
    ),
    Parameter(
        "nms_iou",
        "Overlap above which a box of a raw head is suppressed by a better one of its class; 0: as the validation of "
        "its authors (yolov5 0.6, yolov8 0.7, yolox 0.65).",
        default=0.0,
        only_with=(f"decoder=auto|{'|'.join(DECODERS)}",),
        not_native=NotNative("the native tool decodes no raw heads"),
    ),
    Parameter(
        "output_map",
        "Which output is what: boxes=0,classes=1,scores=2,count=3 with numbers or names. auto: from the operator, else "
        "by shapes, names and values, which the output names.",
        default="auto",
        not_native=NotNative("the native tool reads outputs by their order", ("boxes=0,classes=1,scores=2,count=3",)),
    ),
    Parameter(
        "class_offset",
        "Category of a class: a number to add (native: 1), or dense for the k-th category that exists (80->90 in "
        "COCO). auto: dense for a YOLO, else what confident detections show; where they do not, the run stops.",
        default="auto",
        not_native=NotNative("the native tool adds 1 to every class", ("1", "+1")),
    ),
)
_OUTPUT: Final = (
    Parameter(
        "coco_evaluator",
        "What takes the COCO figures; faster-coco-eval gives the same ones (pip install 'evaltools[fast]').",
        default="pycocotools",
        choices=("pycocotools", "faster-coco-eval"),
    ),
    Parameter(
        "bootstrap_resamples",
        "Draws of the pictures by which changes of the COCO figures are judged; 0: not judged, which saves time.",
        default=1000,
        about="result",
        for_records=0,
    ),
    MARGIN,
    Parameter("record_examples", "Write every detection to the JSON result.", default=False, about="result"),
    Parameter(
        "detections_path",
        "Write the detections in the COCO results format: FILE.json for the first test configuration, FILE.NAME.json "
        "for the others and the reference.",
        role="output_file",
        about="result",
        not_native=_IN_THE_RESULT,
    ),
)

OPTIONS: Final = {
    "evaluation": _EVALUATION,
    "reading pictures and outputs": _READING,
    "figures and files": _OUTPUT,
}
DESCRIPTION: Final = """\
Detection mAP on annotated pictures, and whether the boxes are the same, for a reference and any number of
configurations in one pass. Without annotations, only whether the boxes are the same.
stdout: the lines of the native tool. stderr: what ran, progress, tables, findings."""
