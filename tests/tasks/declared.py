"""Runs a task that comes with evaltools on its embedded sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import evaltools as et
from evaltools.datasets import sample

SAMPLE = Path(sample.__file__).resolve().parent


def run_sample(task: str, folder: str, **options: Any) -> et.Result:
    """The result of a task with XNNPACK against the builtin kernels; options that are paths start at the sample."""
    given: dict[str, Any] = {
        name: SAMPLE / folder / value if isinstance(value, Path) else value for name, value in options.items()
    }
    return et.run(task, SAMPLE / folder / "model.tflite", tests={"xnnpack": "use_xnnpack=true"}, **given)
