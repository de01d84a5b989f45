"""COCO detection."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec.structs import replace

from evaltools.command import Accuracy
from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import (
    CHANNEL_ORDER,
    IMAGES_PATH,
    NORMALIZATION,
    NUM_IMAGES,
    ExampleOrder,
    Seed,
)
from evaltools.tasks.framework.definition import Setting, Task, task

DECODERS: Final = ("yolov5", "yolov8", "yolov8_pose", "yolox", "yolo_nms")
"""The raw heads that can be read; how, says ``yolo_heads.py``."""
_IN_THE_RESULT: Final = NotNative("detections are in the JSON result, with --record_examples")
_STRETCHES: Final = "the native tool stretches pictures"
_NO_HEADS: Final = "the native tool decodes no raw heads"

_TRUTH: Final = Parameter(
    "ground_truth_annotations", "COCO instances_*.json of the pictures.", role="input_file", short="ground_truth"
)
_PROTO: Final = Parameter(
    "ground_truth_proto",
    "The native tool's binary ground_truth.pb instead. With neither, boxes of configurations are only compared.",
    role="input_file",
)
_LABELS: Final = Parameter(
    "model_output_labels",
    "Label file: line i (from 0) names category i. Optional: names are checked and drawn.",
    role="input_file",
    short="labels",
)
_DEBUG: Final = Parameter(
    "debug_mode",
    "Print every detection to stdout, in the native tool's lines.",
    default=False,
    about="result",
    in_python="only the command line prints it",
    not_native=_IN_THE_RESULT,
)
_THRESHOLD: Final = Parameter(
    "score_threshold",
    "Leave out detections with a lower score, everywhere; 0: keep all, which is the default but for raw heads "
    "(0.001; yolox: 0.01).",
    default=0.0,
    given_counts=True,
    not_native=NotNative("the native tool keeps every detection"),
)
_RESIZE: Final = Parameter(
    "resize",
    "stretch: straight to the input's size, as native. letterbox, letterbox_top_left: keep the aspect ratio, in "
    "the middle or at the top left, and map boxes back. auto: letterbox for raw heads (yolox: letterbox_top_left), "
    "else stretch.",
    not_native=NotNative(_STRETCHES, ("stretch",)),
)
_FILL: Final = Parameter(
    "letterbox_fill",
    "Pixel value around a letterboxed picture, 0..255.",
    default=114,
    only_with=("resize=auto|letterbox|letterbox_top_left",),
    not_native=NotNative(_STRETCHES),
)
_ORDER: Final = replace(CHANNEL_ORDER, help="Order of a picture's channels. auto: rgb, but bgr for yolox.")
_DECODER: Final = Parameter(
    "decoder",
    "What the outputs are: ssd or none (boxes, classes, scores), or a raw head of a YOLO. auto: by shapes, values "
    "and the ground truth, which the output names.",
    not_native=NotNative(_NO_HEADS, ("ssd", "none")),
)
_NMS: Final = Parameter(
    "nms_iou",
    "Overlap above which a box of a raw head is suppressed by a better one of its class; 0: as the validation of "
    "its authors (yolov5 0.6, yolov8 0.7, yolox 0.65).",
    default=0.0,
    only_with=(f"decoder=auto|{'|'.join(DECODERS)}",),
    not_native=NotNative(_NO_HEADS),
)
_MAP: Final = Parameter(
    "output_map",
    "Which output is what: boxes=0,classes=1,scores=2,count=3 with numbers or names. auto: from the operator, else "
    "by shapes, names and values, which the output names.",
    not_native=NotNative("the native tool reads outputs by their order", ("boxes=0,classes=1,scores=2,count=3",)),
)
_OFFSET: Final = Parameter(
    "class_offset",
    "Category of a class: a number to add (native: 1), or dense for the k-th category that exists (80->90 in "
    "COCO). auto: dense for a YOLO, else what confident detections show; where they do not, the run stops.",
    not_native=NotNative("the native tool adds 1 to every class", ("1", "+1")),
)
_EVALUATOR: Final = Parameter(
    "coco_evaluator",
    "What takes the COCO figures; faster-coco-eval gives the same ones (pip install 'evaltools[fast]').",
    default="pycocotools",
)
_RESAMPLES: Final = Parameter(
    "bootstrap_resamples",
    "Draws of the pictures by which changes of the COCO figures are judged; 0: not judged, which saves time.",
    about="result",
    for_records=0,
)
_DETECTIONS: Final = Parameter(
    "detections_path",
    "Write the detections in the COCO results format: FILE.json for the first test configuration, FILE.NAME.json "
    "for the others and the reference.",
    role="output_file",
    about="result",
    not_native=_IN_THE_RESULT,
)


@task
def coco(
    ground_truth_images_path: Annotated[Path, IMAGES_PATH],
    setting: Setting,
    ground_truth_annotations: Annotated[Path | None, _TRUTH] = None,
    ground_truth_proto: Annotated[Path | None, _PROTO] = None,
    model_output_labels: Annotated[Path | None, _LABELS] = None,
    num_images: Annotated[int, NUM_IMAGES] = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
    normalization: Annotated[str, NORMALIZATION] = "auto",
    resize: Annotated[Literal["auto", "stretch", "letterbox", "letterbox_top_left"], _RESIZE] = "auto",
    letterbox_fill: Annotated[int | None, _FILL] = None,
    channel_order: Annotated[Literal["auto", "rgb", "bgr"], _ORDER] = "auto",
    decoder: Annotated[
        Literal["auto", "ssd", "none", "yolov5", "yolov8", "yolov8_pose", "yolox", "yolo_nms"], _DECODER
    ] = "auto",
    nms_iou: Annotated[float, _NMS] = 0.0,
    score_threshold: Annotated[float | None, _THRESHOLD] = None,
    output_map: Annotated[str, _MAP] = "auto",
    class_offset: Annotated[str, _OFFSET] = "auto",
    coco_evaluator: Annotated[Literal["pycocotools", "faster-coco-eval"] | None, _EVALUATOR] = None,
    bootstrap_resamples: Annotated[int, _RESAMPLES] = 1000,
    debug_mode: Annotated[bool, _DEBUG] = False,
    detections_path: Annotated[Path | None, _DETECTIONS] = None,
) -> Task:
    """Detection mAP on annotated pictures; do the boxes agree.

    Detection mAP on annotated pictures, and whether the boxes are the same, for a reference and any number of
    configurations in one pass. Without annotations, only whether the boxes are the same.
    stdout: the lines of the native tool. stderr: what ran, progress, tables, findings.
    """
    from evaltools.tasks.coco.boxes import Judging
    from evaltools.tasks.coco.detector import DetectorOptions
    from evaltools.tasks.coco.evaluation import detection, load_data
    from evaltools.tasks.framework.image_input import require_native

    if setting.native:
        require_native((_DECODER, decoder), (_RESIZE, resize))
    options = DetectorOptions(
        normalization=normalization,
        resize=resize,
        letterbox_fill=letterbox_fill,
        channel_order=channel_order,
        input_layout=setting.input_layout,
        decoder=decoder,
        nms_iou=nms_iou,
        output_map=output_map,
        class_offset=class_offset,
        score_threshold=score_threshold,
        native=setting.native,
    )
    has_truth = bool(ground_truth_annotations or ground_truth_proto)
    judging = Judging(coco_evaluator, bootstrap_resamples, debug_mode or detections_path is not None, has_truth)
    data = load_data(
        setting.models,
        options,
        ground_truth_images_path,
        ground_truth_annotations,
        ground_truth_proto,
        model_output_labels,
        num_images,
        order,
        seed,
    )
    return detection(data, judging)


COMMAND: Final = dataclasses.replace(
    comes_with_evaltools(
        coco,
        "evaltools.tasks.coco.metrics",
        Accuracy("ap", "mAP"),
        native="evaltools.tasks.coco.native",
        place=2,
        needs=("pycocotools.cocoeval",),
        native_answers=True,
    ),
    next_steps_at="evaltools.tasks.coco.page:next_steps",
    file_option="detections_path",
    file_at="evaltools.tasks.coco.conclude:detections_file",
)
