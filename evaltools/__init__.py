"""Measures whether a TensorFlow Lite delegate does the same job as the CPU.

Everything public is imported when it is first used, so that ``import evaltools`` needs neither NumPy nor a runtime;
``__init__.pyi``, which is generated, has it with its types.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_MODULES = {
    "evaltools.api.benchmarks": ("benchmark",),
    "evaltools.api.configurations": ("Configuration",),
    "evaltools.api.evaluations": ("coco", "diff", "imagenet", "run"),
    "evaltools.api.files": ("inspect", "load"),
    "evaltools.api.gates": ("GateReport", "gate"),
    "evaltools.api.locating": ("locate",),
    "evaltools.api.progress": ("Progress",),
    "evaltools.api.result": ("Located", "Models", "Result"),
    "evaltools.api.suites": ("suite",),
    "evaltools.errors": (
        "ConfigurationUnavailable",
        "DataError",
        "EvaltoolsError",
        "ImageError",
        "InferenceError",
        "LimitNotKept",
        "ModelError",
        "OutputError",
        "TaskError",
        "UsageError",
    ),
    "evaltools.metrics.metric": ("Metric",),
    "evaltools.result.section": ("Drawing", "Panel"),
    "evaltools.tasks.framework.definition": (
        "Checked",
        "Example",
        "Mean",
        "Setting",
        "Task",
        "TopK",
        "Trial",
        "WithContext",
        "mean",
        "pooled",
        "task",
        "topk",
    ),
    "evaltools.tasks.framework.pictures": ("image_input", "pairs"),
    "evaltools.tasks.framework.tensors": ("Outputs", "TaskTensor"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_PLACES)


class _Package(ModuleType):
    """The package, in which ``benchmark``, ``locate`` and ``suite`` are functions, whatever packages were imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in _PLACES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import what is public from where it is."""
    if name not in _PLACES:
        from evaltools.gone import NAMES_GONE

        gone = NAMES_GONE.get(name)
        raise AttributeError(
            f"evaltools.{name} is gone: {gone}" if gone else f"module 'evaltools' has no attribute {name!r}"
        )
    found = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
