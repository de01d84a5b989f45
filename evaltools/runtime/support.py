"""Whether a Python runtime can do what a configuration asks for."""

from __future__ import annotations

from evaltools.configuration import Configuration
from evaltools.delegates import PARAMETERS
from evaltools.errors import ConfigurationUnavailable


def require_support(configuration: Configuration, runtime: str) -> None:
    """Raise :class:`ConfigurationUnavailable` for a delegate that the runtime cannot create, or a flag of one."""
    obstacle = obstacle_to(configuration, runtime)
    if obstacle is not None:
        raise obstacle


def obstacle_to(configuration: Configuration, runtime: str) -> ConfigurationUnavailable | None:
    """Why a runtime cannot do what a configuration asks of delegates, None where it can."""
    for delegate in configuration.delegates.requested:
        if runtime not in delegate.runtimes:
            message = (
                f"the {delegate.name} delegate cannot be created by the Python runtime {runtime}; "
                f"it runs in {delegate.works_in}"
            )
            return ConfigurationUnavailable(message, delegate)
        for flag, reason in delegate.runtimes[runtime].items():
            if configuration.delegates.value(flag) != PARAMETERS[flag].default:
                message = f"--{flag} cannot be honoured by the Python runtime {runtime}: {reason}"
                return ConfigurationUnavailable(message, delegate)
    return None


def has_delegates(configuration: Configuration, runtime: str) -> bool:
    """Whether the runtime can create all of the delegates, whatever their flags."""
    return all(runtime in delegate.runtimes for delegate in configuration.delegates.requested)
