"""Seconds and typing to the first verdict: an empty folder, a model, 60 photos, one command.

``python -m benchmarks first_verdict --model=FILE.tflite --images=FOLDER --ground_truth=FILE --labels=FILE``

Without flags the embedded sample is taken. With ``--package=FOLDER`` that folder's ``evaltools`` runs, as of an earlier
release, with the flags that were needed before there were short ones. Counted are the words that a shell sees, and
characters; timed is the whole command, up to the first line of stderr that begins with the configuration's name and a
colon: its verdict. Medians.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evaltools.datasets import sample
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

PARAMETERS = (
    Parameter("model", "The model; the sample's int8 one if empty.", default=""),
    Parameter("images", "Folder of photos; the sample's if empty.", default=""),
    Parameter("ground_truth", "A line per photo, sorted by name.", default=""),
    Parameter("labels", "A line per output of the model.", default=""),
    Parameter("pictures", "How many photos.", default=60),
    Parameter("repeats", "Runs of each command.", default=5),
    Parameter("package", "Folder that holds another evaltools.", default=""),
)
SHORT: Final = {
    "imagenet": "evaltools imagenet model.tflite --images=photos --ground_truth=truth.txt",
    "diff": "evaltools diff model.tflite",
    "diff on the photos": "evaltools diff model.tflite --input_images=photos",
}
"""labels.txt beside the model is found."""
LONG: Final = {
    "imagenet": "evaltools imagenet --model_file=model.tflite --ground_truth_images_path=photos "
    "--ground_truth_labels=truth.txt --model_output_labels=labels.txt",
    "diff": "evaltools diff --model_file=model.tflite",
    "diff on the photos": "evaltools diff --model_file=model.tflite --input_images=photos",
}
_VERDICT: Final = re.compile(r"(xnnpack|test): ")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("first_verdict", "", "", {"flags": PARAMETERS}, arguments)
    package = flags.text("package")
    environment = {**os.environ, **({"PYTHONPATH": str(Path(package).absolute())} if package else {})}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        given = {name: flags.text(name) for name in ("model", "images", "ground_truth", "labels")}
        fill(folder, given, flags.number("pictures"))
        print(f"{'command':20} {'words':>5} {'characters':>10} {'verdict':>8} {'end':>8}")
        for name, command in (LONG if package else SHORT).items():
            measured = [seconds(command, folder, environment) for _ in range(flags.number("repeats"))]
            verdict, end = (statistics.median(values) for values in zip(*measured, strict=True))
            print(
                f"{name:20} {len(shlex.split(command)):5} {len(command):10} {verdict:6.1f} s {end:6.1f} s", flush=True
            )
    return 0


def fill(folder: Path, given: Mapping[str, str], pictures: int) -> None:
    """The model, the first pictures by name, their truths and the labels, under short names."""
    images = Path(given["images"] or sample.images_dir())
    photos = sorted(path for path in images.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))[:pictures]
    truths = Path(given["ground_truth"] or sample.ground_truth_file()).read_text().splitlines()[: len(photos)]
    shutil.copy(given["model"] or sample.model_file("int8"), folder / "model.tflite")
    shutil.copy(given["labels"] or sample.labels_file(), folder / "labels.txt")
    (folder / "truth.txt").write_text("".join(f"{truth}\n" for truth in truths))
    (folder / "photos").mkdir()
    for photo in photos:
        shutil.copy(photo, folder / "photos")


def seconds(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Until the first verdict, and until the end."""
    words = [sys.executable, "-m", "evaltools.cli.main", *shlex.split(command)[1:]]
    begun, verdict = time.perf_counter(), float("nan")
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if verdict != verdict and _VERDICT.match(line):
            verdict = time.perf_counter() - begun
    if process.wait() != 0 or verdict != verdict:
        raise SystemExit(f"{command}: exit code {process.returncode}\n{''.join(said)}")
    return verdict, time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
