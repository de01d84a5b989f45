"""Files with a task, for tests."""

from __future__ import annotations

from pathlib import Path

BRIGHTNESS = '''
"""How near an output is to a number."""

from pathlib import Path

import numpy as np

import evaltools as et


@et.task
def brightness(values: Path, times: float = 1.0) -> et.Task:
    """How near the first output is to a number."""
    lines = [line.split() for line in values.read_text().splitlines()]

    def prepare(value, tensors):
        return [np.full(tensor.shape, value, tensor.dtype) for tensor in tensors]

    def score(outputs, target):
        distance = abs(float(outputs[0].mean()) - target)
        return {"distance": distance, "near": float(distance < 0.5)}

    return et.Task(
        examples=[et.Example(name, float(value) * times, float(target)) for name, value, target in lines],
        prepare=prepare,
        score=score,
        metrics=[et.mean("distance", better="lower"), et.mean("near")],
    )
'''
"""Inputs are numbers from a file; what the model gives is compared with another number."""


def write_task(folder: Path, content: str = BRIGHTNESS, name: str = "own.py") -> Path:
    """A file with a task."""
    path = folder / name
    path.write_text(content)
    return path


def write_values(folder: Path, count: int = 12) -> Path:
    """The file that ``brightness`` reads: names, inputs and targets."""
    path = folder / "values.txt"
    path.write_text("".join(f"example{number:02d} {number / 10} {number / 10 + 0.25}\n" for number in range(count)))
    return path
