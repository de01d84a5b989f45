"""The class of each pixel, how well classes cover the pixels of a mask, and masks as small pictures."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from evaltools.errors import ImageError, TaskError
from evaltools.metrics.metric import SHARE
from evaltools.metrics.overlaps import overlap_by_class, overlaps
from evaltools.preprocess.decode import picture_header, stored_values
from evaltools.result.section import Drawing
from evaltools.tasks.framework.definition import Example, Mean, in_lists, mean, pooled, share_of
from evaltools.tasks.framework.pictures import panel, small_size
from evaltools.tasks.framework.tensors import Outputs

Classes = npt.NDArray[np.int64]
UNLABELLED: Final = -1
_VALUES: Final = {"voc": (255, 0), "ade": (0, 1)}
"""The value that does not count, and by how much the others are above their class."""
_ONE_CHANNEL: Final = ("1", "L", "P", "I", "I;16")
_COLOURS: Final = 256
_WHITE: Final = (255, 255, 255)
_BLACK: Final = (0, 0, 0)
_RED: Final = (255, 70, 70)


def metrics(has_truth: bool) -> list[Mean]:
    """Those of segmentation, in the order of their columns."""
    agreement = [
        mean("same_pixels", bounds=SHARE, meaning="segmentation: share of pixels with the reference's class, 0..1"),
        pooled(
            "miou_to_reference",
            mean_iou,
            bounds=SHARE,
            meaning="segmentation: mean IoU with the reference's classes as the truth, 0..1",
        ),
    ]
    truth: list[Mean] = [
        pooled(
            "miou",
            mean_iou,
            bounds=SHARE,
            meaning="segmentation: mean over the classes of intersection by union over all pixels, 0..1",
        ),
        pooled(
            "pixel_accuracy",
            share_of,
            bounds=SHARE,
            meaning="segmentation: share of labelled pixels with their class, 0..1",
        ),
    ]
    return [*truth, *agreement] if has_truth else agreement


def score(mask_values: str, class_offset: int, outputs: Outputs, mask: Path) -> dict[str, npt.NDArray[np.int64]]:
    """The overlaps with a mask, and how many of its labelled pixels have their class."""
    truth = read_mask(mask, mask_values)
    found = classes_of(outputs, (truth.shape[0], truth.shape[1])) + class_offset
    labelled = truth != UNLABELLED
    right = np.count_nonzero(found[labelled] == truth[labelled])
    return {"miou": labelled_overlaps(found, truth), "pixel_accuracy": np.array([right, np.count_nonzero(labelled)])}


def agree(outputs: Outputs, reference: Outputs, _mask: object) -> dict[str, Any]:
    """The same with the reference's classes for a mask, pixel by pixel of its output."""
    found, expected = _both(outputs, reference)
    return {"same_pixels": float((found == expected).mean()), "miou_to_reference": overlaps(found, expected)}


def _both(outputs: Outputs, reference: Outputs) -> tuple[Classes, Classes]:
    """The classes on both sides, in the size of the reference's output; that of another model may have another size."""
    expected = classes_of(reference)
    return classes_of(outputs, (expected.shape[0], expected.shape[1])), expected


def labelled_overlaps(found: Classes, truth: Classes) -> npt.NDArray[np.int64]:
    """The :func:`overlaps` of the pixels that have a class in the truth."""
    rows = overlaps(found[truth != UNLABELLED], truth[truth != UNLABELLED])
    return rows[rows[:, 0] > UNLABELLED]


def mean_iou(rows: Sequence[npt.NDArray[Any]]) -> float:
    """The mean IoU over all classes of :func:`overlaps`, over all pictures; NaN without one labelled pixel.

    >>> mean_iou([np.array([[0, 1, 2], [1, 0, 1]]), np.array([[0, 2, 2]])])
    0.375
    """
    classes, found = overlap_by_class(rows)
    return float(np.mean(found[:, 0])) if classes.size else float("nan")


@functools.lru_cache(maxsize=8)
def read_mask(path: Path, values: str) -> Classes:
    """The class of each pixel, -1 where it does not count; raises :class:`TaskError`."""
    try:
        mode, pixels = stored_values(path)
    except ImageError as error:
        raise TaskError(f"{path}: the mask {error}") from error
    if mode not in _ONE_CHANNEL:
        raise TaskError(
            f"{path}: the mask is {mode}; a pixel's value is its class, so save it as grey or with a palette"
        )
    ignored, first = _VALUES[values]
    return np.where(pixels == ignored, UNLABELLED, pixels.astype(np.int64) - first)


def classes_of(outputs: Outputs, size: tuple[int, int] | None = None) -> Classes:
    """The class of each pixel of the first output that has one, at that height and width; raises :class:`TaskError`."""
    outputs = _classes_last(outputs)
    fitting = [number for number, values in enumerate(outputs) if _is_map(values, outputs.tensors[number].quantisation)]
    if not fitting:
        shapes = ", ".join(f"{values.dtype}{list(values.shape)}" for values in outputs)
        raise TaskError(
            f"no output of the model has the classes of pixels, but {shapes}; expected are scores "
            "[1,height,width,classes], a mask [1,height,width,1], or whole numbers [1,height,width]"
        )
    values = outputs[fitting[0]]
    if not _is_real(values, outputs.tensors[fitting[0]].quantisation):
        return _resized(values.reshape(values.shape[1:3]).astype(np.int32), size, Image.Resampling.NEAREST).astype(
            np.int64
        )
    scores = outputs.real(fitting[0])[0]
    if not np.isfinite(scores).all():
        raise TaskError(
            f"{np.count_nonzero(~np.isfinite(scores))} of {scores.size} scores of pixels are no finite numbers"
        )
    planes = [_resized(scores[..., plane], size, Image.Resampling.BILINEAR) for plane in range(scores.shape[-1])]
    return (planes[0] > 0.5).astype(np.int64) if len(planes) == 1 else np.argmax(planes, axis=0)


def _classes_last(outputs: Outputs) -> Outputs:
    """The same where classes are planes, as a model whose input is planes may give them: of the input's proportions."""
    if not outputs.inputs or outputs.inputs[0].layout != "nchw":
        return outputs
    height, width = outputs.inputs[0].picture_size
    turned = [
        np.moveaxis(values, 1, -1)
        if values.ndim == 4 and values.shape[2] * width == values.shape[3] * height
        else values
        for values in outputs
    ]
    return Outputs(turned, outputs.tensors, outputs.inputs)


def _is_real(values: npt.NDArray[Any], quantisation: object) -> bool:
    return values.dtype.kind == "f" or quantisation is not None


def _is_map(values: npt.NDArray[Any], quantisation: object) -> bool:
    if values.ndim == 4 and values.shape[0] == 1:
        return _is_real(values, quantisation) or values.shape[3] == 1
    return values.ndim == 3 and values.shape[0] == 1 and values.dtype.kind in "iub" and quantisation is None


def _resized(plane: npt.NDArray[Any], size: tuple[int, int] | None, how: Image.Resampling) -> npt.NDArray[Any]:
    if size is None or plane.shape == size:
        return plane
    return np.asarray(Image.fromarray(plane).resize((size[1], size[0]), how))


def draw(mask_values: str, class_offset: int, outputs: Outputs, reference: Outputs, example: Example) -> Drawing | None:
    """The masks of both, the true one if there is one, and the pixels that differ; None where none do.

    All have the proportions of the picture.
    """
    found, expected = _both(outputs, reference)
    changed = found != expected
    if not changed.any():
        return None
    truth = None if example.target is None else read_mask(example.target, mask_values)
    header = picture_header(example.input)
    size = small_size(*((header.width, header.height) if header else expected.shape[::-1]))
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


METRICS: Final = in_lists(metrics(has_truth=True))
