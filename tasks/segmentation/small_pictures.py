"""Masks as small pictures: the true one, the reference's, that of another configuration, and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from evaltools.result.small_pictures import Drawing
from evaltools.tasks.own.definition import Example
from evaltools.tasks.own.pictures import panel, small_size
from evaltools.tasks.own.tensors import Outputs
from evaltools.tasks.segmentation.pixels import UNLABELLED, Classes, classes_of, read_mask

_COLOURS: Final = 256
_WHITE: Final = (255, 255, 255)
_BLACK: Final = (0, 0, 0)
_RED: Final = (255, 70, 70)


def draw(mask_values: str, class_offset: int, outputs: Outputs, reference: Outputs, example: Example) -> Drawing | None:
    """The masks of both, the true one if there is one, and the pixels that differ; None where none do.

    All have the proportions of the picture.
    """
    found, expected = classes_of(outputs), classes_of(reference)
    changed = found != expected
    if not changed.any():
        return None
    truth = None if example.target is None else read_mask(example.target, mask_values)
    with Image.open(example.input) as opened:
        size = small_size(*opened.size)
    share = float(changed.mean())
    return Drawing(
        share,
        f"{100 * share:.2g} % of the pixels have another class",
        str(Path(example.input)),
        [
            *([] if truth is None else [panel("truth", _mask(truth, size))]),
            panel("reference", _mask(expected + class_offset, size)),
            panel("test", _mask(found + class_offset, size)),
            panel("changed", _marked(changed, size)),
        ],
    )


def voc_palette() -> npt.NDArray[np.uint8]:
    """The colours of classes (256, 3) as the masks of PASCAL VOC have them: a class's bits, dealt to the channels.

    >>> voc_palette()[[0, 1, 15]].tolist()
    [[0, 0, 0], [128, 0, 0], [192, 128, 128]]
    """
    classes = np.arange(_COLOURS)
    palette = np.zeros((_COLOURS, 3), np.uint8)
    for channel in range(3):
        for bit in range(3):
            is_set = classes >> (3 * bit + channel) & 1
            palette[:, channel] |= (is_set << (7 - bit)).astype(np.uint8)
    return palette


def _mask(classes: Classes, size: tuple[int, int]) -> Image.Image:
    """A colour for each class; white where there is none."""
    colours = voc_palette()
    colours[-1] = _WHITE
    numbers = np.where(classes == UNLABELLED, _COLOURS - 1, classes % (_COLOURS - 1)).astype(np.uint8)
    image = Image.fromarray(numbers).resize(size, Image.Resampling.NEAREST)
    image.putpalette(colours.tobytes())
    return image


def _marked(pixels: npt.NDArray[np.bool_], size: tuple[int, int]) -> Image.Image:
    """Red on black where any of the pixels is marked that become one."""
    whole = Image.fromarray(pixels.astype(np.float32))
    small = np.asarray(whole.resize(size, Image.Resampling.BOX)) > 0
    image = Image.fromarray(small.astype(np.uint8))
    image.putpalette(bytes([*_BLACK, *_RED]))
    return image
