"""Reads the raw head of a model: which decoders fit it, and what a decoder finds in a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile
from evaltools.preprocess import ImageToTensor, parse_normalization
from evaltools.tasks.coco.decoders import Coordinates, Decoder, Head, mask_maps, suppressed
from evaltools.tasks.coco.detector import OUTPUT_TYPES, SSD, DetectorOptions, check_detector, detector_input
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.yolo_heads import DECODERS
from evaltools.tasks.framework.image_input import (
    ACCEPTED_TYPES,
    PictureFrame,
    check_picture_input,
    picture_layout,
    picture_size,
)
from evaltools.tasks.framework.tensors import Outputs


class DecoderCandidate(Struct, frozen=True):
    """A decoder that fits the output, with the picture transform and the options that it leads to.

    The decoder's values stand for options that were not stated; ``nms_iou`` 0: the model suppresses boxes itself.
    """

    decoder: Decoder
    head: Head
    options: DetectorOptions
    to_tensor: ImageToTensor

    def found(self, outputs: Outputs, coordinates: Coordinates) -> FoundObjects:
        """The detections in a picture, best first, with boxes as shares of the picture."""
        picture: PictureFrame = outputs.context
        rows = self.head.rows(outputs.real(self.head.place))
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            rows = np.where(finite[:, None], rows, np.float32(0))
        with np.errstate(over="ignore", invalid="ignore"):
            decoded = self.decoder.decode(rows, self.head, coordinates, self.options.score_threshold or 0.0)
        whole = np.isfinite(decoded.scores) & np.isfinite(decoded.corners).all(axis=1)
        boxes = decoded.at(whole)
        if self.options.nms_iou:
            boxes = suppressed(boxes, self.options.nms_iou)
        else:
            boxes = boxes.at(np.argsort(-boxes.scores, kind="stable"))
        placed = boxes.corners if picture.placement is None else picture.placement.to_picture(boxes.corners)
        if self.decoder.cuts_at_edge:
            placed = np.clip(placed, 0, 1)
        count = len(boxes.scores)
        return FoundObjects(
            classes=boxes.classes,
            boxes=placed.astype(np.float32),
            scores=boxes.scores,
            stated=float(count),
            rows=count,
            nonfinite=int((~finite).sum() + (~whole).sum()),
            fractional=0,
            width=picture.width,
            height=picture.height,
        )


def candidates_of(model: ModelFile, options: DetectorOptions) -> dict[str, DecoderCandidate]:
    """The decoders that fit a model's output by name, the stated one first.

    There are none for a model that outputs boxes, classes and scores. Raises :class:`ModelError` for one that is no
    detector, and where a stated decoder does not fit, and :class:`UsageError` for flags that have no effect on such an
    output.
    """
    fitting = _fitting(model, options) if not options.reads_boxes and not options.native else {}
    if options.decoder != "auto" and not options.reads_boxes:
        if options.decoder not in fitting:
            raise _does_not_fit(model, options, list(fitting))
        fitting = {options.decoder: fitting[options.decoder], **fitting}
    if not fitting:
        _refuse_without_head(options)
        check_detector(model, options.native, options.input_layout)
        return {}
    if options.output_map != "auto":
        raise UsageError(
            f"--output_map={options.output_map}: the one output of {model.path} is a raw head "
            f"({', '.join(fitting)}), which is decoded; leave the flag out. For a model with boxes, classes and scores "
            f"in outputs of their own there is --decoder={SSD}"
        )
    check_picture_input(model, ACCEPTED_TYPES, options.input_layout)
    return {name: _candidate(model, options, DECODERS[name], head) for name, head in fitting.items()}


def yolo_input(model: ModelFile, options: DetectorOptions) -> ImageToTensor | None:
    """What makes pictures the input of a model with the head of a YOLO, as ``coco`` does it; None of any other."""
    fitting = _fitting(model, options)
    if not fitting:
        return None
    name, head = next(iter(fitting.items()))
    return _candidate(model, options, DECODERS[name], head).to_tensor


def _fitting(model: ModelFile, options: DetectorOptions) -> dict[str, Head]:
    """The decoders by name that the shape of a model's only output fits, or of that beside the maps of masks."""
    size = _input_size(model, options) if len(model.inputs) == 1 else None
    if size is None or any(output.dtype not in OUTPUT_TYPES for output in model.outputs):
        return {}
    maps = mask_maps([output.shape for output in model.outputs], *size)
    heads = [place for place in range(len(model.outputs)) if place not in maps]
    if len(heads) != 1 or len(maps) > 1:
        return {}
    masks = next(iter(maps.values()), 0)
    shape = model.outputs[heads[0]].shape
    found = {each.name: each.fits(shape, *size, masks) for each in DECODERS.values()}
    return {name: replace(head, place=heads[0]) for name, head in found.items() if head is not None}


def _input_size(model: ModelFile, options: DetectorOptions) -> tuple[int, int] | None:
    shape = model.inputs[0].shape
    layout = picture_layout(shape, options.input_layout)
    return None if layout is None else picture_size(shape, layout)


def _does_not_fit(model: ModelFile, options: DetectorOptions, fitting: Sequence[str]) -> ModelError:
    name = options.decoder
    outputs = ", ".join(str(tensor) for tensor in model.outputs[:6])
    size = _input_size(model, options)
    at = f"; for its input of {size[1]}x{size[0]}, N is the number of cells of the strides 8, 16, 32" if size else ""
    advice = f"state --decoder={fitting[0]}, which fits, or leave the flag out" if fitting else "leave the flag out"
    if len(model.outputs) >= 3:
        advice = f"its outputs are read with --decoder={SSD}"
    return ModelError(
        f"{model.path} has no head of {name}: its outputs are {outputs}; expected is one, "
        f"{DECODERS[name].output}{at}. If this is another model, {advice}"
    )


def _refuse_without_head(options: DetectorOptions) -> None:
    if options.nms_iou:
        raise UsageError(
            f"--nms_iou={options.nms_iou:g} has no effect on a model that suppresses boxes itself; it is for raw heads "
            "(--decoder=yolov5 and the like). Leave it out"
        )
    if options.letterbox_fill is not None and options.resize not in ("letterbox", "letterbox_top_left"):
        raise UsageError("--letterbox_fill has no effect without --resize=letterbox; add that, or leave it out")


def _candidate(model: ModelFile, options: DetectorOptions, decoder: Decoder, head: Head) -> DecoderCandidate:
    name, threshold = decoder.name, options.score_threshold
    if options.nms_iou and decoder.nms_iou is None and options.decoder in ("auto", name):
        raise UsageError(
            f"--nms_iou={options.nms_iou:g} has no effect on a {name} model, which suppresses boxes itself"
        )
    chosen = replace(
        options,
        resize=decoder.resize if options.resize == "auto" else options.resize,
        channel_order=decoder.channel_order if options.channel_order == "auto" else options.channel_order,
        score_threshold=decoder.score_threshold if threshold is None else threshold,
        nms_iou=options.nms_iou or decoder.nms_iou or 0.0,
    )
    if options.letterbox_fill is not None and chosen.resize == "stretch":
        raise UsageError("--letterbox_fill has no effect with --resize=stretch; leave one of the two out")
    to_tensor = detector_input(model, chosen)
    tensor = model.inputs[0]
    is_known = tensor.dtype.startswith("float") or to_tensor.quantization is not None
    if options.normalization == "auto" and model.normalization is None and is_known:
        normalization = replace(parse_normalization(decoder.normalization), source=f"as {name} is trained")
        to_tensor = replace(to_tensor, normalization=normalization)
    return DecoderCandidate(decoder, head, chosen, to_tensor)
