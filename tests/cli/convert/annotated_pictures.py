"""Three small annotated pictures in the formats that ``evaltools convert`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from tests.command import Completed, evaltools_here

SIZES = {"b.jpg": (80, 40), "a.png": (10, 10), "empty.jpg": (8, 8)}


def write_pictures(folder: Path) -> Path:
    """The pictures, each with a colour of its own."""
    folder.mkdir(parents=True)
    for number, (name, size) in enumerate(SIZES.items()):
        Image.new("RGB", size, (number, 9, 9)).save(folder / name)
    return folder


def coco_document() -> dict[str, Any]:
    """Two pictures with four objects, one a crowd, one beyond its picture; and a picture without."""
    return {
        "images": [
            {"id": 7, "file_name": "b.jpg", "width": 80, "height": 40},
            {"id": 3, "file_name": "a.png", "width": 10, "height": 10},
            {"id": 5, "file_name": "empty.jpg", "width": 8, "height": 8},
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [20, 10, 40, 20], "area": 500.5, "iscrowd": 0},
            {"id": 2, "image_id": 3, "category_id": 1, "bbox": [5, 5, 5.5, 2], "area": 11, "iscrowd": 0},
            {"id": 3, "image_id": 7, "category_id": 1, "bbox": [0, 0, 80, 40], "area": 9, "iscrowd": 1},
            {"id": 4, "image_id": 3, "category_id": 3, "bbox": [0, 0, 5, 10], "area": 50, "iscrowd": 0},
        ],
        "categories": [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}],
    }


def write_coco(folder: Path, **changed: Any) -> Path:
    """``instances.json`` of it; ``changed`` replaces its parts."""
    path = folder / "instances.json"
    path.write_text(json.dumps({**coco_document(), **changed}, indent=1))
    return path


def make_coco_folder(folder: Path) -> Path:
    """``instances.json`` and ``pictures`` in a folder."""
    write_pictures(folder / "pictures")
    write_coco(folder)
    return folder


def convert_coco(folder: Path, *more: str) -> Completed:
    """Convert that folder into its folder ``out``; flags given replace those."""
    given = ["--instances_file=instances.json", "--images_folder=pictures", "--output_folder=out"]
    names = [flag.partition("=")[0] for flag in more]
    return evaltools_here(
        "convert", "coco", *(flag for flag in given if flag.partition("=")[0] not in names), *more, cwd=folder
    )
