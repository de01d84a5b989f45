"""What runs on a device with Python: it lays out the files of a part, then becomes the evaltools command.

``python3 -m evaltools.device.on_device --pictures NAME MANIFEST ARCHIVE... --folder NAME ARCHIVE... -- COMMAND...``
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

NEEDED: Final[Mapping[str, Sequence[str]]] = {
    "imagenet": ("evaltools.tasks.imagenet.evaluation", "scipy.stats"),
    "coco": ("evaltools.tasks.coco.evaluation", "scipy.stats", "pycocotools.cocoeval"),
    "inference-diff": ("evaltools.tasks.inference_diff.evaluation", "scipy.stats"),
    "diff": ("evaltools.tasks.inference_diff.evaluation", "scipy.stats"),
    "benchmark": ("evaltools.benchmark.run", "scipy.stats"),
}
"""What a task imports, at the latest when it has figures."""


def main(arguments: Sequence[str]) -> int:
    """Lay out the files, then run the command in the place of this process; ``--check TASK`` returns 0."""
    parser = argparse.ArgumentParser(prog="on_device")
    parser.add_argument("--check", choices=sorted(NEEDED))
    parser.add_argument("--pictures", nargs="+", action="append", default=[])
    parser.add_argument("--folder", nargs="+", action="append", default=[])
    parser.add_argument("command", nargs="*")
    given = parser.parse_args(arguments)
    if given.check:
        print(json.dumps(what_is_here(given.check)))
        return 0
    for folder, manifest, *archives in given.pictures:
        lay_out(Path(folder), Path(manifest), map(Path, archives))
    for folder, *archives in given.folder:
        Path(folder).mkdir()
        _unpack(map(Path, archives), Path(folder))
    os.execv(sys.executable, [sys.executable, "-m", "evaltools.cli.main", *given.command])


def what_is_here(task: str) -> dict[str, object]:
    """The version of this package and of Python, after importing all that a task needs."""
    for module in NEEDED[task]:
        importlib.import_module(module)
    from importlib.metadata import version

    return {"evaltools": version("evaltools"), "python": sys.version.split()[0], "folder": os.path.dirname(__file__)}


def lay_out(folder: Path, manifest: Path, archives: Iterable[Path]) -> None:
    """Make a folder of the files in ``manifest``: those in ``archives`` whole, the others empty but of their sizes."""
    folder.mkdir()
    for name, size in json.loads(manifest.read_text()):
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
