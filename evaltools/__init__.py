"""Measures whether a TensorFlow Lite delegate does the same job as the CPU.

Everything public is imported when it is first used, so that ``import evaltools`` needs neither NumPy nor a runtime.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaltools.tasks.own.definition import Example as Example
    from evaltools.tasks.own.definition import Metric as Metric
    from evaltools.tasks.own.definition import Task as Task
    from evaltools.tasks.own.definition import mean as mean
    from evaltools.tasks.own.definition import task as task
    from evaltools.tasks.own.pictures import image_input as image_input
    from evaltools.tasks.own.pictures import pairs as pairs

_PLACES = {
    "evaltools.tasks.own.definition": ("Example", "Metric", "Task", "mean", "task"),
    "evaltools.tasks.own.pictures": ("image_input", "pairs"),
}
_PUBLIC = {name: module for module, names in _PLACES.items() for name in names}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    """Import what is public from where it is."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'evaltools' has no attribute {name!r}")
    found = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
