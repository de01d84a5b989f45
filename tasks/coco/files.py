"""What a detection evaluation writes beside its result: the detections of each configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console

from evaltools.errors import OutputError, UsageError
from evaltools.report.files.evaluation import file_per_configuration, files_read
from evaltools.report.files.output_file import require_output_file, write_measured
from evaltools.request import Request, require_apart
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.tasks.coco.result import CocoDetection


def plan_detections(request: Request, inputs: Iterable[Path | None], outputs: Iterable[Path]) -> dict[str, Path]:
    """A file for each configuration, checked before any long work; ``inputs`` are read, ``outputs`` written too."""
    path = request.options.path("detections_path")
    if path is None:
        return {}
    if path.suffix.lower() != ".json":
        raise UsageError(f"--detections_path={path}: the COCO results format is JSON; give a name that ends in .json")
    names = [entry.name for entry in request.tests]
    names += [request.reference.name] if request.reference else []
    detections = file_per_configuration(path, names)
    read = files_read(request, inputs)
    for file in detections.values():
        require_output_file(file, "--detections_path", read)
    asked = [("--detections_path", file) for file in detections.values()]
    require_apart([*(("--output_file_path", output) for output in outputs), *asked])
    return detections


def write_detections(result: EvaluationResult, files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write what was measured; returns what could not be written."""
    part: CocoDetection = result.part
    measured = [entry.configuration for entry in part.figures]
    contents = {name: coco_results(part, name) for name in files if name in measured}
    return write_measured(contents, files, console)


def coco_results(coco: CocoDetection, configuration: str) -> bytes:
    """Detections in the COCO results format, which pycocotools' ``loadRes`` reads.

    A JSON list with image_id, category_id, bbox [x, y, width, height] in pixels, and score of each detection.
    """
    return encode_json(
        [
            {
                "image_id": picture.image_id,
                "category_id": found.category_id,
                "bbox": found.pixel_box(picture.width, picture.height),
                "score": found.score,
            }
            for picture in coco.pictures or []
            if picture.image_id is not None
            for found in picture.detections.get(configuration, [])
        ]
    )
