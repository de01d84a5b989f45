"""Opens the sessions of configurations. A configuration whose delegates did not run is not measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, DelegateTookNothing
from evaltools.model import ModelFile
from evaltools.runtime import Open, Session
from evaltools.runtime.did_not_run import require_delegates_ran
from evaltools.runtime.session import Crashes


class Opened(Struct, frozen=True):
    """A configuration that can be measured with a model.

    ``running`` is what the session was opened with: the configuration itself, or with ``fallback``, which says why, the
    same without delegates that cannot be created. ``crashes`` are those of processes that were to run these.
    """

    model: ModelFile
    configuration: Configuration
    session: Session
    running: Configuration
    fallback: str | None = None
    crashes: Crashes = Crashes()


class NotMeasured(Struct, frozen=True):
    """A configuration that cannot be measured here, and why.

    ``cannot_exist`` as in :class:`ConfigurationUnavailable`. ``crashes`` are those of processes that were to run it.
    """

    configuration: Configuration
    reason: str
    cannot_exist: bool = False
    crashes: Crashes = Crashes()


@contextmanager
def open_all(
    wanted: Iterable[tuple[ModelFile, Configuration]], open_session: Open, allow_fallback: bool
) -> Iterator[dict[str, Opened | NotMeasured]]:
    """A context that opens every configuration with its model, by name; all sessions are closed at its end."""
    with ExitStack() as stack:
        entries = {}
        for model, configuration in wanted:
            entry = open_configuration(model, configuration, open_session, allow_fallback)
            if isinstance(entry, Opened):
                stack.callback(entry.session.close)
            entries[configuration.name] = entry
        yield entries


def open_configuration(
    model: ModelFile, configuration: Configuration, open_session: Open, allow_fallback: bool
) -> Opened | NotMeasured:
    """Open a session and demand that every requested delegate took at least one node.

    With ``allow_fallback`` a delegate that cannot be created is left out, and one that took nothing is forgiven, as the
    native tools do; the result says so. The other delegates and flags stay as they are.
    """
    left_out: list[str] = []
    crashes = Crashes()
    running = configuration
    while True:
        try:
            session = open_session(model, running)
            break
        except ConfigurationUnavailable as error:
            if error.crashed:
                crashes += Crashes(1, str(error))
            refused = next((each for each in running.delegates.requested if each.name == error.delegate), None)
            if not allow_fallback or refused is None:
                return NotMeasured(configuration, str(error), error.cannot_exist, crashes)
            running = running.without(refused)
            left_out.append(str(error))
    try:
        require_delegates_ran(session.delegation)
    except DelegateTookNothing as error:
        if not allow_fallback:
            session.close()
            hint = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"
            return NotMeasured(configuration, f"{error}; {hint}", crashes=crashes)
        left_out.append(str(error))
    return Opened(model, configuration, session, running, "; ".join(left_out) or None, crashes)
