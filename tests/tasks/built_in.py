"""What tasks that come with evaltools are asked for, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltools.command import TaskCommand
from evaltools.tasks import coco, imagenet
from evaltools.tasks.framework import loaded_of, own_options
from evaltools.tasks.framework.image_input import StatedLayout
from evaltools.tasks.framework.options import values_of


def options_of(
    task: TaskCommand,
    values: dict[str, Any],
    native: bool = False,
    input_layout: StatedLayout = "auto",
    record_examples: bool = False,
) -> dict[str, Any]:
    """Fields of a request: these options of the task, and the defaults of the others."""
    return {
        "loaded": loaded_of(task),
        "values": values_of(own_options(loaded_of(task).function), values, task.name),
        "record_examples": record_examples,
        "input_layout": input_layout,
        "native": native,
        "pictures": "ground_truth_images_path",
    }


def imagenet_options(images: Path, truths: Path, labels: Path, **changes: Any) -> dict[str, Any]:
    """Labelled pictures, and other options than the defaults."""
    files = {"ground_truth_images_path": images, "ground_truth_labels": truths, "model_output_labels": labels}
    return options_of(imagenet.COMMAND, {**files, **changes})


def coco_options(
    images: Path,
    native: bool = False,
    record_examples: bool = False,
    input_layout: StatedLayout = "auto",
    **changes: Any,
) -> dict[str, Any]:
    """Pictures, and other options than the defaults."""
    values = {"ground_truth_images_path": images, **changes}
    return options_of(coco.COMMAND, values, native, input_layout, record_examples)
