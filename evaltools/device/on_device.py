"""The program on a device with Python: it lays out the files of a part, then carries out the request.

Its arguments: ``--part --pictures NAME MANIFEST ARCHIVE... --folder NAME ARCHIVE... -- REQUEST``, of an evaluation with
``--part`` where only its records count.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from evaltools.documents import json_values

_CARRY_OUT: Final = "evaltools.cli.runs.handed_over"


def main(arguments: Sequence[str]) -> int:
    """Lay out the files, then carry out the request; returns its exit code.

    ``--check MODULE...`` only imports modules, and returns 0.
    """
    parser = argparse.ArgumentParser(prog="on_device")
    parser.add_argument("--check", nargs="+")
    parser.add_argument("--part", action="store_true")
    parser.add_argument("--pictures", nargs="+", action="append", default=[])
    parser.add_argument("--folder", nargs="+", action="append", default=[])
    parser.add_argument("request", nargs="?")
    given = parser.parse_args(arguments)
    program = importlib.import_module(_CARRY_OUT)
    program.set_up_process()
    if given.check:
        print(json.dumps(describe_installation(given.check)))
        return 0
    for folder, manifest, *archives in given.pictures:
        lay_out(Path(folder), Path(manifest), map(Path, archives))
    for folder, *archives in given.folder:
        Path(folder).mkdir()
        _unpack(map(Path, archives), Path(folder))
    carried_out: int = program.carry_out_file(Path(given.request), is_part=given.part)
    return carried_out


def describe_installation(modules: Iterable[str]) -> dict[str, object]:
    """The versions of this package and of Python, after importing all modules that are needed."""
    for module in modules:
        importlib.import_module(module)
    from importlib.metadata import version

    return {
        "evaltools": version("evaltools"),
        "python": sys.version.split()[0],
        "folder": str(Path(__file__).parents[1]),
    }


def lay_out(folder: Path, manifest: Path, archives: Iterable[Path]) -> None:
    """Make a folder of the files in ``manifest``.

    Those in ``archives`` with their content, the others empty but with their sizes.
    """
    folder.mkdir()
    for name, size in json_values(manifest.read_text()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            file.truncate(size)
    _unpack(archives, folder)


def _unpack(archives: Iterable[Path], folder: Path) -> None:
    for archive in archives:
        with tarfile.open(archive) as files:
            if hasattr(tarfile, "data_filter"):
                files.extractall(folder, filter="data")
            else:
                files.extractall(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
