"""How near one picture is to another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.errors import TaskError
from evaltools.preprocess import ImageToTensor, decode_image
from evaltools.tasks.framework.definition import Mean, in_lists, mean
from evaltools.tasks.framework.tensors import Outputs

Floats = npt.NDArray[np.float64]
_PIXELS: Final = {"unit": (255.0, 0.0), "native": (127.5, 127.5), "none": (1.0, 0.0)}
"""Factor and offset to 0..255."""
_IDENTICAL_DB: Final = 100.0
_SSIM: Final = (-1.0, 1.0)
_GREY: Final = np.array([0.299, 0.587, 0.114])
_DEVIATION, _RADIUS = 1.5, 5
_STABLE: Final = ((0.01 * 255) ** 2, (0.03 * 255) ** 2)


def metrics(has_truth: bool) -> list[Mean]:
    """Those of pictures of pictures, in the order of their columns."""
    agreement = [
        mean(
            "error_to_reference",
            better="lower",
            margin=0.005,
            meaning="image_to_image: root mean squared error to the reference, 1 from black to white",
        ),
        mean(
            "ssim_to_reference",
            margin=0.005,
            bounds=_SSIM,
            meaning="image_to_image: structural similarity to the reference's output, -1..1",
        ),
    ]
    return (
        [
            mean(
                "psnr",
                margin=0.1,
                meaning="image_to_image: peak signal by noise against the target, in dB, at most 100",
            ),
            mean(
                "ssim", margin=0.005, bounds=_SSIM, meaning="image_to_image: structural similarity to the target, -1..1"
            ),
            *agreement,
        ]
        if has_truth
        else agreement
    )


def score(values: str, outputs: Outputs, target: Path) -> dict[str, float]:
    """PSNR and SSIM against the picture in a file, at the size of the output."""
    found = picture(outputs, values)
    height, width, channels = found.shape
    image = decode_image(target)
    if image.shape[:2] != (height, width):
        image = ImageToTensor(height, width, np.dtype("uint8"), crop_fraction=None)(image)[0].astype(np.uint8)
    expected = image.astype(np.float64)
    if channels == 1:
        expected = (expected @ _GREY)[..., np.newaxis]
    return {"psnr": psnr(found, expected), "ssim": ssim(found, expected)}


def agree(values: str, outputs: Outputs, reference: Outputs, _target: object) -> dict[str, float]:
    """How far it is from the reference's output; 1 is from black to white."""
    found, expected = picture(outputs, values), picture(reference, values)
    error = math.sqrt(float(np.mean((found - expected) ** 2))) / 255
    return {"error_to_reference": error, "ssim_to_reference": ssim(found, expected)}


def picture(outputs: Outputs, values: str) -> Floats:
    """The first output that is a picture, (height, width, channels) from 0 to 255; raises :class:`TaskError`."""
    for number, each in enumerate(outputs):
        if each.ndim == 4 and each.shape[0] == 1 and each.shape[3] in (1, 3):
            factor, offset = _PIXELS[values]
            found: npt.NDArray[Any] = outputs.real(number)[0].astype(np.float64) * factor + offset
            if not np.isfinite(found).all():
                raise TaskError(
                    f"{np.count_nonzero(~np.isfinite(found))} of {found.size} values of the picture are not finite"
                )
            clipped: Floats = np.clip(found, 0, 255)
            return clipped
    shapes = ", ".join(f"{each.dtype}{list(each.shape)}" for each in outputs)
    raise TaskError(
        f"no output of the model is a picture, but {shapes}; expected is [1,height,width,3] or [1,height,width,1]"
    )


def psnr(found: Floats, expected: Floats) -> float:
    """``10 log10(255^2 / mean squared error)``; 100 where that is larger, as for equal pictures.

    >>> psnr(np.zeros((8, 8, 3)), np.full((8, 8, 3), 25.5))
    20.0
    """
    error = float(np.mean((found - expected) ** 2))
    return _IDENTICAL_DB if error == 0 else min(_IDENTICAL_DB, 10 * math.log10(255**2 / error))


def ssim(found: Floats, expected: Floats) -> float:
    """Mean structural similarity over places and channels (Z. Wang et al. 2004).

    Gaussian weights of deviation 1.5 in 11 x 11 pixels, K1 = 0.01, K2 = 0.03; places whose window crosses the border
    are left out. Smaller pictures than a window raise :class:`TaskError`.
    """
    from scipy import ndimage

    if min(found.shape[:2]) <= 2 * _RADIUS:
        raise TaskError(
            f"the output has {found.shape[0]} x {found.shape[1]} pixels; SSIM needs more than {2 * _RADIUS} each"
        )

    def mean(values: Floats) -> Floats:
        blurred: Floats = ndimage.gaussian_filter(values, (_DEVIATION, _DEVIATION, 0), radius=_RADIUS)
        return blurred[_RADIUS:-_RADIUS, _RADIUS:-_RADIUS]

    ours, theirs = mean(found), mean(expected)
    our_variance, their_variance = mean(found**2) - ours**2, mean(expected**2) - theirs**2
    together = mean(found * expected) - ours * theirs
    first, second = _STABLE
    above = (2 * ours * theirs + first) * (2 * together + second)
    below = (ours**2 + theirs**2 + first) * (our_variance + their_variance + second)
    return float(np.mean(above / below))


METRICS: Final = in_lists(metrics(has_truth=True))
