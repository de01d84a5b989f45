"""The result files of an evaluation: which there are, and their content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.command import TaskCommand
from evaltools.errors import UsageError
from evaltools.known_tasks import file_named
from evaltools.report.files.output_file import planned_outputs, require_output_file
from evaltools.request import Request, require_apart
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result, Row

_WHOLE_RESULT: Final = "the result"
PLOT: Final = "the plot"


def plan_files(output: Path, configurations: Sequence[str], stated: str = "") -> dict[str, Path]:
    """Path of each file by what it holds, before anything is measured.

    Where the format has a file per configuration, the first has that name, and each other one is beside it with its
    own name put in. ``stated`` is a format that the name need not say. Raises :class:`UsageError` where two would be
    equal.

    >>> plan_files(Path("out.pb"), ["test", "gpu fp16"])
    {'test': PosixPath('out.pb'), 'gpu fp16': PosixPath('out.gpu_fp16.pb')}
    """
    if format_of(output, stated).is_per_configuration:
        return file_per_configuration(output, configurations)
    return {_WHOLE_RESULT: output}


def file_per_configuration(output: Path, configurations: Sequence[str]) -> dict[str, Path]:
    """The first configuration under the name given, each other one beside it with its own name put in.

    Raises :class:`UsageError` where two would be equal.
    """
    files: dict[str, Path] = {}
    for number, name in enumerate(configurations):
        safe_name = re.sub(r"[^\w.-]+", "_", name)
        path = output.with_name(f"{output.stem}.{safe_name}{output.suffix}") if number else output
        if os.path.realpath(path) in [os.path.realpath(other) for other in files.values()]:
            raise UsageError(f"two configurations would be written to {path}; give them names that differ in letters")
        files[name] = path
    return files


def rendered(result: Result, files: Mapping[str, Path], stated: str = "") -> dict[str, Callable[[], bytes]]:
    """What makes the content of each planned file but the plot; nothing for what was not measured."""
    rows = {entry.name: entry for entry in result.measured_tests}
    return {
        name: partial(format_of(path, stated).render, result, rows.get(name), path)
        for name, path in files.items()
        if name == _WHOLE_RESULT or name in rows
    }


class OutputFormat(Struct, frozen=True):
    """How a file is made: ``render`` gives the content for a measured test configuration, or with None for all.

    ``is_per_configuration``: each test configuration has a file of its own, and no other is written.
    """

    render: Callable[[Result, Row | None, Path], bytes]
    is_per_configuration: bool = False


def _page(ending: str, result: Result, _configuration: Row | None, path: Path) -> bytes:
    from evaltools.report.content import Sources
    from evaltools.report.page.file import page_file

    return page_file(Sources({Path(result.model.file).stem: result}), path.with_suffix(ending))


def _csv(result: Result, _configuration: Row | None, _path: Path) -> bytes:
    from evaltools.report.files.rows import csv_of_rows

    return csv_of_rows(result)


def _protobuf(result: Result, configuration: Row | None, _path: Path) -> bytes:
    """The native tool's ``EvaluationStageMetrics`` of a configuration."""
    from evaltools.native.lines.evaluation import native_proto

    assert configuration is not None
    return native_proto(result, configuration)


FORMATS: Final = {
    ".json": OutputFormat(lambda result, _configuration, _path: encode_json(result)),
    ".md": OutputFormat(partial(_page, ".md")),
    ".html": OutputFormat(partial(_page, ".html")),
    ".csv": OutputFormat(_csv),
    ".pb": OutputFormat(_protobuf, is_per_configuration=True),
    ".bin": OutputFormat(_protobuf, is_per_configuration=True),
}
"""By ending."""
NATIVE: Final = ".pb"
"""What a name means that has no ending of these, where one may be given as to the native tool."""


def format_of(path: Path, stated: str = "") -> OutputFormat:
    """The format that the name of a file asks for, unless one is ``stated``: an ending without its dot.

    >>> format_of(Path("a.JSON")).is_per_configuration, format_of(Path("a.pb")).is_per_configuration
    (False, True)
    """
    ending = f".{stated}" if stated else path.suffix.lower()
    return FORMATS.get(ending, FORMATS[NATIVE])


def require_format(path: Path) -> None:
    """Refuse a name that says no format; one in /dev is the native tool's protobuf.

    Raises :class:`UsageError`.
    """
    if path.suffix.lower() not in FORMATS and not path.is_relative_to("/dev"):
        raise UsageError(
            f"--output_file_path={path}: the ending {path.suffix or '(none)'} says no format; use .json for all that "
            "is known, .html or .md for a page, .csv for a table, .pb or .bin for the native tool's protobuf, or state "
            "one of them: --output_format=json"
        )


def files_read(request: Request) -> list[Path]:
    """Every file that an evaluation reads, but for pictures, and that of its task."""
    file = file_named(request.task)
    return [*([] if file is None else [file]), *request.files_read]


def planned_report(request: Request) -> Path | None:
    """The page that ``--report`` asks for, checked before any long work."""
    return planned_outputs(request.options, ("report",), files_read(request)).get("report")


def planned_files(request: Request) -> dict[str, Path]:
    """The result files that ``--output_file_path`` asks for, checked before any long work.

    Refuses to overwrite what the evaluation reads, what it writes for another flag, and stdout, which carries the
    native lines.
    """
    options, read, output = request.options, files_read(request), request.options.path("output_file_path")
    others = planned_outputs(options, ("trace", "plot"), read)
    flags = ("trace", "plot", "report")
    written = [(f"--{flag}", path) for flag in flags if (path := options.path(flag)) is not None]
    require_apart(written)
    drawn = {PLOT: others["plot"]} if "plot" in others else {}
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
    folder = options.path("save_outputs") if "save_outputs" in options else None
    for path in set(files.values()):
        if folder is not None and path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"--output_file_path={path} is in the folder of --save_outputs; put it elsewhere")
        require_output_file(path, "--output_file_path", read)
        require_apart([*written, ("--output_file_path", path)])
    if not request.is_native and not stated:
        require_format(output)
    return files | drawn


def planned_files_of_task(task: TaskCommand, request: Request, outputs: Iterable[Path]) -> dict[str, Path]:
    """The file of each configuration that only the task has, beside ``outputs``, checked before any long work.

    Raises :class:`UsageError`.
    """
    path = request.options.path(task.file_option) if task.file_option else None
    if path is None:
        return {}
    flag = f"--{task.file_option}"
    if path.suffix.lower() != ".json":
        raise UsageError(f"{flag}={path}: what it holds is JSON; give a name that ends in .json")
    names = [entry.name for entry in request.tests]
    files = file_per_configuration(path, [*names, request.reference.name] if request.reference else names)
    read = files_read(request)
    for file in files.values():
        require_output_file(file, flag, read)
    asked = [(flag, file) for file in files.values()]
    require_apart([*(("--output_file_path", output) for output in outputs), *asked])
    return files
