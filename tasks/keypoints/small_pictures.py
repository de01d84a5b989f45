"""Keypoints as points over the picture that they were found in."""

from __future__ import annotations

from typing import Final

import numpy as np
from PIL import Image, ImageDraw

from evaltools.result.small_pictures import Drawing
from evaltools.tasks.keypoints.examples import KEYPOINTS, Seen, Truth, region
from evaltools.tasks.keypoints.scoring import Floats, located
from evaltools.tasks.own.definition import Example
from evaltools.tasks.own.pictures import panel, small_size
from evaltools.tasks.own.tensors import Outputs

_SIDE: Final = 240
_TRUTH, _REFERENCE, _TEST = (255, 255, 255), (40, 110, 235), (240, 120, 20)
_BORDER: Final = (0, 0, 0)


def draw(outputs: Outputs, reference: Outputs, example: Example) -> Drawing | None:
    """The keypoints of both over the picture, and the annotated ones if there are any; None where none moved."""
    found, expected = located(outputs)[:, :2], located(reference)[:, :2]
    shift = float(np.hypot(*(found - expected).T).mean())
    if not shift:
        return None
    seen: Seen = example.input
    truth: Truth | None = example.target
    with Image.open(seen.picture) as opened:
        width, height = opened.size
    rows, columns = outputs.inputs[0].shape[1:3]
    left, top, *extent = region(seen, (width, height), columns / rows)
    points = [_annotated(truth), *(np.array([left, top]) + each * extent for each in (expected, found))]
    size = small_size(width, height, _SIDE)
    scale = np.array(size) / (width, height)
    image = _points(size, *(each * scale for each in points))
    name = "filled: test; ring: reference" + ("; white: truth" if truth is not None else "")
    return Drawing(
        shift,
        f"keypoints are moved by {100 * shift:.2g} % of the input, mean",
        str(seen.picture),
        [panel(name, image, is_over=True)],
    )


def _annotated(truth: Truth | None) -> Floats:
    """Places (N, 2) of the annotated keypoints of all people that the input shows, in pixels."""
    people = truth.people if truth is not None else ()
    every = [np.reshape(person.keypoints, (KEYPOINTS, 3)) for person in people]
    points = np.concatenate([np.zeros((0, 3)), *every])
    annotated: Floats = points[points[:, 2] > 0, :2]
    return annotated


def _points(size: tuple[int, int], truth: Floats, expected: Floats, found: Floats) -> Image.Image:
    image = Image.new("RGBA", size)
    canvas = ImageDraw.Draw(image)
    for point in truth:
        canvas.rectangle(_around(point, 3), fill=_TRUTH, outline=_BORDER)
    for point in found:
        canvas.ellipse(_around(point, 2), fill=_TEST, outline=_BORDER)
    for point in expected:
        canvas.ellipse(_around(point, 5), outline=_REFERENCE, width=2)
    return image.quantize(32)


def _around(point: Floats, radius: int) -> tuple[float, float, float, float]:
    x, y = map(float, point)
    return x - radius, y - radius, x + radius, y + radius
