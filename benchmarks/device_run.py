"""What doing an evaluation on a device adds to doing it there by hand: sending, starting, fetching, per part.

``python -m benchmarks device_run --serials=SERIAL [--adb=PATH --device_python=PATH]``

The same command here and on the device; with a daemon on this machine both have the same processor, so that the
difference is what ``evaltools device run`` costs. The store of the device is emptied first.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from evaltools.datasets import sample
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

PARAMETERS: Final = (
    Parameter("serials", "The device."),
    Parameter("adb", "The adb binary."),
    Parameter("device_python", "Python on the device.", default="python3"),
    Parameter("rounds", "Turns of each; the fastest counts.", default=3),
)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("device_run", "", "", {"flags": PARAMETERS}, arguments)
    task = [
        "imagenet",
        f"--model_file={sample.model_file('int8')}",
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--ground_truth_labels={sample.ground_truth_file()}",
        f"--model_output_labels={sample.labels_file()}",
        "--label_check=false",
    ]
    adb = [f"--adb={flags.text('adb')}"] if flags.text("adb") else []
    device = [*adb, f"--serials={flags.text('serials')}"]
    there = ["device", "run", *task, *device, f"--device_python={flags.text('device_python')}"]
    rounds = flags.number("rounds")
    here = min(seconds(task) for _ in range(rounds))
    print(f"here: {here:.2f} s")
    seconds(["device", "clean", *device])
    first = seconds([*there, "--parts=1"])
    print(f"on the device, everything sent: {first:.2f} s, {first - here:+.2f} s")
    for parts in (1, 2, 4, 8):
        seconds([*there, f"--parts={parts}"])
        taken = min(seconds([*there, f"--parts={parts}"]) for _ in range(rounds))
        print(f"on the device, nothing to send, {parts} parts: {taken:.2f} s, {(taken - here) / parts:+.2f} s per part")
    return 0


def seconds(words: Sequence[str]) -> float:
    """How long a command takes; raises ``CalledProcessError`` where it fails."""
    command = [sys.executable, "-m", "evaltools.cli.main", *words]
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started
