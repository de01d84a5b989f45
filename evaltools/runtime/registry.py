"""Chooses the runtime of a configuration: one that is installed and can do what the configuration asks for."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence

from evaltools.configuration import AUTO, NATIVE, OUR_RUNTIMES, RUNTIMES, Configuration
from evaltools.delegates import EMULATED, PARAMETERS, Delegate
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.extensions import RUNTIMES as GROUP
from evaltools.extensions import entries, load
from evaltools.model import ModelFile
from evaltools.runtime.memory import most_memory
from evaltools.runtime.session import Runtime, Session

Open = Callable[[ModelFile, Configuration], Session]
"""What opens the session of a model in a configuration."""


def runtime_name(configuration: Configuration) -> str:
    """The runtime of a configuration; ``auto`` is the first that is installed and can do what its delegates ask for.

    Where none can, it is one that at least has the delegates, and says what it cannot do.
    """
    if configuration.native_binary:
        return NATIVE
    if configuration.runtime != AUTO:
        return configuration.runtime
    installed = installed_runtimes()
    able = [runtime for runtime in installed if obstacle_to(configuration, runtime) is None]
    near = [runtime for runtime in installed if has_delegates(configuration, runtime)]
    return _first([*able, *near, *installed])


def installed_version(name: str) -> str:
    """The version of the package that a runtime is from, empty where there is none; nothing is loaded."""
    if name == NATIVE:
        return ""
    if name not in OUR_RUNTIMES:
        return next((entry.dist.version for entry in entries(GROUP) if entry.name == name and entry.dist), "")
    try:
        return importlib.metadata.version(OUR_RUNTIMES[name])
    except importlib.metadata.PackageNotFoundError:
        return ""


def find_runtime(configuration: Configuration) -> Runtime:
    """The runtime of that name; raises :class:`ConfigurationUnavailable` for one of others that cannot be loaded."""
    name = runtime_name(configuration)
    if name in (*OUR_RUNTIMES, NATIVE):
        runtime: Runtime = importlib.import_module(f"evaltools.runtime.{name}").RUNTIME
        return runtime
    try:
        return load(next(entry for entry in entries(GROUP) if entry.name == name), Runtime)  # type: ignore[type-abstract]
    except UsageError as error:
        raise ConfigurationUnavailable(str(error)) from error


def installed_runtimes() -> list[str]:
    """The runtimes whose package is there, best first; whether they work shows when they open a model."""
    ours = [name for name, package in OUR_RUNTIMES.items() if importlib.util.find_spec(package) is not None]
    return [*ours, *(name for name in RUNTIMES if name not in OUR_RUNTIMES)]


def one_runtime_per_package() -> list[str]:
    """The installed runtimes of CPUs that evaltools knows, without those whose package another one shares."""
    best: dict[str, str] = {}
    for name in installed_runtimes():
        if name in OUR_RUNTIMES and name != EMULATED:
            best.setdefault(OUR_RUNTIMES[name], name)
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
    """Load the model with a configuration; raises :class:`ConfigurationUnavailable`.

    A version of a runtime is only in a process that was started with it (``evaltools/runtime/process/isolated.py``).
    """
    wanted = configuration.runtime_version
    if wanted and wanted != (here := installed_version(runtime_name(configuration))):
        raise ConfigurationUnavailable(
            f"{configuration.runtime} {wanted} was asked for, and this process has {here or 'none'}; give the version "
            "as its package states it, in full"
        )
    require_memory(model)
    return find_runtime(configuration).open(model, configuration)


def require_memory(model: ModelFile) -> None:
    """Raise :class:`ConfigurationUnavailable` for a model with a tensor that is larger than a process may become.

    Some hundred bytes of a file can state one of any size, and a runtime that tries takes the machine with it.
    """
    most = most_memory()
    if model.largest_bytes > most > 0:
        raise ConfigurationUnavailable(
            f"one of the model's tensors takes {model.largest_bytes / 1e9:.3g} GB, and a process may have "
            f"{most / 1e9:.3g} GB of this machine's memory; state a smaller --input_shape, or convert the model with "
            "smaller ones"
        )


def require_support(configuration: Configuration, runtime: str) -> None:
    """Raise :class:`ConfigurationUnavailable` for a delegate that the runtime cannot create, or a flag of one."""
    obstacle = obstacle_to(configuration, runtime)
    if obstacle is not None:
        raise obstacle


def obstacle_to(configuration: Configuration, runtime: str) -> ConfigurationUnavailable | None:
    """Why a runtime cannot do what a configuration asks of delegates, None where it can."""
    requested = configuration.delegates.requested
    able = [
        {name for name in delegate.runtimes if not _flags_not_honoured(configuration, delegate, name)}
        for delegate in requested
    ]
    if all(able) and not set[str].intersection(*able or [{runtime}]):
        found = (
            f"{delegate.name} ({', '.join(sorted(names))})" for delegate, names in zip(requested, able, strict=True)
        )
        message = f"no Python runtime has all delegates as they are asked for: {', '.join(found)}; drop one of them"
        return ConfigurationUnavailable(message, requested[0].name, cannot_exist=True)
    for delegate in requested:
        flags = _flags_not_honoured(configuration, delegate, runtime)
        if runtime in delegate.runtimes and not flags:
            continue
        if runtime not in delegate.runtimes:
            message = (
                f"the {delegate.name} delegate cannot be created by the Python runtime {runtime}; "
                f"it runs in {delegate.works_in}"
            )
            return ConfigurationUnavailable(message, delegate.name, cannot_exist=True)
        message = (
            f"--{flags[0]} cannot be honoured by the Python runtime {runtime}: {delegate.runtimes[runtime][flags[0]]}"
        )
        return ConfigurationUnavailable(message, delegate.name)
    return None


def _flags_not_honoured(configuration: Configuration, delegate: Delegate, runtime: str) -> list[str]:
    """The flags of a delegate that a runtime cannot honour and that ask for something else than their default."""
    return [
        flag
        for flag in delegate.runtimes.get(runtime, {})
        if configuration.delegates.value(flag) != PARAMETERS[flag].default
    ]


def has_delegates(configuration: Configuration, runtime: str) -> bool:
    """Whether the runtime can create all of the delegates, whatever their flags."""
    return all(runtime in delegate.runtimes for delegate in configuration.delegates.requested)
