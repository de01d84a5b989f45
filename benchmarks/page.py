"""Seconds, memory and bytes of the page about an ImageNet run of many pictures.

``python -m benchmarks page [--examples=50000 --configurations=3 --rounds=3]``

The run is that of ``python -m benchmarks summarise``: made-up answers, as its journal has them. The page is made of the
result file, in a process of its own: of the result as it is, and with every answer in it (``--record_examples=true``).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace
from PIL import Image

from benchmarks.summarise import PARAMETERS, figures, settled, write_journal
from evaltools.engine.opening import describe_model
from evaltools.model import read_model
from evaltools.report.page.file import page_file, read_sources
from evaltools.request.flags import parse_flags
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json
from evaltools.result.result import CHANGED, Result, without_examples
from evaltools.tasks.framework.collecting import with_concluded

_MODEL: Final = Path(__file__).resolve().parent.parent / "datasets/sample/models/int8.tflite"
_PHOTO: Final = (500, 375)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("page", "", "", {"flags": PARAMETERS}, arguments)
    folder = flags.path("journal")
    if folder is not None:
        print(*page_of(folder))
        return 0
    examples = flags.number("examples")
    names = ["reference", *(f"test {number}" for number in range(1, flags.number("configurations")))]
    with tempfile.TemporaryDirectory() as temporary:
        journal = Path(temporary, "journal")
        write_journal(journal, examples, names)
        result = result_of(journal, examples, names, temporary)
        draw_pictures(result, Path(temporary))
        for is_recorded in (False, True):
            kept = result if is_recorded else without_scores(result)
            file = Path(temporary, "result.json")
            file.write_bytes(encode_json(kept))
            command = [sys.executable, "-m", "benchmarks", "page", f"--journal={temporary}"]
            rounds = range(flags.number("rounds"))
            done = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in rounds]
            columns = zip(*([float(text) for text in line.split()] for line in done), strict=True)
            before, reading, making, peak, size = map(statistics.median, columns)
            what = "with every answer" if is_recorded else "as it is"
            print(f"{examples} examples, {len(names)} configurations, the result {what}:")
            print(f"  result {file.stat().st_size / 1e6:.2f} MB   page {size / 1e6:.2f} MB")
            print(f"  reading {reading:.2f} s   page {making:.2f} s   memory {before:.0f} to {peak:.0f} MB")
    return 0


def result_of(journal: Path, examples: int, names: list[str], images: str) -> Result:
    """The result of a finished run, with every answer."""
    outcome = settled(journal, examples, names)
    measured, _, answers = figures(outcome, names, True, images)
    result = Result(
        "imagenet",
        environment=describe_environment([], "", 1.0),
        models=[describe_model(read_model(_MODEL))],
        rows=measured,
        examples_done=examples,
        example_count=examples,
    )
    return with_concluded(result, answers)


def without_scores(result: Result) -> Result:
    """The result without the single answers."""
    entries = [
        replace(entry, figures={name: replace(figure, scores=[]) for name, figure in entry.figures.items()})
        for entry in result.rows
    ]
    return without_examples(replace(result, rows=entries))


def draw_pictures(result: Result, folder: Path) -> None:
    """Noise in the size of a photo, under the name of each picture that changed."""
    noise = np.random.default_rng(0).integers(0, 256, (_PHOTO[1], _PHOTO[0], 3), np.uint8)
    picture = folder / "noise.jpg"
    Image.fromarray(noise).save(picture)
    names = dict.fromkeys(result.tables[CHANGED]["example"])
    for name in names:
        (folder / name).hardlink_to(picture)


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far, as Linux counts it: not that of the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def page_of(folder: Path) -> tuple[float, float, float, float, float]:
    """MB before, seconds of reading and of the page, MB at most, bytes of the page."""
    before, start = peak_memory_mb(), time.perf_counter()
    sources = read_sources([folder / "result.json"])
    read = time.perf_counter()
    content = page_file(sources, folder / "page.html")
    made = time.perf_counter()
    (folder / "page.html").write_bytes(content)
    return before, read - start, made - read, peak_memory_mb(), len(content)
