"""The files that an evaluation is to write, checked before any long work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evaltools.errors import UsageError
from evaltools.report.files.evaluation import PLOT, plan_files
from evaltools.report.files.formats import require_format
from evaltools.report.files.output_file import require_output_file
from evaltools.request import Request, require_apart


def files_read(request: Request, inputs: Iterable[Path | None]) -> list[Path]:
    """Every file that an evaluation reads, but for pictures: its own ``inputs`` and those of the configurations."""
    read = [path for path in inputs if path is not None] + [Path(text) for text in request.options.texts("configs")]
    return read + [path for configuration in request.configurations for path in configuration.files]


def planned_report(request: Request, inputs: Iterable[Path | None]) -> Path | None:
    """The page that ``--report`` asks for, checked before any long work."""
    path = request.options.path("report")
    if path is not None:
        require_report(path, files_read(request, inputs))
    return path


def require_report(path: Path, read: Iterable[Path]) -> None:
    """Refuse a page that cannot be made or written, or would replace what is read."""
    from evaltools.report.page.file import require_page_file

    require_page_file(path, "--report")
    require_output_file(path, "--report", read)


def planned_files(request: Request, inputs: Iterable[Path | None]) -> dict[str, Path]:
    """The result files that ``--output_file_path`` asks for, checked before any long work.

    Refuses to overwrite what the evaluation reads (``inputs`` and the configurations' files), what it writes for
    another flag, and stdout, which carries the native lines.
    """
    options, read = request.options, files_read(request, inputs)
    output, trace = options.path("output_file_path"), options.path("trace")
    if trace is not None:
        require_output_file(trace, "--trace", read)
    plot = options.path("plot")
    if plot is not None:
        from evaltools.report.files.plot import require_plot

        require_plot(plot)
        require_output_file(plot, "--plot", read)
    flags = {"--trace": trace, "--plot": plot, "--report": options.path("report")}
    written = [(flag, path) for flag, path in flags.items() if path is not None]
    require_apart(written)
    drawn = {} if plot is None else {PLOT: plot}
    recording = "record_examples" in options.parameters and options.is_on("record_examples")
    stated = options.text("output_format")
    if recording and (output is None or (stated or output.suffix.lower().removeprefix(".")) != "json"):
        raise UsageError("--record_examples writes to the JSON result; add --output_file_path=FILE.json")
    if output is None:
        return drawn
    if (stated or output.suffix.lower().removeprefix(".")) == "html":
        from evaltools.report.page.rendering.html import require_page

        require_page()
    files = plan_files(output, [configuration.name for configuration in request.tests], stated)
    for path in set(files.values()):
        require_output_file(path, "--output_file_path", read)
        require_apart([*written, ("--output_file_path", path)])
    if not request.is_native and not stated:
        require_format(output)
    return files | drawn
