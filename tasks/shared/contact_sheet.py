"""The picture that ``--disagreements_path`` asks for: planned before any long work, drawn when all is measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from evaltools.datasets.image_folder import printable_name
from evaltools.errors import ImageError, OutputError, UsageError
from evaltools.preprocess import decode_image
from evaltools.report.files.output_file import require_output_file, write_measured
from evaltools.report.files.planned_files import files_read
from evaltools.request import Request, require_apart
from evaltools.result.evaluation import EvaluationResult

LoadPicture = Callable[[str], npt.NDArray[np.uint8]]
"""Gives a picture as ``(H, W, 3)`` uint8 by its name in the result."""
Draw = Callable[[EvaluationResult, LoadPicture], bytes | None]
"""A PNG of a result, None where there is nothing to draw."""


def check_sheet(path: Path, request: Request) -> None:
    """Raise :class:`UsageError` for a name that cannot be that of a picture to write."""
    if path.suffix.lower() != ".png":
        raise UsageError(f"--disagreements_path={path}: the picture is a PNG; give a name that ends in .png")
    folder = os.path.realpath(request.options.text("ground_truth_images_path"))
    if os.path.dirname(os.path.realpath(path)) == folder:
        raise UsageError(f"--disagreements_path={path} would be among the pictures that are evaluated; write elsewhere")
    if len(request.configurations) < 2:
        raise UsageError(
            "--disagreements_path needs two configurations to compare; leave out --reference=none, or add --config"
        )


def require_files(
    asked: Iterable[tuple[str, Path]], request: Request, inputs: Iterable[Path | None], outputs: Iterable[Path]
) -> None:
    """Check files by the flag that asks for them: ``inputs`` are read, ``outputs`` the result files."""
    read, files = files_read(request, inputs), list(asked)
    for flag, file in files:
        require_output_file(file, flag, read)
    require_apart([*(("--output_file_path", path) for path in outputs), *files])


def write_sheet(
    draw: Draw, result: EvaluationResult, path: Path, pictures: Path, console: Console, nothing: str
) -> list[OutputError]:
    """Draw from the ``pictures`` and write; returns what could not be written. ``nothing`` says why none is drawn."""
    _, height, width, _ = result.model.inputs[0].shape
    files: Mapping[str, Path] = {}

    def load(name: str) -> npt.NDArray[np.uint8]:
        if name not in files:
            raise ImageError(f"{name} is no longer there")
        return decode_image(files[name], height, width)

    try:
        files = {printable_name(file.name): file for file in pictures.iterdir()}
        picture = draw(result, load)
    except (ImageError, OSError) as error:
        return [OutputError(f"{path} is not written: a picture cannot be read a second time ({error})")]
    if picture is None:
        console.print(f"{path} is not written: {nothing}")
        return []
    return write_measured({"picture": picture}, {"picture": path}, console)
