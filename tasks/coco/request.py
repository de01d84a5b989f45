"""The request of a detection evaluation, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from evaltools.datasets.order import Order
from evaltools.errors import UsageError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.metrics.coco_stats import CocoEvaluator
from evaltools.preprocess import parse_normalization
from evaltools.request import Options, Request
from evaltools.tasks.coco.heads import SSD
from evaltools.tasks.coco.task import ChannelOrder, CocoOptions, Resize
from evaltools.tasks.shared.request import TaskRequest, read_margin, shared_fields

DEFAULT_RESAMPLES: Final = 1000
_FEWEST_RESAMPLES: Final = 100
_MOST_RESAMPLES: Final = 100_000
_NO_DECODER: Final = "none"
"""Another word for outputs that need none."""


class CocoRequest(TaskRequest, frozen=True):
    """What to evaluate with which configurations.

    ``keep_pictures`` puts every detection into the result. ``margin`` is the change of mAP, 0..1, that counts as none;
    changes are judged over ``bootstrap_resamples`` draws of the pictures, 0: not at all.
    """

    options: CocoOptions
    keep_pictures: bool = False
    margin: float = DEFAULT_MARGIN
    bootstrap_resamples: int = DEFAULT_RESAMPLES


def read_request(request: Request) -> CocoRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    flags, native = request.options, request.is_native
    options = CocoOptions(
        ground_truth_images_path=Path(flags.text("ground_truth_images_path")),
        ground_truth_annotations=flags.path("ground_truth_annotations"),
        ground_truth_proto=flags.path("ground_truth_proto"),
        model_output_labels=flags.path("model_output_labels"),
        num_images=flags.number("num_images"),
        order=cast(Order, flags.text("order")),
        seed=flags.number("seed"),
        normalization=flags.text("normalization"),
        resize=cast(Resize, flags.text("resize")),
        letterbox_fill=_pixel(flags) if "letterbox_fill" in flags else None,
        channel_order=cast(ChannelOrder, flags.text("channel_order")),
        decoder=SSD if flags.text("decoder") == _NO_DECODER else flags.text("decoder"),
        nms_iou=_iou(flags),
        output_map=flags.text("output_map"),
        class_offset=flags.text("class_offset"),
        score_threshold=flags.real("score_threshold") if "score_threshold" in flags else None,
        coco_evaluator=cast(CocoEvaluator, flags.text("coco_evaluator")),
        native=native,
    )
    if options.num_images < 0:
        raise UsageError(f"--num_images={options.num_images}: use 0 for all pictures, or how many to take")
    if native and options.decoder not in ("auto", SSD):
        raise UsageError(
            f"--decoder={options.decoder}: the native tool decodes no raw heads; leave out one of it and --compat"
        )
    if native and options.channel_order == "bgr":
        raise UsageError("--channel_order=bgr: the native tool feeds RGB; leave out one of it and --compat")
    if native and options.resize not in ("auto", "stretch"):
        raise UsageError(
            f"--resize={options.resize}: the native tool stretches pictures; leave out one of it and --compat"
        )
    if options.normalization != "auto":
        parse_normalization(options.normalization)
    if "coco_evaluator" in flags and not (options.ground_truth_annotations or options.ground_truth_proto):
        raise UsageError("--coco_evaluator has no effect without a ground truth; give one, or leave it out")
    return CocoRequest(
        **shared_fields(request),
        options=options,
        keep_pictures=flags.is_on("record_examples")
        or flags.is_on("debug_mode")
        or bool(flags.text("detections_path") or flags.text("report")),
        margin=read_margin(flags),
        bootstrap_resamples=_resamples(flags),
    )


def _resamples(flags: Options) -> int:
    resamples = flags.number("bootstrap_resamples")
    if resamples and not _FEWEST_RESAMPLES <= resamples <= _MOST_RESAMPLES:
        raise UsageError(
            f"--bootstrap_resamples={resamples}: use {_FEWEST_RESAMPLES} to {_MOST_RESAMPLES}, or 0 to judge no change"
        )
    return resamples


def _iou(flags: Options) -> float:
    iou = flags.real("nms_iou")
    if not 0 <= iou <= 1:
        raise UsageError(f"--nms_iou={iou:g}: use an overlap above 0 and up to 1, or 0 for that of the decoder")
    return iou


def _pixel(flags: Options) -> int:
    value = flags.number("letterbox_fill")
    if not 0 <= value <= 255:
        raise UsageError(f"--letterbox_fill={value}: use a pixel value, 0 to 255")
    return value
