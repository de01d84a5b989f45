"""The twelve figures of the sample pictures, as masks over a frame.

A figure is a function of a frame and a random generator; it returns how much of each pixel it covers, 0..1. A new class
is one function here plus one line in ``PLANE_FIGURES`` (fills the picture) or ``LONE_FIGURES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    """Coordinates of every pixel as seen by one figure.

    A figure is drawn around the point (0, 0) and reaches to about 1 in every direction, whatever
    its position, size and rotation in the picture are.  ``pixel`` is the width of one picture
    pixel in these units; edges are softened over that width.
    """

    across: FloatArray
    down: FloatArray
    pixel: float

    def from_centre(self) -> FloatArray:
        """Distance of every pixel from the middle of the figure."""
        return np.hypot(self.across, self.down)


FigureFunction = Callable[[Frame, np.random.Generator], FloatArray]


def make_frame(
    height: int,
    width: int,
    centre: tuple[float, float],
    radius: float,
    angle: float,
    squeeze: float = 1.0,
) -> Frame:
    """Build the coordinates of a figure.

    ``centre`` is (column, row) in pixels, ``radius`` is in pixels, ``angle`` in radians.  A
    ``squeeze`` below 1 makes the figure narrower, as if it were seen from one side.
    """
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    right = (columns - centre[0]) / radius
    below = (rows - centre[1]) / radius
    across = (right * math.cos(angle) + below * math.sin(angle)) / squeeze
    down = below * math.cos(angle) - right * math.sin(angle)
    return Frame(across, down, 1.0 / radius)


def coverage(distance: FloatArray, pixel: float) -> FloatArray:
    """Turn signed distances (negative inside) into a mask from 0 to 1 with soft edges."""
    return np.clip(0.5 - distance / pixel, 0.0, 1.0)


# Signed distances of simple forms: negative inside, positive outside.


def disc(frame: Frame, radius: float = 1.0, across: float = 0.0, down: float = 0.0) -> FloatArray:
    """A filled circle around the point (across, down)."""
    from_point: FloatArray = np.hypot(frame.across - across, frame.down - down)
    return from_point - radius


def box(frame: Frame, half_width: float, half_height: float, down: float = 0.0) -> FloatArray:
    """A filled rectangle around the point (0, down)."""
    return np.maximum(np.abs(frame.across) - half_width, np.abs(frame.down - down) - half_height)


def polygon(frame: Frame, corners: list[tuple[float, float]]) -> FloatArray:
    """A filled polygon: the nearest edge gives the distance, the even-odd rule gives the sign."""
    nearest = np.full(frame.across.shape, np.inf)
    inside = np.zeros(frame.across.shape, dtype=bool)
    for start, end in zip(corners, corners[1:] + corners[:1], strict=True):
        edge_across = end[0] - start[0]
        edge_down = end[1] - start[1]
        from_start_across = frame.across - start[0]
        from_start_down = frame.down - start[1]
        along = from_start_across * edge_across + from_start_down * edge_down
        along = np.clip(along / (edge_across**2 + edge_down**2), 0.0, 1.0)
        from_edge = np.hypot(from_start_across - along * edge_across, from_start_down - along * edge_down)
        nearest = np.minimum(nearest, from_edge)
        if edge_down != 0.0:
            crosses = (frame.down < start[1]) != (frame.down < end[1])
            crossing = start[0] + from_start_down * edge_across / edge_down
            inside ^= crosses & (frame.across < crossing)
    distance: FloatArray = np.where(inside, -nearest, nearest)
    return distance


def bands(position: FloatArray, period: float, share: float) -> FloatArray:
    """Parallel bands along ``position``; ``share`` is the part of each period that is filled."""
    turns = position / period
    from_middle: FloatArray = np.abs(turns - np.floor(turns) - 0.5)
    return (from_middle - 0.5 * share) * period


# The figures.  The first group fills a plane and is cut out by a panel, the second stands alone.


def stripes(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Straight parallel stripes."""
    period = rng.uniform(0.32, 0.7)
    return bands(frame.across + rng.uniform(0.0, period), period, rng.uniform(0.35, 0.65))


def waves(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Parallel bands that wind to and fro."""
    period = rng.uniform(0.34, 0.6)
    height = rng.uniform(0.07, 0.18)
    turn = 2.0 * math.pi / rng.uniform(0.6, 1.2)
    angle = turn * frame.down + rng.uniform(0.0, 2.0 * math.pi)
    position = frame.across + height * np.sin(angle)
    steepness: FloatArray = np.hypot(1.0, height * turn * np.cos(angle))
    return bands(position, period, rng.uniform(0.35, 0.6)) / steepness


def rings(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Circles around one point."""
    period = rng.uniform(0.3, 0.55)
    position = frame.from_centre() + rng.uniform(0.0, period)
    return bands(position, period, rng.uniform(0.35, 0.6))


def spiral(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """One or two arms that wind outwards, in either direction."""
    arms = int(rng.integers(1, 3)) * int(rng.choice([-1, 1]))
    period = rng.uniform(0.32, 0.55)
    turns = np.arctan2(frame.down, frame.across) / (2.0 * math.pi)
    position = frame.from_centre() + arms * period * turns
    return bands(position, period, rng.uniform(0.35, 0.6))


def checkerboard(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Squares of two colours in turn."""
    period = 2.0 * rng.uniform(0.25, 0.45)
    one_way = bands(frame.across + rng.uniform(0.0, period), period, 0.5)
    other_way = bands(frame.down + rng.uniform(0.0, period), period, 0.5)
    in_one: FloatArray = np.minimum(one_way, other_way)
    in_both: FloatArray = np.maximum(one_way, other_way)
    return np.maximum(in_one, -in_both)


def bricks(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A wall: rows of bricks, every second row moved by half a brick."""
    row_height = rng.uniform(0.3, 0.48)
    brick_length = row_height * rng.uniform(1.7, 2.5)
    joint = row_height * rng.uniform(0.14, 0.3)
    position = frame.down + rng.uniform(0.0, row_height)
    moved = np.mod(np.floor(position / row_height), 2.0) * 0.5 * brick_length
    beside = frame.across + moved + rng.uniform(0.0, brick_length)
    return np.maximum(
        bands(position, row_height, 1.0 - joint / row_height),
        bands(beside, brick_length, 1.0 - joint / brick_length),
    )


def dots(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A grid of round dots; in half of the pictures every second row is moved by half a step."""
    step = rng.uniform(0.36, 0.62)
    row = frame.down / step + rng.uniform()
    column = frame.across / step + rng.uniform()
    if rng.uniform() < 0.5:
        column = column + 0.5 * np.mod(np.floor(row), 2.0)
    from_dot: FloatArray = np.hypot(row - np.floor(row) - 0.5, column - np.floor(column) - 0.5)
    return (from_dot - rng.uniform(0.24, 0.4)) * step


def star(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A star of five to seven points."""
    points = int(rng.integers(5, 8))
    inner = rng.uniform(0.4, 0.58)
    corners = []
    for index in range(2 * points):
        reach = 1.0 if index % 2 == 0 else inner
        angle = math.pi * index / points
        corners.append((reach * math.sin(angle), -reach * math.cos(angle)))
    return polygon(frame, corners)


def triangle(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A triangle of any shape that is not too thin."""
    corners = []
    for index in range(3):
        angle = 2.0 * math.pi * (index / 3.0 + rng.uniform(-0.05, 0.05))
        reach = rng.uniform(0.8, 1.15)
        corners.append((reach * math.sin(angle), -reach * math.cos(angle)))
    return polygon(frame, corners)


def cross(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """Two bars that meet at a right angle."""
    half_width = rng.uniform(0.16, 0.33)
    upright = box(frame, half_width, 1.0)
    beam = box(frame, rng.uniform(0.7, 1.0), half_width, down=rng.uniform(-0.25, 0.0))
    return np.minimum(upright, beam)


def leaf(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A pointed leaf with a stalk and a vein along its middle."""
    half_width = rng.uniform(0.38, 0.62)
    radius = (1.0 + half_width**2) / (2.0 * half_width)
    aside = radius - half_width
    blade = np.maximum(disc(frame, radius, across=aside), disc(frame, radius, across=-aside))
    vein = box(frame, rng.uniform(0.03, 0.07), 0.75)
    stalk = box(frame, 0.06, 0.2, down=1.05)
    return np.minimum(np.maximum(blade, -vein), stalk)


def moon(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """A crescent: a disc from which another disc is taken away."""
    taken = disc(frame, rng.uniform(0.75, 0.95), across=rng.uniform(0.4, 0.65))
    return np.maximum(disc(frame), -taken)


PLANE_FIGURES: dict[str, FigureFunction] = {
    "bricks": bricks,
    "checkerboard": checkerboard,
    "dots": dots,
    "rings": rings,
    "spiral": spiral,
    "stripes": stripes,
    "waves": waves,
}
LONE_FIGURES: dict[str, FigureFunction] = {
    "cross": cross,
    "leaf": leaf,
    "moon": moon,
    "star": star,
    "triangle": triangle,
}
CLASS_NAMES: tuple[str, ...] = tuple(sorted([*PLANE_FIGURES, *LONE_FIGURES]))


# Painting.  A canvas is an array [height, width, 3] with values from 0 (black) to 1 (white).
