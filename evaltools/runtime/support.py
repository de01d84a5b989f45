"""Whether a Python runtime can do what a configuration asks for."""

from __future__ import annotations

from evaltools.configuration import Configuration
from evaltools.delegates import PARAMETERS, Delegate
from evaltools.errors import ConfigurationUnavailable


def require_support(configuration: Configuration, runtime: str) -> None:
    """Raise :class:`ConfigurationUnavailable` for a delegate that the runtime cannot create, or a flag of one."""
    obstacle = obstacle_to(configuration, runtime)
    if obstacle is not None:
        raise obstacle


def obstacle_to(configuration: Configuration, runtime: str) -> ConfigurationUnavailable | None:
    """Why a runtime cannot do what a configuration asks of delegates, None where it can."""
    for delegate in configuration.delegates.requested:
        flags = _flags_not_honoured(configuration, delegate, runtime)
        if runtime in delegate.runtimes and not flags:
            continue
        other = _irreconcilable(configuration, delegate)
        if other is not None:
            message = (
                f"no Python runtime has both {_described(configuration, delegate)} and "
                f"{_described(configuration, other)}; drop one of the two"
            )
            return ConfigurationUnavailable(message, delegate.name, cannot_exist=True)
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


def _able(configuration: Configuration, delegate: Delegate) -> set[str]:
    """The runtimes that can do what is asked of a delegate."""
    return {runtime for runtime in delegate.runtimes if not _flags_not_honoured(configuration, delegate, runtime)}


def _irreconcilable(configuration: Configuration, delegate: Delegate) -> Delegate | None:
    """Another delegate that runs in Python, as this one does, but in no runtime that this one runs in."""
    able = _able(configuration, delegate)
    for other in configuration.delegates.requested:
        others = _able(configuration, other)
        if able and others and not able & others:
            return other
    return None


def _described(configuration: Configuration, delegate: Delegate) -> str:
    """A delegate with the flags that confine it to some of its runtimes, and these runtimes."""
    confining = {
        flag for runtime in delegate.runtimes for flag in _flags_not_honoured(configuration, delegate, runtime)
    }
    flags = "".join(f" with --{flag}" for flag in sorted(confining))
    return f"the {delegate.name} delegate{flags} ({', '.join(sorted(_able(configuration, delegate)))})"


def has_delegates(configuration: Configuration, runtime: str) -> bool:
    """Whether the runtime can create all of the delegates, whatever their flags."""
    return all(runtime in delegate.runtimes for delegate in configuration.delegates.requested)
