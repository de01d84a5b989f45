"""The program on a device with Python: it lays out the files, then carries out the request.

Its arguments: ``--folder NAME FILE... -- REQUEST``. Of an evaluation only the records count.
"""

from __future__ import annotations

import argparse
import importlib
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
    parser.add_argument("--folder", nargs="+", action="append", default=[])
    parser.add_argument("request", nargs="?")
    given = parser.parse_args(arguments)
    program = importlib.import_module(_CARRY_OUT)
    program.set_up_process()
    if given.check:
        for module in given.check:
            importlib.import_module(module)
        return 0
    for folder, *files in given.folder:
        lay_out(Path(folder), map(Path, files))
    carried_out: int = program.carry_out_file(Path(given.request), records_only=True)
    return carried_out


def lay_out(folder: Path, files: Iterable[Path]) -> None:
    """Make a folder of the files in archives, and in a list ``.json`` of names and sizes; those are empty, but as long.

    The list comes first.
    """
    folder.mkdir()
    for file in files:
        if file.suffix == ".json":
            for name, size in json_values(file.read_text()):
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                with open(path, "wb") as empty:
                    empty.truncate(size)
            continue
        with tarfile.open(file) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(folder, filter="data")
            else:
                archive.extractall(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
