"""Writes result files without ever leaving half of one behind, and no folder that holds anything already.

What a command writes is planned before any long work and written at its end.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.errors import OutputError, UsageError
from evaltools.request import Options

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.report.content import Sources


_FIRST_BYTES: Final = 4096


def require_writable(path: Path, flag: str) -> None:
    """Raise :class:`UsageError` where ``path`` cannot be written, before any long work."""
    if os.path.isdir(path):
        raise UsageError(f"{flag}={path} is a folder; give a file name")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{flag}={path}: the folder {folder} does not exist, or cannot be entered; create it first")
    if os.path.islink(path) and os.path.islink(os.path.realpath(path)):
        raise UsageError(f"{flag}={path} is a symbolic link that leads to itself; give another name")
    if os.path.exists(path) and not os.path.isfile(path) and not is_written_in_place(path):
        raise UsageError(f"{flag}={path} is not a regular file; give another name")
    target = path if is_written_in_place(path) else folder
    if not os.access(target, os.W_OK):
        raise UsageError(f"{flag}={path}: no permission to write to {target}")


def require_output_file(path: Path, flag: str, inputs: Iterable[Path]) -> None:
    """Refuse a file that cannot be written, is read by this run (``inputs``), or is stdout, before any long work.

    In a folder of ``inputs`` only what evaltools wrote is written anew.
    """
    require_writable(path, flag)
    for source in inputs:
        if _same_file(path, source) or (_lies_in(path, source) and not is_of_evaltools(path)):
            raise UsageError(f"{flag}={path} would overwrite an input of this run; give another name")
    if _same_file(path, 1) and not path.samefile(os.devnull):
        raise UsageError(f"{flag}={path} is stdout, which carries the native lines; give a file")


def is_of_evaltools(path: Path) -> bool:
    """Whether a file may be replaced: it is not there yet, or was written by evaltools, as its first words say."""
    try:
        return b"evaltools" in first_bytes(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def first_bytes(path: Path) -> bytes:
    """How a file that may be replaced begins; raises :class:`OSError`."""
    with open(path, "rb") as file:
        return file.read(_FIRST_BYTES)


def _lies_in(path: Path, folder: Path) -> bool:
    return os.path.isdir(folder) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _same_file(path: Path, other: Path | int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.stat(other))
    except OSError:
        return False


def write_file(path: Path, content: bytes) -> None:
    """Replace a file in one step, through symbolic links; raises :class:`OutputError`.

    What is below /dev or /proc is written as it is.
    """
    try:
        if is_written_in_place(path):
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from error
    except ValueError as error:
        raise OutputError(f"{str(path)!a} cannot be written: {error}") from error


def is_written_in_place(path: Path) -> bool:
    """Devices, and names such as /dev/stdout that stand for an open file."""
    return path.is_relative_to("/dev") or path.is_relative_to("/proc")


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode if path.exists() else None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:40]}.") as folder:
        draft = Path(folder) / "draft"
        draft.write_bytes(content)
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)


def require_new_folder(folder: Path, flag: str) -> None:
    """Make the folder that a flag names; raises :class:`UsageError` where it cannot be made, or holds files already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"--{flag}={folder} cannot be made: {error.strerror}") from error
    if taken:
        raise UsageError(f"--{flag}={folder} is not empty; give a new folder")


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
    is_stated = "output_format" in options.parameters and options.text("output_format") in ("json", "records")
    return is_stated or path.suffix.lower() == ".json"


def write_outputs(
    files: Mapping[str, Path], contents: Mapping[str, Callable[[], bytes]], console: Console | None = None
) -> list[OutputError]:
    """Make the content of each planned file and write it; returns what could not be made or written.

    The ``console`` is told of those that have no content, as nothing was measured for them.
    """
    not_written = []
    for name, path in files.items():
        if console is not None and name not in contents:
            console.print(f"{path} is not written: {name} was not measured")
            continue
        try:
            write_file(path, contents[name]())
        except OutputError as error:
            not_written.append(error)
        except UsageError as error:
            not_written.append(OutputError(f"{path} cannot be written: {error}"))
    return not_written


def write_report(path: Path | None, sources: Sources) -> list[OutputError]:
    """Write the page, if one is asked for; returns what could not be written."""
    if path is None:
        return []
    from evaltools.report.page.file import page_file

    return write_outputs({"report": path}, {"report": lambda: page_file(sources, path)})
