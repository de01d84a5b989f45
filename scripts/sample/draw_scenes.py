"""Draw the pictures of the embedded detection sample.

Every picture shows up to six figures of seven classes on a busy background: small and large ones,
some of them in front of others, some cut by the border. A few pictures show no figure at all, two
show a crowd of tiny ones. All of it is drawn from numbers that a seeded generator gives:

    python scripts/sample/draw_scenes.py --output_dir datasets/sample/detection

The command writes the 60 evaluation pictures, ``instances.json`` (the truth in the format of the
COCO instances) and ``labels.txt``. ``train_detector.py`` draws its training pictures with the same
functions and other seeds.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

import draw_pictures
from draw_pictures import encode_jpeg, paint, write_lines
from figures import LONE_FIGURES, PLANE_FIGURES, FloatArray, Frame, coverage, make_frame

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

OBJECT_NAMES = ("checkerboard", "cross", "leaf", "moon", "rings", "star", "triangle")
"""The classes. The category id of a class is its position plus 1, as in COCO."""

UNKNOWN_LABEL = "???"

EVALUATION_COUNT = 60
EVALUATION_SEED = 30240
TRAINING_SEED = 17
VALIDATION_SEED = 18

EMPTY_POSITIONS = frozenset({8, 29, 51})
CROWD_POSITIONS = frozenset({16, 40})

SMALLEST_SIDE = 160
LARGEST_SIDE = 320
LARGEST_COUNT = 6

# Radii in pixels. With these, areas below 32 x 32 and above 96 x 96 pixels occur as well as those in between.
RADII = {"small": (11.0, 20.0), "medium": (24.0, 52.0), "large": (60.0, 96.0)}
RADII_SHARES = {"small": 0.25, "medium": 0.5, "large": 0.25}
LARGEST_RADIUS_SHARE = 0.46
CROWD_RADII = (5.0, 8.0)
CROWD_COUNT = (20, 32)

REACH = 1.35
"""How far any figure reaches at most, in units of its radius."""

SMALLEST_VISIBLE_SHARE = 0.55
SMALLEST_CONTRAST = 0.14
TRIES = 30

NOBODY = -1


@dataclass(frozen=True)
class Instance:
    """One annotated figure, or one crowd; ``box`` is (left, top, width, height) in pixels."""

    class_index: int
    box: tuple[int, int, int, int]
    area: int
    is_crowd: bool = False


@dataclass(frozen=True)
class Scene:
    """A finished picture and all that is to be found in it."""

    image: Image.Image
    instances: tuple[Instance, ...]


@dataclass
class Stage:
    """A picture while it is drawn.

    ``owner`` says for every pixel which figure is seen there, by number, or :data:`NOBODY`;
    ``full_areas`` holds the pixels that each figure would have if nothing hid or cut it.
    """

    canvas: FloatArray
    owner: IntArray
    classes: list[int]
    full_areas: list[int]

    @property
    def height(self) -> int:
        """Rows of the picture."""
        return int(self.canvas.shape[0])

    @property
    def width(self) -> int:
        """Columns of the picture."""
        return int(self.canvas.shape[1])


@dataclass(frozen=True)
class Cutout:
    """The part of a stage on which one figure lies, and how that figure looks there.

    ``shape`` is how much of each pixel the figure covers, ``pattern`` how much of it has the
    second colour.
    """

    rows: slice
    columns: slice
    shape: FloatArray
    pattern: FloatArray
    full_area: int


def object_shape(class_name: str, frame: Frame, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The outline of a figure and its pattern, both as masks; a lone figure has no pattern."""
    if class_name in LONE_FIGURES:
        outline = coverage(LONE_FIGURES[class_name](frame, rng), frame.pixel)
        return outline, np.zeros_like(outline)
    pattern = coverage(PLANE_FIGURES[class_name](frame, rng), frame.pixel)
    return coverage(draw_pictures.draw_panel(frame, rng), frame.pixel), pattern


def cut_out(
    stage: Stage, rng: np.random.Generator, class_name: str, centre: tuple[float, float], radius: float
) -> Cutout:
    """Work out one figure on a square around it, and keep what lies inside the picture."""
    reach = math.ceil(REACH * radius) + 1
    left, top = math.floor(centre[0]) - reach, math.floor(centre[1]) - reach
    side = 2 * reach + 1
    middle = (centre[0] - left, centre[1] - top)
    frame = make_frame(side, side, middle, radius, rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.7, 1.0))
    shape, pattern = object_shape(class_name, frame, rng)
    rows = slice(max(top, 0), min(top + side, stage.height))
    columns = slice(max(left, 0), min(left + side, stage.width))
    inside = (slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left))
    return Cutout(rows, columns, shape[inside], pattern[inside], int(np.count_nonzero(shape > 0.5)))


def stays_visible(stage: Stage, cutout: Cutout, may_overlap: bool) -> bool:
    """Whether enough of the new figure, and of all before it, would be seen."""
    solid = cutout.shape > 0.5
    if np.count_nonzero(solid) < SMALLEST_VISIBLE_SHARE * cutout.full_area:
        return False
    hidden = stage.owner[cutout.rows, cutout.columns][solid]
    for number in np.unique(hidden[hidden != NOBODY]):
        left_over = np.count_nonzero(stage.owner == number) - np.count_nonzero(hidden == number)
        if not may_overlap or left_over < SMALLEST_VISIBLE_SHARE * stage.full_areas[number]:
            return False
    return True


def put(stage: Stage, rng: np.random.Generator, class_index: int, cutout: Cutout) -> None:
    """Paint a figure onto the stage, in a colour that differs from what lies below it."""
    canvas = stage.canvas[cutout.rows, cutout.columns]
    solid = cutout.shape > 0.5
    colour = draw_pictures.contrasting_colour(rng, canvas[solid].mean(axis=0), SMALLEST_CONTRAST)
    second = draw_pictures.contrasting_colour(rng, colour, 1.5 * SMALLEST_CONTRAST)
    clouds = draw_pictures.smooth_noise(rng, solid.shape[0], solid.shape[1], 6)[:, :, np.newaxis]
    ground = np.clip(colour + clouds * rng.uniform(0.0, 0.08), 0.0, 1.0)
    look = paint(ground, cutout.pattern, second)
    stage.canvas[cutout.rows, cutout.columns] = paint(canvas, cutout.shape, look)
    stage.owner[cutout.rows, cutout.columns][solid] = len(stage.classes)
    stage.classes.append(class_index)
    stage.full_areas.append(cutout.full_area)


def random_place(stage: Stage, rng: np.random.Generator, radius: float) -> tuple[float, float]:
    """A place for a figure: mostly inside the picture, sometimes across its border."""
    place = []
    for length in (stage.width, stage.height):
        margin = min(1.1 * radius, 0.5 * length)
        place.append(rng.uniform(margin, length - margin))
    if rng.uniform() < 0.14:
        axis = int(rng.integers(0, 2))
        length = (stage.width, stage.height)[axis]
        beyond = rng.uniform(0.0, 0.6) * radius
        place[axis] = beyond if rng.uniform() < 0.5 else length - beyond
    return place[0], place[1]


def random_radii(stage: Stage, rng: np.random.Generator, count: int) -> list[float]:
    """Radii of the figures of a picture, the largest first; at most one of them is large."""
    sizes = list(RADII)
    shares = list(RADII_SHARES.values())
    largest = LARGEST_RADIUS_SHARE * min(stage.height, stage.width)
    radii: list[float] = []
    for _ in range(count):
        size = sizes[int(rng.choice(len(sizes), p=shares))]
        if size == "large" and (max(radii, default=0.0) > RADII["medium"][1] or largest < RADII["large"][0]):
            size = "medium"
        low, high = RADII[size]
        radii.append(math.exp(rng.uniform(math.log(low), math.log(min(high, largest)))))
    return sorted(radii, reverse=True)


def place_objects(stage: Stage, rng: np.random.Generator, count: int) -> None:
    """Put figures wherever there is room for them; one that finds no place is left out."""
    for radius in random_radii(stage, rng, count):
        class_index = int(rng.integers(0, len(OBJECT_NAMES)))
        may_overlap = rng.uniform() < 0.25
        for _ in range(TRIES):
            centre = random_place(stage, rng, radius)
            cutout = cut_out(stage, rng, OBJECT_NAMES[class_index], centre, radius)
            if stays_visible(stage, cutout, may_overlap):
                put(stage, rng, class_index, cutout)
                break


def place_crowd(stage: Stage, rng: np.random.Generator) -> Instance:
    """Put many tiny figures of one class close together; returns the crowd as one instance.

    The figures count as one from then on, so that nothing is put in front of the crowd.
    """
    class_index = int(rng.integers(0, len(OBJECT_NAMES)))
    spread = (0.2 * stage.width, 0.16 * stage.height)
    middle = (stage.width * rng.uniform(0.3, 0.7), stage.height * rng.uniform(0.3, 0.7))
    for _ in range(int(rng.integers(*CROWD_COUNT))):
        radius = rng.uniform(*CROWD_RADII)
        for _ in range(TRIES):
            centre = (
                middle[0] + spread[0] * rng.uniform(-1.0, 1.0),
                middle[1] + spread[1] * rng.uniform(-1.0, 1.0),
            )
            cutout = cut_out(stage, rng, OBJECT_NAMES[class_index], centre, radius)
            if stays_visible(stage, cutout, may_overlap=False):
                put(stage, rng, class_index, cutout)
                break
    crowd = describe(stage.owner != NOBODY, class_index, is_crowd=True)
    left, top, width, height = crowd.box
    stage.owner[top : top + height, left : left + width] = 0
    stage.full_areas[0] = width * height
    return crowd


def describe(seen: BoolArray, class_index: int, is_crowd: bool = False) -> Instance:
    """The box around all pixels that are seen of something, and their number."""
    rows = np.flatnonzero(seen.any(axis=1))
    columns = np.flatnonzero(seen.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    box = (left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top)
    return Instance(class_index, box, int(np.count_nonzero(seen)), is_crowd)


def random_size(rng: np.random.Generator) -> tuple[int, int]:
    """Height and width of a picture: landscape, portrait or square."""
    short = int(rng.integers(SMALLEST_SIDE, 241))
    long = min(LARGEST_SIDE, round(short * rng.uniform(1.1, 1.5)))
    shape = rng.uniform()
    if shape < 0.5:
        return short, long
    if shape < 0.85:
        return long, short
    return short, short


def draw_scene(rng: np.random.Generator, object_count: int, has_crowd: bool = False) -> Scene:
    """Draw one picture with up to that many figures, and a crowd besides them if wanted."""
    height, width = random_size(rng)
    background = draw_pictures.draw_background(rng, height, width, draw_pictures.random_colour(rng))
    canvas = draw_pictures.draw_distractors(background, rng)
    stage = Stage(canvas, np.full((height, width), NOBODY, dtype=np.int64), [], [])
    instances = [place_crowd(stage, rng)] if has_crowd else []
    first = len(stage.classes)
    place_objects(stage, rng, object_count)
    for number in range(first, len(stage.classes)):
        instances.append(describe(stage.owner == number, stage.classes[number]))
    image = draw_pictures.photograph(draw_pictures.light(stage.canvas, rng), rng)
    if image.mode == "RGB" and rng.uniform() < 0.06:
        image = image.convert("L")
    return Scene(image, tuple(instances))


def draw_training_scene(seed: int, number: int) -> tuple[bytes, tuple[Instance, ...]]:
    """Draw picture ``number`` of the series ``seed``: a JPEG file and what is to be found in it."""
    rng = np.random.default_rng([seed, number])
    scene = draw_scene(rng, int(rng.integers(1, LARGEST_COUNT + 1)))
    return encode_jpeg(scene.image, rng), scene.instances


def draw_evaluation_scene(position: int) -> tuple[bytes, Scene]:
    """Draw the evaluation picture at ``position``, which counts from 0: a JPEG file and its scene."""
    rng = np.random.default_rng([EVALUATION_SEED, position])
    count = int(rng.integers(1, LARGEST_COUNT + 1))
    has_crowd = position in CROWD_POSITIONS
    if position in EMPTY_POSITIONS:
        count = 0
    scene = draw_scene(rng, min(count, 2) if has_crowd else count, has_crowd)
    return encode_jpeg(scene.image, rng), scene


def evaluation_file_name(position: int) -> str:
    """The file name of the evaluation picture at ``position``, which counts from 0."""
    return f"{position + 1:04d}.jpg"


def annotation(instance: Instance, annotation_id: int, image_id: int) -> dict[str, Any]:
    """An instance as COCO writes it."""
    return {
        "id": annotation_id,
        "image_id": image_id,
        "category_id": instance.class_index + 1,
        "bbox": list(instance.box),
        "area": instance.area,
        "iscrowd": int(instance.is_crowd),
    }


def categories() -> list[dict[str, Any]]:
    """The classes as COCO writes them."""
    return [
        {"id": index + 1, "name": name, "supercategory": "plane" if name in PLANE_FIGURES else "lone"}
        for index, name in enumerate(OBJECT_NAMES)
    ]


def to_json(sections: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The lines of a JSON file with one entry per line: short, and readable in a diff."""
    lines = ["{"]
    for number, (name, entries) in enumerate(sections.items(), start=1):
        lines.append(f"{json.dumps(name)}: [")
        texts = [json.dumps(entry) for entry in entries]
        lines += [f"{text}," for text in texts[:-1]] + texts[-1:]
        lines.append("]," if number < len(sections) else "]")
    return [*lines, "}"]


def write_sample(output_dir: Path) -> None:
    """Write the evaluation pictures, the truth about them and the names of all classes."""
    images_dir = output_dir / "images"
    images_dir.mkdir(parents=True, exist_ok=True)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for position in range(EVALUATION_COUNT):
        data, scene = draw_evaluation_scene(position)
        file_name = evaluation_file_name(position)
        (images_dir / file_name).write_bytes(data)
        size = {"width": scene.image.width, "height": scene.image.height}
        images.append({"id": position + 1, "file_name": file_name, **size})
        for instance in scene.instances:
            annotations.append(annotation(instance, len(annotations) + 1, position + 1))
    sections = {"images": images, "annotations": annotations, "categories": categories()}
    write_lines(output_dir / "instances.json", to_json(sections))
    write_lines(output_dir / "labels.txt", [UNKNOWN_LABEL, *OBJECT_NAMES])


def main() -> None:
    """Read the command line and write the sample."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the embedded detection sample.")
    parser.add_argument("--output_dir", type=Path, default=Path("datasets/sample/detection"))
    arguments = parser.parse_args()
    write_sample(arguments.output_dir)


if __name__ == "__main__":
    main()
