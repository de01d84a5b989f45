"""Pictures as inputs of a task, which of them belong together, and small ones for the page."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from evaltools.datasets.image_folder import list_images, printable_name
from evaltools.datasets.order import Order, chosen
from evaltools.errors import DataError, TaskError, UsageError
from evaltools.preprocess import ImageToTensor, Normalization, Quantization, parse_normalization
from evaltools.result.section import Panel
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example
from evaltools.tasks.framework.image_input import ACCEPTED_TYPES, SHAPES, load_picture
from evaltools.tasks.framework.tensors import TaskTensor

_SIDE: Final = 128


def image_input(
    image: str | os.PathLike[str],
    tensors: Sequence[TaskTensor],
    normalization: str = "auto",
    crop: float | None = None,
) -> tuple[Array, ...]:
    """The input of a model that takes one RGB picture, from a picture file: the whole picture, resized.

    One array of the input's shape and type, (1, height, width, 3) or (1, 3, height, width).
    With ``crop``, above 0 and at most 1, only the square in its middle whose side is that share of the shorter side;
    0.875 is what ``evaltools imagenet`` and the native tool for classifiers feed: ``partial(et.image_input,
    crop=0.875)``. Values are normalised as ``normalization`` says, written as for ``--normalization``. ``auto``: as the
    model's metadata say, else as the native tools do: -1..1 for real numbers, the pixels themselves for quantised ones.
    Raises :class:`~evaltools.errors.ImageError` for a file that is not a picture.
    """
    if not isinstance(image, (str, os.PathLike)):
        raise TaskError(
            f"image_input takes the name of a picture file; the example's input is of type {type(image).__name__}"
        )
    if len(tensors) != 1:
        raise TaskError(f"image_input makes one input, and the model has {len(tensors)}; write a prepare of your own")
    if crop is not None and not 0 < crop <= 1:
        raise TaskError(f"image_input got crop={crop:g}; use a share above 0 and at most 1, such as 0.875, or None")
    return (load_picture(Path(image), picture_transform(tensors[0], normalization, crop)).values,)


@functools.lru_cache(maxsize=16)
def picture_transform(
    tensor: TaskTensor, stated: str, crop: float | None = None, native: bool = False
) -> ImageToTensor:
    """What makes an RGB picture the input; raises :class:`TaskError` for an input that takes none.

    ``native``: as the native tools do, whatever the model's metadata say, also of damaged pictures.
    """
    shape, dtype = tensor.shape, tensor.dtype
    if not tensor.layout or dtype.name not in ACCEPTED_TYPES:
        raise TaskError(
            f"a picture becomes one RGB input, {SHAPES['auto']} of {', '.join(ACCEPTED_TYPES)}; the model's input "
            f"{tensor.name!r} is {dtype}{list(shape)}. Take a model for pictures, or a task with another prepare"
        )
    if tensor.free_size:
        raise TaskError(
            f"the model leaves height and width of its input {tensor.name!r} open, which is {dtype}{list(shape)} until "
            "they are stated; convert it with the size of its pictures"
        )
    quantization = Quantization(*tensor.quantisation) if tensor.quantisation else None
    if dtype == np.int16 and quantization is None:
        raise TaskError(f"the input {tensor.name!r} is int16 without quantisation; write a prepare of your own")
    normalization = None if stated == "auto" else parse_normalization(stated)
    if stated == "auto" and tensor.normalization is not None and dtype.kind == "f" and not native:
        normalization = Normalization(*tensor.normalization, "model metadata")
    return ImageToTensor(
        *tensor.picture_size,
        np.dtype(dtype),
        normalization,
        quantization,
        crop_fraction=crop,
        blue_first=tensor.channel_order == "bgr",
        channels_first=tensor.layout == "nchw",
        damaged=native,
    )


def pairs(
    images: Path, targets: Path | None, num_images: int = 0, order: Order = "native", seed: int = 1
) -> list[Example]:
    """An example for each picture in a folder, with the file of the same stem in another folder as its target.

    Only the first ``num_images``, 0: all, in the order of their names, or in the random order of a ``seed``.
    ``targets`` None: they have no target. Raises :class:`~evaltools.errors.DataError` for a picture without such a
    file, or with several.
    """
    if num_images < 0:
        raise UsageError(f"--num_images={num_images}: give a number of pictures, or 0 for all")
    files = chosen(list_images(images, "--images").paths, num_images, order, seed)
    if targets is None:
        return [Example(printable_name(file.name), file) for file in files]
    found: dict[str, list[Path]] = {}
    for file in sorted(targets.iterdir()) if targets.is_dir() else []:
        if not file.name.startswith("."):
            found.setdefault(file.stem, []).append(file)
    examples = []
    for file in files:
        fitting = found.get(file.stem, [])
        if len(fitting) != 1:
            there_are = f"has {', '.join(each.name for each in fitting)}" if fitting else "has no file of that stem"
            raise DataError(f"{targets} {there_are} for {file.name}; each input needs one")
        examples.append(Example(printable_name(file.name), file, fitting[0]))
    return examples


def panel(name: str, image: Image.Image, is_over: bool = False) -> Panel:
    """An image as a panel, as large as it is."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return Panel(name, buffer.getvalue(), is_over)


def small_size(width: int, height: int, side: int = _SIDE) -> tuple[int, int]:
    """Width and height in the same proportion, neither above ``side``; a smaller picture keeps its own.

    >>> small_size(512, 256), small_size(20, 10)
    ((128, 64), (20, 10))
    """
    scale = min(1.0, side / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))
