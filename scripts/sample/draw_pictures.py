"""Draw the pictures of the embedded sample.

Every picture shows one figure (stripes, a star, a spiral ...) on a busy background.  All of it is
drawn from numbers that a seeded generator gives, so the pictures carry no licence but this
project's own, and anyone can draw the same ones again:

    python scripts/sample/draw_pictures.py --output_dir datasets/sample

The command writes the 200 evaluation pictures, ``labels.txt`` and ``ground_truth.txt``.
``train_models.py`` draws its training pictures with the same functions and other seeds.
"""

from __future__ import annotations

import argparse
import io
import math
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from figures import (
    CLASS_NAMES,
    LONE_FIGURES,
    PLANE_FIGURES,
    FloatArray,
    Frame,
    bands,
    box,
    coverage,
    disc,
    make_frame,
)

EVALUATION_COUNT = 200
EVALUATION_SEED = 20240
TRAINING_SEED = 7
VALIDATION_SEED = 8

SMALLEST_SIDE = 120
LARGEST_SIDE = 240

GREY_WEIGHTS = np.array([0.299, 0.587, 0.114])


def paint(canvas: FloatArray, mask: FloatArray, colour: FloatArray) -> FloatArray:
    """Lay a colour (one for all pixels, or one for each) over the canvas where the mask is."""
    weight: FloatArray = mask[:, :, np.newaxis]
    painted: FloatArray = canvas * (1.0 - weight) + colour * weight
    return painted


def random_colour(rng: np.random.Generator) -> FloatArray:
    """Any colour but the extremes, which lighting would cut off."""
    return rng.uniform(0.08, 0.92, size=3)


def contrasting_colour(rng: np.random.Generator, other: FloatArray, smallest: float) -> FloatArray:
    """A colour whose brightness differs from that of ``other`` by at least ``smallest``."""
    while True:
        colour = random_colour(rng)
        if abs(float(GREY_WEIGHTS @ (colour - other))) >= smallest:
            return colour


def smooth_noise(rng: np.random.Generator, height: int, width: int, cells: int) -> FloatArray:
    """Clouds: a small grid of random values from -1 to 1, enlarged to the whole picture."""
    grid = rng.uniform(-1.0, 1.0, size=(cells, cells)).astype(np.float32)
    enlarged = Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(enlarged, dtype=np.float64)


def draw_background(rng: np.random.Generator, height: int, width: int, base: FloatArray) -> FloatArray:
    """A gradient from ``base`` to a similar colour, with clouds and sometimes fine lines."""
    whole = make_frame(
        height,
        width,
        (0.5 * width, 0.5 * height),
        0.5 * max(height, width),
        rng.uniform(0.0, 2.0 * math.pi),
    )
    other_end = np.clip(base + rng.normal(0.0, 0.13, size=3), 0.0, 1.0)
    canvas = np.empty((height, width, 3))
    canvas[:] = base
    canvas = paint(canvas, np.clip(0.5 + 0.5 * whole.across, 0.0, 1.0), other_end)
    for cells in (4, 12, 32):
        clouds = smooth_noise(rng, height, width, cells)
        canvas += clouds[:, :, np.newaxis] * rng.normal(0.0, 0.035, size=3)
    if rng.uniform() < 0.3:
        lines = bands(whole.across, rng.uniform(0.05, 0.25), rng.uniform(0.2, 0.5))
        tint = np.clip(base + rng.normal(0.0, 0.12, size=3), 0.0, 1.0)
        canvas = paint(canvas, 0.6 * coverage(lines, whole.pixel), tint)
    return np.clip(canvas, 0.0, 1.0)


def draw_small_form(
    canvas: FloatArray, rng: np.random.Generator, centre: tuple[float, float], radius: float
) -> FloatArray:
    """A disc, a rectangle or an outline of one that has nothing to do with the class."""
    height, width = canvas.shape[:2]
    frame = make_frame(height, width, centre, radius, rng.uniform(0.0, 2.0 * math.pi))
    round_form = rng.uniform() < 0.5
    distance = disc(frame) if round_form else box(frame, 1.0, rng.uniform(0.25, 1.0))
    if rng.uniform() < 0.35:
        distance = np.abs(distance) - 0.2
    return paint(canvas, coverage(distance, frame.pixel), random_colour(rng))


def draw_distractors(canvas: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Up to six small forms anywhere in the picture, behind the figure."""
    height, width = canvas.shape[:2]
    side = min(height, width)
    for _ in range(int(rng.integers(0, 7))):
        centre = (rng.uniform(0.0, width), rng.uniform(0.0, height))
        canvas = draw_small_form(canvas, rng, centre, side * rng.uniform(0.04, 0.12))
    return canvas


def draw_occluders(
    canvas: FloatArray, rng: np.random.Generator, centre: tuple[float, float], radius: float
) -> FloatArray:
    """Up to two things in front of the figure: a bar across it or a form over its edge."""
    height, width = canvas.shape[:2]
    for _ in range(int(rng.choice([0, 1, 2], p=[0.35, 0.4, 0.25]))):
        angle = rng.uniform(0.0, 2.0 * math.pi)
        away = radius * rng.uniform(0.35, 1.0)
        place = (centre[0] + away * math.cos(angle), centre[1] + away * math.sin(angle))
        if rng.uniform() < 0.4:
            frame = make_frame(height, width, place, radius, angle)
            bar = np.abs(frame.across) - rng.uniform(0.06, 0.16)
            canvas = paint(canvas, coverage(bar, frame.pixel), random_colour(rng))
        else:
            canvas = draw_small_form(canvas, rng, place, radius * rng.uniform(0.3, 0.55))
    return canvas


def draw_panel(frame: Frame, rng: np.random.Generator) -> FloatArray:
    """The outline of the piece of ground on which a figure lies, as a signed distance."""
    kind = int(rng.integers(0, 3))
    if kind == 0:
        return disc(frame, 1.1)
    if kind == 1:
        return box(frame, 1.0, rng.uniform(0.8, 1.0))
    bumps = int(rng.integers(3, 7))
    angle = np.arctan2(frame.down, frame.across)
    reach: FloatArray = 1.05 + 0.12 * np.sin(bumps * angle + rng.uniform(0.0, 2.0 * math.pi))
    return frame.from_centre() - reach


def draw_figure(
    canvas: FloatArray,
    rng: np.random.Generator,
    class_name: str,
    frame: Frame,
    base: FloatArray,
) -> FloatArray:
    """Paint the figure that gives the picture its class.

    A plane figure is always cut out by a panel.  A lone figure may lie on a panel, and may be
    drawn as an outline only.
    """
    ground = base
    mask = np.ones(canvas.shape[:2])
    if class_name in PLANE_FIGURES:
        distance = PLANE_FIGURES[class_name](frame, rng)
        panel_scale = 1.0
        has_ground = rng.uniform() < 0.6
    else:
        distance = LONE_FIGURES[class_name](frame, rng)
        panel_scale = 1.25
        has_ground = rng.uniform() < 0.35
        if rng.uniform() < 0.3:
            distance = np.abs(distance) - rng.uniform(0.07, 0.13)
    panel_frame = Frame(frame.across / panel_scale, frame.down / panel_scale, frame.pixel)
    panel = coverage(draw_panel(panel_frame, rng), frame.pixel)
    if has_ground:
        ground = random_colour(rng)
        canvas = paint(canvas, panel * rng.uniform(0.6, 1.0), ground)
    if class_name in PLANE_FIGURES:
        mask = panel
    colour = contrasting_colour(rng, ground, rng.uniform(0.07, 0.3))
    clouds = smooth_noise(rng, canvas.shape[0], canvas.shape[1], 8)[:, :, np.newaxis]
    shaded = np.clip(colour + clouds * rng.uniform(0.0, 0.1), 0.0, 1.0)
    return paint(canvas, mask * coverage(distance, frame.pixel), shaded)


def light(canvas: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Uneven light from one side, a tint, and a brighter or darker picture as a whole."""
    height, width = canvas.shape[:2]
    frame = make_frame(
        height,
        width,
        (rng.uniform(0.0, width), rng.uniform(0.0, height)),
        float(max(height, width)),
        rng.uniform(0.0, 2.0 * math.pi),
    )
    strength = rng.uniform(0.55, 1.2) * (1.0 + rng.uniform(0.0, 0.6) * frame.across)
    tint = rng.uniform(0.88, 1.12, size=3)
    lit: FloatArray = canvas * strength[:, :, np.newaxis] * tint
    return np.clip(lit, 0.0, 1.0)


def photograph(canvas: FloatArray, rng: np.random.Generator) -> Image.Image:
    """What a plain camera would make of the scene: a little blur and noise, sometimes no colour."""
    blur = rng.uniform(0.0, 0.012) * min(canvas.shape[:2])
    sharp = Image.fromarray(np.rint(canvas * 255.0).astype(np.uint8))
    blurred = np.asarray(sharp.filter(ImageFilter.GaussianBlur(blur)), dtype=np.float64)
    noisy = blurred + rng.normal(0.0, rng.uniform(2.0, 13.0), size=blurred.shape)
    image = Image.fromarray(np.clip(np.rint(noisy), 0.0, 255.0).astype(np.uint8))
    if rng.uniform() < 0.05:
        return image.convert("L")
    return image


def random_size(rng: np.random.Generator) -> tuple[int, int]:
    """Height and width of a picture: landscape, portrait or square."""
    short = int(rng.integers(SMALLEST_SIDE, 186))
    long = min(LARGEST_SIDE, round(short * rng.uniform(1.05, 1.55)))
    shape = rng.uniform()
    if shape < 0.5:
        return short, long
    if shape < 0.9:
        return long, short
    return short, short


def draw_picture(class_name: str, rng: np.random.Generator) -> Image.Image:
    """Draw one picture of the class."""
    height, width = random_size(rng)
    side = min(height, width)
    base = random_colour(rng)
    canvas = draw_background(rng, height, width, base)
    canvas = draw_distractors(canvas, rng)
    centre = (
        0.5 * width + side * rng.uniform(-0.13, 0.13),
        0.5 * height + side * rng.uniform(-0.13, 0.13),
    )
    radius = side * rng.uniform(0.2, 0.36)
    frame = make_frame(height, width, centre, radius, rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.65, 1.0))
    canvas = draw_figure(canvas, rng, class_name, frame, base)
    canvas = draw_occluders(canvas, rng, centre, radius)
    return photograph(light(canvas, rng), rng)


def encode_jpeg(image: Image.Image, rng: np.random.Generator) -> bytes:
    """Encode as JPEG, baseline or progressive, with or without colour subsampling."""
    stream = io.BytesIO()
    full_colour = rng.uniform() < 0.3
    image.save(
        stream,
        format="JPEG",
        quality=int(rng.integers(75, 93)),
        progressive=bool(rng.uniform() < 0.35),
        subsampling="4:4:4" if full_colour else "4:2:0",
    )
    return stream.getvalue()


def draw_jpeg(class_index: int, seed: int, number: int) -> bytes:
    """Draw picture ``number`` of the series ``seed``; it does not depend on the others."""
    rng = np.random.default_rng([seed, number])
    return encode_jpeg(draw_picture(CLASS_NAMES[class_index], rng), rng)


def evaluation_classes() -> list[int]:
    """The class of every evaluation picture: about equally many of each, in mixed order."""
    classes = np.arange(EVALUATION_COUNT) % len(CLASS_NAMES)
    np.random.default_rng(EVALUATION_SEED).shuffle(classes)
    return [int(class_index) for class_index in classes]


def evaluation_file_name(position: int) -> str:
    """The file name of the evaluation picture at ``position``, which counts from 0."""
    return f"{position + 1:04d}.jpg"


def write_sample(output_dir: Path) -> None:
    """Write the evaluation pictures, their class names and the names of all classes."""
    images_dir = output_dir / "images"
    images_dir.mkdir(parents=True, exist_ok=True)
    classes = evaluation_classes()
    for position, class_index in enumerate(classes):
        data = draw_jpeg(class_index, EVALUATION_SEED, position)
        (images_dir / evaluation_file_name(position)).write_bytes(data)
    write_lines(output_dir / "labels.txt", list(CLASS_NAMES))
    write_lines(output_dir / "ground_truth.txt", [CLASS_NAMES[index] for index in classes])


def write_lines(path: Path, lines: list[str]) -> None:
    """Write a text file with one line for each entry, the same on every system."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the embedded sample.")
    parser.add_argument("--output_dir", type=Path, default=Path("datasets/sample"))
    arguments = parser.parse_args()
    write_sample(arguments.output_dir)


if __name__ == "__main__":
    main()
