"""What a detection evaluation writes beside its result: detections per configuration, the picture of disagreements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from rich.console import Console

from evaltools.errors import OutputError, UsageError
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import write_measured
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.tasks.coco.disagreements import draw_disagreements
from evaltools.tasks.coco.result import CocoDetection
from evaltools.tasks.shared.contact_sheet import check_sheet, require_files, write_sheet


class MoreFiles(Struct, frozen=True):
    """Detections of each configuration, and the picture of disagreements."""

    detections: dict[str, Path]
    disagreements: Path | None


def plan_more_files(request: Request, inputs: Iterable[Path | None], outputs: Iterable[Path]) -> MoreFiles:
    """Checked before any long work; ``inputs`` are read, ``outputs`` written for another flag."""
    path, picture = request.options.path("detections_path"), request.options.path("disagreements_path")
    if path is not None and path.suffix.lower() != ".json":
        raise UsageError(f"--detections_path={path}: the COCO results format is JSON; give a name that ends in .json")
    if picture is not None:
        check_sheet(picture, request)
    names = [entry.name for entry in request.tests]
    names += [request.reference.name] if request.reference else []
    detections = file_per_configuration(path, names) if path is not None else {}
    asked = [("--detections_path", file) for file in detections.values()]
    asked += [("--disagreements_path", picture)] if picture is not None else []
    require_files(asked, request, inputs, outputs)
    return MoreFiles(detections, picture)


def write_more_files(result: EvaluationResult, files: MoreFiles, pictures: Path, console: Console) -> list[OutputError]:
    """Write what was measured; returns what could not be written."""
    part: CocoDetection = result.part
    measured = [entry.configuration for entry in part.figures]
    contents = {name: coco_results(part, name) for name in files.detections if name in measured}
    failed = write_measured(contents, files.detections, console)
    if files.disagreements is not None:
        failed += write_sheet(
            draw_disagreements, result, files.disagreements, pictures, console, "no boxes differ visibly"
        )
    return failed


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
