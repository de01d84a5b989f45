"""A Ray cluster: one that is joined, or one that is started on this machine."""

from __future__ import annotations

import importlib
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from evaltools.errors import UsageError

RETRIES: Final = 5
"""How often a task is started again elsewhere when its node or process is lost."""
_SECONDS_TO_CONNECT: Final = 5.0


def ray_module() -> Any:
    """Ray; raises :class:`UsageError` where it is not installed."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("--executor=ray needs Ray: pip install 'evaltools[ray]'") from error


@contextmanager
def joined(ray: Any, address: str) -> Iterator[None]:
    """A context in which the cluster at an address can be used; without an address, Ray is started on this machine.

    Raises :class:`UsageError` where that cannot be.
    """
    _require_listening(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(address=address or "local", log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = (
            f"--ray_address={address}: no Ray cluster can be joined there" if address else "Ray cannot be started here"
        )
        raise UsageError(f"{where}: {error}") from error
    finally:
        _restore(handlers)
    try:
        yield
    finally:
        ray.shutdown()


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    """Ray takes signals for itself, so that one that is to end the run would dump it."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


def given_back(ray: Any, finished: Any, what: str) -> Any:
    """What a finished task gave; raises :class:`UsageError`, which says of ``what``, where it failed or was lost."""
    try:
        return ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        raise UsageError(
            f"{what} failed on its node: {error.cause}. evaltools and the files must be there under the same paths"
        ) from error
    except ray.exceptions.RayError as error:
        raise UsageError(f"{what} was lost {RETRIES + 1} times: {error}") from error


def _require_listening(address: str) -> None:
    """Raise :class:`UsageError` where nobody listens at an address, for which Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise UsageError(f"--ray_address={address}: nobody answers there: {error.strerror or error}") from error
