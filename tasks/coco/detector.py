"""What a detector is: how it is fed and read, by the options, and which models are none."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile
from evaltools.preprocess import ImageToTensor, Letterbox, parse_normalization
from evaltools.tasks.framework.image_input import (
    ACCEPTED_TYPES,
    NATIVE_TYPES,
    StatedLayout,
    check_picture_input,
    input_transform,
)

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
_NO_DECODER: Final = "none"
"""Another word for outputs that need none."""


class DetectorOptions(Struct, frozen=True):
    """How a detector is fed and read, named as on the command line.

    ``native`` is ``--compat=native``. ``letterbox_fill`` is a pixel value, 0..255, None if not stated.
    ``score_threshold`` 0 keeps every detection; None, and ``nms_iou`` 0, stand for the values that the decoder's
    authors use for validation.
    """

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
    native: bool = False

    @property
    def reads_boxes(self) -> bool:
        """Whether the outputs are stated to be boxes, classes and scores, so that nothing is to be decoded."""
        return self.decoder in (SSD, _NO_DECODER)

    def __post_init__(self) -> None:
        if self.letterbox_fill is not None and not 0 <= self.letterbox_fill <= 255:
            raise UsageError(f"--letterbox_fill={self.letterbox_fill}: use a pixel value, 0 to 255")
        if not 0 <= self.nms_iou <= 1:
            raise UsageError(
                f"--nms_iou={self.nms_iou:g}: use an overlap above 0 and up to 1, or 0 for that of the decoder"
            )
        if self.normalization != "auto":
            parse_normalization(self.normalization)


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


def detector_input(model: ModelFile, options: DetectorOptions) -> ImageToTensor:
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
