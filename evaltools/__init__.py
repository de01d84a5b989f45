"""Measures whether a TensorFlow Lite delegate does the same job as the CPU.

Everything public is imported when it is first used, so that ``import evaltools`` needs neither NumPy nor a runtime.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaltools.api.benchmarks import Benchmark as Benchmark
    from evaltools.api.benchmarks import benchmark as benchmark
    from evaltools.api.configurations import Configuration as Configuration
    from evaltools.api.evaluations import coco as coco
    from evaltools.api.evaluations import diff as diff
    from evaltools.api.evaluations import imagenet as imagenet
    from evaltools.api.evaluations import run as run
    from evaltools.api.files import inspect as inspect
    from evaltools.api.files import load as load
    from evaltools.api.gate_report import GateReport as GateReport
    from evaltools.api.gates import gate as gate
    from evaltools.api.locating import Located as Located
    from evaltools.api.locating import locate as locate
    from evaltools.api.models import Models as Models
    from evaltools.api.progress import Progress as Progress
    from evaltools.api.result import Result as Result
    from evaltools.api.suites import Suite as Suite
    from evaltools.api.suites import suite as suite
    from evaltools.capture.profile import Profile as Profile
    from evaltools.capture.profile import profile as profile
    from evaltools.errors import ConfigurationUnavailable as ConfigurationUnavailable
    from evaltools.errors import DataError as DataError
    from evaltools.errors import EvaltoolsError as EvaltoolsError
    from evaltools.errors import ImageError as ImageError
    from evaltools.errors import InferenceError as InferenceError
    from evaltools.errors import LimitNotKept as LimitNotKept
    from evaltools.errors import ModelError as ModelError
    from evaltools.errors import OutputError as OutputError
    from evaltools.errors import TaskError as TaskError
    from evaltools.errors import UsageError as UsageError
    from evaltools.metrics.metric import Metric as Metric
    from evaltools.result.small_pictures import Drawing as Drawing
    from evaltools.result.small_pictures import Panel as Panel
    from evaltools.tasks.own.definition import Example as Example
    from evaltools.tasks.own.definition import Mean as Mean
    from evaltools.tasks.own.definition import Task as Task
    from evaltools.tasks.own.definition import mean as mean
    from evaltools.tasks.own.definition import pooled as pooled
    from evaltools.tasks.own.definition import task as task
    from evaltools.tasks.own.pictures import image_input as image_input
    from evaltools.tasks.own.pictures import pairs as pairs

_MODULES = {
    "evaltools.api.benchmarks": ("Benchmark", "benchmark"),
    "evaltools.api.configurations": ("Configuration",),
    "evaltools.api.evaluations": ("coco", "diff", "imagenet", "run"),
    "evaltools.api.files": ("inspect", "load"),
    "evaltools.api.gate_report": ("GateReport",),
    "evaltools.api.gates": ("gate",),
    "evaltools.api.locating": ("Located", "locate"),
    "evaltools.api.models": ("Models",),
    "evaltools.api.progress": ("Progress",),
    "evaltools.api.result": ("Result",),
    "evaltools.api.suites": ("Suite", "suite"),
    "evaltools.capture.profile": ("Profile", "profile"),
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
    "evaltools.result.small_pictures": ("Drawing", "Panel"),
    "evaltools.tasks.own.definition": ("Example", "Mean", "Task", "mean", "pooled", "task"),
    "evaltools.tasks.own.pictures": ("image_input", "pairs"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_PLACES)


class _Package(ModuleType):
    """The package, in which ``benchmark``, ``locate`` and ``suite`` are functions, whatever packages were imported."""

    @property
    def benchmark(self) -> Any:
        return importlib.import_module(_PLACES["benchmark"]).benchmark

    @benchmark.setter
    def benchmark(self, _package: ModuleType) -> None: ...

    @property
    def locate(self) -> Any:
        return importlib.import_module(_PLACES["locate"]).locate

    @locate.setter
    def locate(self, _package: ModuleType) -> None: ...

    @property
    def suite(self) -> Any:
        return importlib.import_module(_PLACES["suite"]).suite

    @suite.setter
    def suite(self, _package: ModuleType) -> None: ...


sys.modules[__name__].__class__ = _Package


if not TYPE_CHECKING:  # so that type checkers find a name that is none

    def __getattr__(name: str) -> Any:
        """Import what is public from where it is."""
        if name not in _PLACES:
            raise AttributeError(f"module 'evaltools' has no attribute {name!r}")
        found = getattr(importlib.import_module(_PLACES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
