"""Finds the runtime of a configuration."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence

from evaltools.configuration import AUTO, RUNTIMES, Configuration
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile
from evaltools.runtime.session import Runtime, Session
from evaltools.runtime.support import has_delegates, obstacle_to


def find_runtime(configuration: Configuration) -> Runtime:
    """The runtime of a configuration; ``auto`` is the first that is installed and can do what its delegates ask for.

    Where none can, it is one that at least has the delegates, and says what it cannot do.
    """
    name = configuration.runtime
    if name == AUTO:
        installed = installed_runtimes()
        able = [runtime for runtime in installed if obstacle_to(configuration, runtime) is None]
        near = [runtime for runtime in installed if has_delegates(configuration, runtime)]
        name = _first([*able, *near, *installed])
    runtime: Runtime = importlib.import_module(f"evaltools.runtime.{name}").RUNTIME
    return runtime


def installed_runtimes() -> list[str]:
    """The runtimes whose package is there, best first; whether they work shows when they open a model."""
    return [name for name, package in RUNTIMES.items() if importlib.util.find_spec(package) is not None]


def one_runtime_per_package() -> list[str]:
    """The installed runtimes, without those whose package another one shares."""
    best: dict[str, str] = {}
    for name in installed_runtimes():
        best.setdefault(RUNTIMES[name], name)
    return list(best.values())


def _first(installed: Sequence[str]) -> str:
    if installed:
        return installed[0]
    message = (
        "no TensorFlow Lite runtime is installed; pip install ai-edge-litert (any Python), "
        "or pip install tflite-runtime (Linux, Python 3.11 or older)"
    )
    raise ConfigurationUnavailable(message)


def open_session(model: ModelFile, configuration: Configuration) -> Session:
    """Load the model with a configuration; raises :class:`ConfigurationUnavailable`."""
    return find_runtime(configuration).open(model, configuration)
