"""What imagenet is asked for, made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltools.tasks.imagenet import KIND
from evaltools.tasks.own.evaluation import OwnOptions
from evaltools.tasks.own.options import values_of


def imagenet_options(images: Path, truths: Path, labels: Path, **changes: Any) -> OwnOptions:
    """Labelled pictures, and other options than the defaults."""
    files = {"ground_truth_images_path": images, "ground_truth_labels": truths, "model_output_labels": labels}
    values = values_of(KIND.own_options, {**files, **changes}, KIND.name)
    return OwnOptions(KIND.loaded, values, pictures="ground_truth_images_path")
