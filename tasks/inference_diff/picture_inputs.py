"""Pictures as inputs of an inference diff: which input takes some, and how they become its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.datasets import sample
from evaltools.datasets.image_folder import list_images
from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import ImageToTensor
from evaltools.runtime.session import Array
from evaltools.tasks.coco.detector import ChannelOrder, DetectorOptions
from evaltools.tasks.coco.heads import yolo_input
from evaltools.tasks.framework.image_input import (
    CLASSIFIER_CROP,
    SHAPES,
    Layout,
    StatedLayout,
    channel_axis,
    input_transform,
    load_picture,
    picture_channels,
    picture_layout,
    picture_size,
)
from evaltools.tasks.inference_diff.input_options import NOISE, InputOptions
from evaltools.tasks.inference_diff.value_ranges import PICTURE_CHANNELS, DrawnRange, is_normalised

_PICTURE_TYPES: Final = ("float32", "float16", "uint8", "int8", "int16")
_FEWEST_PIXELS: Final = 16
_GREY: Final = (0.299, 0.587, 0.114)


class PictureInputs(Struct, frozen=True):
    """The pictures of a folder for one input, in every run or, ``with_noise``, in every other one.

    ``is_sample``: they are those that come with the package. ``of_yolo`` makes them the input of a YOLO as ``coco``
    does, where no range of values is stated.
    """

    model: ModelFile
    tensor: TensorInfo
    position: int
    folder: Path
    paths: Sequence[Path]
    normalization: str
    is_sample: bool
    with_noise: bool
    layout: Layout
    channel_order: str
    of_yolo: ImageToTensor | None = None

    def path(self, index: int) -> Path:
        """The picture of a run."""
        return self.paths[(index // 2 if self.with_noise else index) % len(self.paths)]

    def provide(self, index: int, ranges: Mapping[int, DrawnRange]) -> Array:
        """The picture of a run as an input."""
        values = load_picture(self.path(index), self._transform(ranges[self.position])).values
        return _grey(values, channel_axis(self.layout)) if self.is_grey else values

    @property
    def is_grey(self) -> bool:
        """Whether the input has one channel."""
        return picture_channels(self.tensor.shape, self.layout) == 1

    def words(self, drawn: DrawnRange) -> str:
        """In words, which pictures they are, and how their pixels become values of the input."""
        to_tensor = self._transform(drawn)
        place = "the embedded sample" if self.is_sample else str(self.folder)
        cropped = "" if to_tensor.crop_fraction else ", not cropped (detection)"
        cropped = ", letterboxed (YOLO)" if to_tensor.letterbox else cropped
        low, high = to_tensor.value_range()
        normalization = to_tensor.normalization or "native"
        order = ", BGR" if to_tensor.blue_first else ""
        return f"pictures in {place}, values {low:.4g}..{high:.4g} (normalization {normalization}){order}{cropped}"

    def _transform(self, drawn: DrawnRange) -> ImageToTensor:
        if self.of_yolo is not None:
            return self.of_yolo
        shape = list(self.tensor.shape)
        shape[channel_axis(self.layout)] = 3
        return input_transform(
            self.model,
            replace(self.tensor, shape=tuple(shape)),
            self._normalization(drawn),
            crop_fraction=None if self.model.detection else CLASSIFIER_CROP,
            layout=self.layout,
            channel_order=self.channel_order,
        )

    def _normalization(self, drawn: DrawnRange) -> str:
        """The normalisation that the user or the metadata states, else one that gives pixels the range of the input."""
        is_stated = self.normalization != "auto" or is_normalised(self.model, self.tensor)
        if is_stated or drawn.origin in ("default", "native") or not self.tensor.dtype.startswith("float"):
            return self.normalization
        std = 255 / (drawn.high - drawn.low)
        return f"mean={0.0 - drawn.low * std!r};std={std!r}"


def _grey(values: Array, axis: int) -> Array:
    """One channel of the three along an axis, with the weights of ITU-R BT.601."""
    grey = np.expand_dims(np.moveaxis(values, axis, -1).astype(np.float64) @ np.array(_GREY), axis)
    whole: Array = (grey if values.dtype.kind == "f" else np.rint(grey)).astype(values.dtype)
    return whole


def pictures_of(
    model: ModelFile, tensors: Sequence[TensorInfo], options: InputOptions, given: Mapping[int, DrawnRange]
) -> PictureInputs | None:
    """The pictures that were asked for, or the sample if it suits the model; None if no input gets pictures.

    Raises :class:`UsageError` for pictures that no input can take.
    """
    if options.kind == NOISE and options.images is not None:
        raise UsageError("--inputs=noise and --input_images contradict each other; keep one")
    position = _picture_input(model, tensors, options, given)
    if position is None:
        for flag, value in (
            ("--normalization", options.normalization),
            ("--input_layout", options.input_layout),
            ("--channel_order", options.channel_order),
        ):
            if value not in ("auto", "rgb"):
                raise UsageError(
                    f"{flag} has no effect without --input_images or --inputs=photos; add one of these, or leave it out"
                )
        return None
    layout = picture_layout(tensors[position].shape, options.input_layout, PICTURE_CHANNELS)
    assert layout is not None
    if options.channel_order == "bgr" and picture_channels(tensors[position].shape, layout) == 1:
        raise UsageError(f"--channel_order=bgr: the input {tensors[position]} is grey; leave it out")
    own = sample.detection_images_dir() if model.detection else sample.images_dir()
    folder = options.images or own
    may_be_yolo = picture_channels(tensors[position].shape, layout) == 3 and not options.native
    order: ChannelOrder = "bgr" if options.channel_order == "bgr" else "auto"
    as_coco = DetectorOptions(
        normalization=options.normalization, input_layout=options.input_layout, channel_order=order
    )
    return PictureInputs(
        model,
        tensors[position],
        position,
        folder,
        list_images(folder, "--input_images").paths,
        options.normalization,
        is_sample=options.images is None,
        with_noise=options.kind == "both" or (options.kind == "auto" and options.images is None),
        layout=layout,
        channel_order=options.channel_order,
        of_yolo=yolo_input(model, as_coco) if may_be_yolo and position not in given else None,
    )


def _picture_input(
    model: ModelFile, tensors: Sequence[TensorInfo], options: InputOptions, given: Mapping[int, DrawnRange]
) -> int | None:
    """Which input gets pictures, None for none; raises :class:`ModelError` where they were asked for and fit none."""
    if options.kind == NOISE:
        return None
    layouts = {
        position: layout
        for position, tensor in enumerate(tensors)
        if tensor.dtype in _PICTURE_TYPES
        and (layout := picture_layout(tensor.shape, options.input_layout, PICTURE_CHANNELS)) is not None
    }
    in_colour = [place for place, layout in layouts.items() if picture_channels(tensors[place].shape, layout) == 3]
    fitting = in_colour or list(layouts)
    if options.input_layout != "auto" and not fitting:
        raise ModelError(
            f"{model.path}: --input_layout={options.input_layout} needs an input {_shapes(options.input_layout)}, the "
            f"model has {', '.join(map(str, tensors))}"
        )
    if options.kind == "auto" and options.images is None:
        if len(fitting) != 1 or options.native or options.files or not sample.images_dir().is_dir():
            return None
        takes_them = _looks_like_pictures(tensors[fitting[0]], layouts[fitting[0]], fitting[0] in given)
        return fitting[0] if takes_them else None
    if len(fitting) != 1:
        flag = f"--inputs={options.kind}" if options.images is None else "--input_images"
        listed = ", ".join(map(str, tensors))
        raise ModelError(
            f"{model.path}: {flag} needs one input {_shapes(options.input_layout)}, the model has {listed}"
        )
    return fitting[0]


def _shapes(stated: StatedLayout) -> str:
    """The inputs that pictures fit, in colour or grey."""
    return SHAPES[stated].replace("3", "3 or 1")


def _looks_like_pictures(tensor: TensorInfo, layout: Layout, has_range: bool) -> bool:
    """Whether an input of the shape of a picture is for pictures.

    A grey one that is not a square may be a spectrogram, a single plane [1,1,size,size] the mask of an attention.
    """
    height, width = picture_size(tensor.shape, layout)
    may_be_other = picture_channels(tensor.shape, layout) == 1 and (height != width or layout == "nchw")
    if min(height, width) < _FEWEST_PIXELS or may_be_other or tensor.rows is not None:
        return False
    if tensor.dtype.startswith("float"):
        return True
    return not has_range and (tensor.dtype != "int16" or tensor.is_quantized)
