"""The files that a command writes: planned before any long work, written at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.errors import OutputError, UsageError
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.request import Options

if TYPE_CHECKING:
    from evaltools.report.content import Sources

_JSON_FLAGS: Final = ("output_file_path", "json", "badge")


def planned_outputs(
    options: Options, flags: Iterable[str], read: Iterable[Path], content: str = "the result is"
) -> dict[str, Path]:
    """The files that these flags name, by flag; those that are not given are left out.

    ``read`` are files that must not be overwritten, ``content`` says what a JSON file holds. Raises
    :class:`UsageError` for a name whose ending does not fit, and for a file that cannot be made or written.
    """
    files = {flag: path for flag in flags if (path := options.path(flag)) is not None}
    inputs = list(read)
    for flag, path in files.items():
        if flag in _JSON_FLAGS and not _is_json(options, path):
            also = ", or --output_format=json" if "output_format" in options.parameters else ""
            raise UsageError(f"--{flag}={path}: {content} JSON; give a name that ends in .json{also}")
        if flag == "report":
            from evaltools.report.page.file import require_page_file

            require_page_file(path, "--report")
        if flag == "plot":
            from evaltools.report.files.plot import require_plot

            require_plot(path)
        require_output_file(path, f"--{flag}", inputs)
    return files


def _is_json(options: Options, path: Path) -> bool:
    is_stated = "output_format" in options.parameters and options.text("output_format") == "json"
    return is_stated or path.suffix.lower() == ".json"


def write_outputs(files: Mapping[str, Path], contents: Mapping[str, Callable[[], bytes]]) -> list[OutputError]:
    """Make the content of each planned file and write it; returns what could not be written."""
    not_written = []
    for flag, path in files.items():
        try:
            write_file(path, contents[flag]())
        except OutputError as error:
            not_written.append(error)
    return not_written


def write_report(path: Path | None, sources: Sources) -> list[OutputError]:
    """Write the page, if one is asked for; returns what could not be written."""
    if path is None:
        return []
    from evaltools.report.page.file import measured_page

    return write_outputs({"report": path}, {"report": lambda: measured_page(sources, path)})
