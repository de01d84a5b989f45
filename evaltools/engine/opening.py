"""Opens the session of a configuration, and judges whether its delegates really run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.errors import ConfigurationUnavailable, DelegateTookNothing
from evaltools.model import ModelFile
from evaltools.runtime import Delegation, Session

Open = Callable[[ModelFile, Configuration], Session]


@dataclass(frozen=True)
class Opened:
    """A configuration that can be measured. ``fallback`` says why it runs on the CPU although it asked for more."""

    configuration: Configuration
    session: Session
    fallback: str | None = None


@dataclass(frozen=True)
class NotMeasured:
    """A configuration that cannot be measured here, and why."""

    configuration: Configuration
    reason: str


def open_configuration(
    model: ModelFile, configuration: Configuration, open_session: Open, allow_fallback: bool
) -> Opened | NotMeasured:
    """Open a session and demand that every requested delegate took at least one node.

    With ``allow_fallback`` a delegate that cannot be created, or took nothing, is forgiven, as the native tools do; the
    result says so.
    """
    try:
        session = open_session(model, configuration)
    except ConfigurationUnavailable as error:
        if not allow_fallback or not configuration.delegates.requested:
            return NotMeasured(configuration, str(error))
        return _open_without_delegates(model, configuration, open_session, str(error))
    try:
        require_delegates_ran(session.delegation)
    except DelegateTookNothing as error:
        if allow_fallback:
            return Opened(configuration, session, str(error))
        session.close()
        hint = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"
        return NotMeasured(configuration, f"{error}; {hint}")
    return Opened(configuration, session)


def require_delegates_ran(delegation: Delegation) -> None:
    """Raise :class:`DelegateTookNothing` where a requested delegate has no node."""
    for delegate in delegation.delegates:
        if delegate.requested and delegate.nodes == 0:
            left = ", ".join(f"{name} x{count}" for name, count in list(delegation.cpu_operators.items())[:5])
            message = (
                f"the {delegate.delegate} delegate was applied but took none of the {delegation.total_nodes} nodes "
                f"({left})"
            )
            raise DelegateTookNothing(message)


def close_all(opened: Iterable[Opened]) -> None:
    """Release the sessions."""
    for entry in opened:
        entry.session.close()


def _open_without_delegates(
    model: ModelFile, configuration: Configuration, open_session: Open, reason: str
) -> Opened | NotMeasured:
    try:
        session = open_session(model, replace(configuration, delegates=DelegateSettings()))
    except ConfigurationUnavailable as error:
        return NotMeasured(configuration, str(error))
    return Opened(configuration, session, reason)
