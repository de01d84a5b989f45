"""What a detection evaluation writes beside its result: detections per configuration, the picture of disagreements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from evaltools.errors import OutputError, UsageError
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import write_measured
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.detections_file import coco_results
from evaltools.tasks.coco.disagreements import draw_disagreements
from evaltools.tasks.coco.result import CocoDetection
from evaltools.tasks.shared.contact_sheet import check_sheet, require_files, write_sheet


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
