"""Whether a Python runtime can do what a configuration asks for."""

from __future__ import annotations

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable


def require_support(configuration: Configuration, runtime: str) -> None:
    """Raise :class:`ConfigurationUnavailable` for a delegate that the runtime cannot create, or a flag of one."""
    for delegate in configuration.delegates.requested:
        if runtime not in delegate.runtimes:
            message = (
                f"the {delegate.name} delegate cannot be created by the Python runtime {runtime}; "
                f"it runs in {delegate.works_in}"
            )
            raise ConfigurationUnavailable(message, delegate)
        for flag, reason in delegate.runtimes[runtime].items():
            if configuration.delegates.value(flag):
                message = f"--{flag} cannot be honoured by the Python runtime {runtime}: {reason}"
                raise ConfigurationUnavailable(message, delegate)
