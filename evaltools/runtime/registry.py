"""Finds the runtime of a configuration."""

from __future__ import annotations

import importlib
import importlib.util

from evaltools.configuration import AUTO, RUNTIMES, Configuration
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile
from evaltools.runtime.session import Runtime, Session


def find_runtime(name: str) -> Runtime:
    """The runtime of that name; ``auto`` is the first one that is installed."""
    if name == AUTO:
        name = _first_installed()
    runtime: Runtime = importlib.import_module(f"evaltools.runtime.{name}").RUNTIME
    return runtime


def installed_runtimes() -> list[str]:
    """The runtimes whose package is there, best first; whether they work shows when they open a model."""
    return [name for name, package in RUNTIMES.items() if importlib.util.find_spec(package) is not None]


def _first_installed() -> str:
    for name in installed_runtimes():
        return name
    message = (
        "no TensorFlow Lite runtime is installed; pip install 'evaltools[litert]' (any Python), "
        "or pip install tflite-runtime (Linux, Python 3.11 or older)"
    )
    raise ConfigurationUnavailable(message)


def open_session(model: ModelFile, configuration: Configuration) -> Session:
    """Load the model with a configuration; raises :class:`ConfigurationUnavailable`."""
    return find_runtime(configuration.runtime).open(model, configuration)
