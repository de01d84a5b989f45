"""The files that an evaluation is to write, checked before any long work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from evaltools.errors import UsageError
from evaltools.report.files.evaluation import PLOT, plan_files
from evaltools.report.files.formats import require_format
from evaltools.report.files.output_file import require_output_file
from evaltools.report.files.plots.drawing import require_plot
from evaltools.report.page.file import require_page_file
from evaltools.report.page.rendering.html import require_page
from evaltools.request import Request


def files_read(request: Request, inputs: Iterable[Path | None]) -> list[Path]:
    """Every file that an evaluation reads, but for pictures: its own ``inputs`` and those of the configurations."""
    read = [path for path in inputs if path is not None] + [Path(text) for text in request.options.texts("configs")]
    return read + [path for configuration in request.configurations for path in configuration.files]


def planned_report(request: Request, inputs: Iterable[Path | None], others: Iterable[Path]) -> Path | None:
    """The page that ``--report`` asks for, checked before any long work; ``others`` are files of this run, too."""
    path = request.options.path("report")
    if path is not None:
        require_report(path, files_read(request, inputs), others)
    return path


def require_report(path: Path, read: Iterable[Path], others: Iterable[Path] = ()) -> None:
    """Refuse a page that cannot be made or written, or would replace what is read or written for another flag."""
    require_page_file(path, "--report")
    require_output_file(path, "--report", read)
    if os.path.realpath(path) in map(os.path.realpath, others):
        raise UsageError(f"--report={path} is another file of this run, too; give another name")


def planned_files(request: Request, inputs: Iterable[Path | None]) -> dict[str, Path]:
    """The result files that ``--output_file_path`` asks for, checked before any long work.

    Refuses to overwrite what the evaluation reads (``inputs`` and the configurations' files), and stdout, which carries
    the native lines.
    """
    options, read = request.options, files_read(request, inputs)
    output, trace = options.path("output_file_path"), options.path("trace")
    if trace is not None:
        require_output_file(trace, "--trace", read)
        if trace == output:
            raise UsageError(f"--trace={trace} is the result file, too; give another name")
    plot = options.path("plot")
    if plot is not None:
        require_plot(plot)
        require_output_file(plot, "--plot", read)
        if plot in (output, trace):
            raise UsageError(f"--plot={plot} is another file of this run, too; give another name")
    drawn = {} if plot is None else {PLOT: plot}
    recording = "record_examples" in options.parameters and options.is_on("record_examples")
    stated = options.text("output_format")
    if recording and (output is None or (stated or output.suffix.lower().removeprefix(".")) != "json"):
        raise UsageError("--record_examples writes to the JSON result; add --output_file_path=FILE.json")
    if output is None:
        return drawn
    if (stated or output.suffix.lower().removeprefix(".")) == "html":
        require_page()
    files = plan_files(output, [configuration.name for configuration in request.tests], stated)
    for path in set(files.values()):
        require_output_file(path, "--output_file_path", read)
    if not request.is_native and not stated:
        require_format(output)
    return files | drawn
