"""COCO detection: the request, and what a detector finds in pictures with annotated objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.datasets.order import Order
from evaltools.engine.task import Prepared
from evaltools.errors import ModelError, UsageError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.metrics.boxes import Detections
from evaltools.metrics.coco_stats import CocoEvaluator
from evaltools.metrics.difference import Scale
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import ImageToTensor, Letterbox, parse_normalization
from evaltools.runtime.session import Array
from evaltools.tasks.coco.result import OutputMap
from evaltools.tasks.coco.truth import EvaluatedPictures
from evaltools.tasks.shared.image_input import (
    ACCEPTED_TYPES,
    NATIVE_TYPES,
    PictureFrame,
    StatedLayout,
    check_picture_input,
    input_transform,
    require_native_channels,
)
from evaltools.tasks.shared.picture_task import PictureTask
from evaltools.tasks.shared.request import require_margin

Floats = npt.NDArray[np.float32]
Resize = Literal["auto", "stretch", "letterbox", "letterbox_top_left"]
ChannelOrder = Literal["auto", "rgb", "bgr"]
LETTERBOX_FILL: Final = 114
SSD: Final = "ssd"
OUTPUT_TYPES: Final = (
    "float32", "float16", "float64", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bool",
)  # fmt: skip
_ABOUT_HEADS: Final = (
    "A model with the raw head of a YOLO has one output, [1,N,5+classes] or [1,4+classes,N], where N counts the cells "
    "of the strides 8, 16, 32 (at 640x640: 8400, or 25200 with 3 boxes per cell), and is read with --decoder"
)
DEFAULT_EVALUATOR: Final = "pycocotools"
DEFAULT_RESAMPLES: Final = 1000
_FEWEST_RESAMPLES: Final = 100
_MOST_RESAMPLES: Final = 100_000
_NO_DECODER: Final = "none"
"""Another word for outputs that need none."""


class CocoOptions(Struct, frozen=True):
    """The options of a detection evaluation, named as on the command line.

    ``native`` is ``--compat=native``. ``letterbox_fill`` is a pixel value, 0..255, None if not stated.
    ``score_threshold`` 0 keeps every detection; None, and ``nms_iou`` 0, stand for the values that the decoder's
    authors use for validation. ``margin`` is the change of mAP, 0..1, that counts as none; changes are judged over
    ``bootstrap_resamples`` draws of the pictures, 0: not at all.
    """

    ground_truth_images_path: Path
    ground_truth_annotations: Path | None = None
    ground_truth_proto: Path | None = None
    model_output_labels: Path | None = None
    num_images: int = 0
    order: Order = "native"
    seed: int = 1
    normalization: str = "auto"
    resize: Resize = "auto"
    letterbox_fill: int | None = None
    channel_order: ChannelOrder = "auto"
    input_layout: StatedLayout = "auto"
    decoder: str = "auto"
    nms_iou: float = 0.0
    output_map: str = "auto"
    class_offset: str = "auto"
    score_threshold: float | None = None
    coco_evaluator: CocoEvaluator | None = None
    record_examples: bool = False
    debug_mode: bool = False
    detections_path: Path | None = None
    report: Path | None = None
    margin: float = DEFAULT_MARGIN
    bootstrap_resamples: int = DEFAULT_RESAMPLES
    native: bool = False

    @property
    def keeps_pictures(self) -> bool:
        """Whether every detection is put into the result."""
        return self.record_examples or self.debug_mode or bool(self.detections_path or self.report)

    @property
    def reads_boxes(self) -> bool:
        """Whether the outputs are stated to be boxes, classes and scores, so that nothing is to be decoded."""
        return self.decoder in (SSD, _NO_DECODER)

    def __post_init__(self) -> None:
        require_margin(self.margin)
        if self.num_images < 0:
            raise UsageError(f"--num_images={self.num_images}: use 0 for all pictures, or how many to take")
        if self.letterbox_fill is not None and not 0 <= self.letterbox_fill <= 255:
            raise UsageError(f"--letterbox_fill={self.letterbox_fill}: use a pixel value, 0 to 255")
        if not 0 <= self.nms_iou <= 1:
            raise UsageError(
                f"--nms_iou={self.nms_iou:g}: use an overlap above 0 and up to 1, or 0 for that of the decoder"
            )
        if self.normalization != "auto":
            parse_normalization(self.normalization)
        if self.bootstrap_resamples and not _FEWEST_RESAMPLES <= self.bootstrap_resamples <= _MOST_RESAMPLES:
            raise UsageError(
                f"--bootstrap_resamples={self.bootstrap_resamples}: use {_FEWEST_RESAMPLES} to {_MOST_RESAMPLES}, or 0 "
                "to judge no change"
            )
        if self.coco_evaluator is not None and not (self.ground_truth_annotations or self.ground_truth_proto):
            raise UsageError("--coco_evaluator has no effect without a ground truth; give one, or leave it out")
        if self.native:
            self._require_native()

    def _require_native(self) -> None:
        require_native_channels(self.input_layout, self.channel_order)
        if self.decoder != "auto" and not self.reads_boxes:
            raise UsageError(
                f"--decoder={self.decoder}: the native tool decodes no raw heads; leave out one of it and --compat"
            )
        if self.resize not in ("auto", "stretch"):
            raise UsageError(
                f"--resize={self.resize}: the native tool stretches pictures; leave out one of it and --compat"
            )


class FoundObjects(Struct, frozen=True):
    """What one output holds, in the model's order.

    ``classes`` ``(N,)`` are the model's own numbers; ``boxes`` ``(N, 4)`` are top, left, bottom, right in shares of the
    picture. ``stated`` is the count that the model gives, ``rows`` how many it has room for. Left out are ``nonfinite``
    detections with a NaN or infinite number, and those below the score threshold; ``fractional`` classes are cut to
    whole numbers, as the native tool does. ``width`` and ``height`` are the picture's.
    """

    classes: npt.NDArray[np.int64]
    boxes: Floats
    scores: Floats
    stated: float
    rows: int
    nonfinite: int
    fractional: int
    width: int
    height: int

    def as_detections(self) -> Detections:
        """The same in float64, for comparing boxes."""
        return Detections(
            self.boxes.astype(np.float64), self.classes.astype(np.float64), self.scores.astype(np.float64)
        )


Read = Callable[[Sequence[Floats], PictureFrame], FoundObjects]
"""What is found in a picture, from the real values of a model's outputs."""


class ReadSide(Struct, frozen=True):
    """How one model is fed and read: the transform of pictures, and what makes objects of its real outputs."""

    model: ModelFile
    to_tensor: ImageToTensor
    read: Read


class CocoTask(PictureTask[FoundObjects]):
    """Reads the boxes of each picture. ``sides`` are the model under test and, if it is another, the reference's."""

    observation_type: Final = FoundObjects

    def __init__(self, pictures: EvaluatedPictures, sides: Sequence[ReadSide]) -> None:
        super().__init__(pictures.paths, [side.to_tensor for side in sides])
        self._sides = tuple(sides)

    def observe(
        self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None = None
    ) -> FoundObjects:
        """Read the boxes, as shares of the picture."""
        place = len(self._sides) - 1 if reference is outputs else 0
        side = self._sides[place]
        return side.read(real_outputs(side.model, outputs), prepared.context[place])


def real_outputs(model: ModelFile, outputs: Sequence[Array]) -> list[Floats]:
    """Outputs as float32; quantised ones as the real values that they stand for."""
    return [_real(tensor, output) for tensor, output in zip(model.outputs, outputs, strict=True)]


def _real(tensor: TensorInfo, output: Array) -> Floats:
    """An output as real values.

    For types with 256 values each value is computed once and looked up: a raw head has millions.
    """
    if not tensor.is_quantized:
        return np.asarray(output, np.float32)
    scale = Scale(tensor.scale or 1.0, tensor.zero_point or 0)
    if output.dtype.itemsize > 1:
        return scale.real(output).astype(np.float32)
    table = scale.real(np.arange(256).astype(np.uint8).view(output.dtype)).astype(np.float32)
    return table[np.ascontiguousarray(output).view(np.uint8)]


def read_objects(
    outputs: Sequence[Floats], places: OutputMap, picture: PictureFrame, score_threshold: float
) -> FoundObjects:
    """The detections among the outputs: as many rows as the count says.

    Without a count all rows but those with a score of 0, with which models fill up. The native tool reads beyond the
    end where the count is larger than the outputs; here it is cut to their size.
    """
    scores, classes = outputs[places.scores].ravel(), outputs[places.classes].ravel()
    boxes = outputs[places.boxes].reshape(-1, 4)
    rows = min(len(scores), len(classes), len(boxes))
    stated = float(rows) if places.count is None else float(outputs[places.count].ravel()[0])
    count = int(min(max(stated, 0), rows)) if np.isfinite(stated) else rows
    finite = np.isfinite(scores[:count]) & np.isfinite(classes[:count]) & np.isfinite(boxes[:count]).all(axis=1)
    wanted = (scores[:count] >= score_threshold) | (score_threshold == 0)
    if places.count is None:
        wanted &= scores[:count] != 0
    kept = np.flatnonzero(finite & wanted)
    whole = np.trunc(classes[kept])
    placed = boxes[kept] if picture.placement is None else picture.placement.to_picture(boxes[kept])
    return FoundObjects(
        classes=np.clip(whole.astype(np.float64), -(2**31), 2**31 - 1).astype(np.int64),
        boxes=placed,
        scores=scores[kept],
        stated=stated,
        rows=rows,
        nonfinite=int(count - finite.sum()),
        fractional=int((whole != classes[kept]).sum()),
        width=picture.width,
        height=picture.height,
    )


def check_detector(model: ModelFile, native: bool = False, layout: StatedLayout = "auto") -> None:
    """Refuse a model that is not a detector; raises :class:`ModelError` naming what was found."""
    outputs = ", ".join(str(tensor) for tensor in model.outputs[:6])
    if len(model.inputs) != 1 or len(model.outputs) < 3 or (native and len(model.outputs) != 4):
        wanted = "one picture in, and out four tensors: boxes, classes, scores and their count"
        if not native:
            wanted += " (the count may be missing)"
        raise ModelError(
            f"{model.path} is not a detector: it has {len(model.inputs)} input{'s' * (len(model.inputs) != 1)} and "
            f"{len(model.outputs)} output{'s' * (len(model.outputs) != 1)} ({outputs}); expected is {wanted}. "
            f"{_ABOUT_HEADS}{', without --compat=native' if native else ''}"
        )
    odd = [str(tensor) for tensor in model.outputs if tensor.dtype not in OUTPUT_TYPES]
    if odd:
        raise ModelError(f"{model.path}: the output {odd[0]} has a type that no detector gives; numbers are expected")
    check_picture_input(model, NATIVE_TYPES if native else ACCEPTED_TYPES, "nhwc" if native else layout)


def detector_input(model: ModelFile, options: CocoOptions) -> ImageToTensor:
    """The transform of pictures: no crop, stretched to the input's size as the native tool does, or letterboxed."""
    letterbox = None
    if options.resize in ("letterbox", "letterbox_top_left"):
        fill = LETTERBOX_FILL if options.letterbox_fill is None else options.letterbox_fill
        letterbox = Letterbox("center" if options.resize == "letterbox" else "top_left", fill)
    return input_transform(
        model,
        model.inputs[0],
        options.normalization,
        options.native,
        crop_fraction=None,
        letterbox=letterbox,
        layout=options.input_layout,
        channel_order=options.channel_order,
    )
