"""What a detection evaluation writes beside its result: detections per configuration, the picture of disagreements."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from evaltools.datasets.image_folder import printable_name
from evaltools.errors import ImageError, OutputError, UsageError
from evaltools.preprocess import decode_image
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import require_output_file, write_measured
from evaltools.report.files.planned import files_read
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.detections_file import coco_results
from evaltools.tasks.coco.disagreements import draw_disagreements
from evaltools.tasks.coco.result import CocoDetection


@dataclass(frozen=True)
class MoreFiles:
    """Detections of each configuration, and the picture of disagreements."""

    detections: dict[str, Path]
    disagreements: Path | None


def plan_more_files(request: Request, inputs: Iterable[Path | None], outputs: Iterable[Path]) -> MoreFiles:
    """Checked before any long work; ``inputs`` are read, ``outputs`` written for another flag."""
    path, picture = request.options.path("detections_path"), request.options.path("disagreements_path")
    if path is not None and path.suffix.lower() != ".json":
        raise UsageError(f"--detections_path={path}: the COCO results format is JSON; give a name that ends in .json")
    if picture is not None:
        _check_picture(picture, request)
    names = [entry.name for entry in request.tests]
    names += [request.reference.name] if request.reference else []
    detections = file_per_configuration(path, names) if path is not None else {}
    read = files_read(request, inputs)
    planned = {os.path.realpath(path) for path in outputs}
    files = [("--detections_path", file) for file in detections.values()]
    files += [("--disagreements_path", picture)] if picture is not None else []
    for flag, file in files:
        require_output_file(file, flag, read)
        if os.path.realpath(file) in planned:
            raise UsageError(f"{flag}={file} is also given for another file of this run; give another name")
        planned.add(os.path.realpath(file))
    return MoreFiles(detections, picture)


def _check_picture(path: Path, request: Request) -> None:
    if path.suffix.lower() != ".png":
        raise UsageError(f"--disagreements_path={path}: the picture is a PNG; give a name that ends in .png")
    folder = os.path.realpath(request.options.text("ground_truth_images_path"))
    if os.path.dirname(os.path.realpath(path)) == folder:
        raise UsageError(f"--disagreements_path={path} would be among the pictures that are evaluated; write elsewhere")
    if len(request.configurations) < 2:
        raise UsageError(
            "--disagreements_path needs two configurations to compare; leave out --reference=none, or add --config"
        )


def write_more_files(result: EvaluationResult, files: MoreFiles, pictures: Path, console: Console) -> list[OutputError]:
    """Write what was measured; returns what could not be written."""
    part: CocoDetection = result.part
    measured = [entry.configuration for entry in part.figures]
    contents = {name: coco_results(part, name) for name in files.detections if name in measured}
    failed = write_measured(contents, files.detections, console)
    if files.disagreements is not None:
        failed += _draw(result, files.disagreements, pictures, console)
    return failed


def _draw(result: EvaluationResult, path: Path, pictures: Path, console: Console) -> list[OutputError]:
    _, height, width, _ = result.model.inputs[0].shape

    def load(name: str) -> npt.NDArray[np.uint8]:
        """Names that are no UTF-8 stand in the result in escaped form."""
        for file in pictures.iterdir():
            if printable_name(file) == name:
                return decode_image(file, height, width)
        raise ImageError(f"{name} is no longer there")

    try:
        picture = draw_disagreements(result, load)
    except (ImageError, OSError) as error:
        return [OutputError(f"{path} is not written: a picture cannot be read a second time ({error})")]
    if picture is None:
        console.print(f"{path} is not written: no boxes differ visibly")
        return []
    return write_measured({"picture": picture}, {"picture": path}, console)
