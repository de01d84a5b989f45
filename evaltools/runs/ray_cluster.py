"""A Ray cluster: one that is joined, or one that is started on this machine."""

from __future__ import annotations

import importlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from evaltools.errors import UsageError
from evaltools.request import Options

Key = TypeVar("Key")
RETRIES: Final = 5
"""How often a task is started again elsewhere when its node or process is lost."""
_SECONDS_TO_CONNECT: Final = 5.0


def ray_module() -> Any:
    """Ray; raises :class:`UsageError` where it is not installed."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("--executor=ray needs Ray: pip install 'evaltools[ray]'") from error


def tasks_asked_for(options: Options) -> int:
    """How many tasks there are to be, 0: one per CPU; raises :class:`UsageError` for a negative number."""
    tasks = options.number("ray_tasks")
    if tasks < 0:
        raise UsageError(f"--ray_tasks={tasks}: use a number of tasks, or 0 for one per CPU")
    return tasks


def cpus_of(ray: Any) -> int:
    """The number of CPUs of the cluster, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def joined(ray: Any, address: str) -> Iterator[None]:
    """A context in which the cluster at an address can be used; without an address, Ray is started on this machine.

    Raises :class:`UsageError` where that cannot be.
    """
    _require_listening(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(address=address or "local", log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except Exception as error:  # Ray raises no narrower one where a node does not start in time
        ray.shutdown()
        raise UsageError(_cannot_be_used(address, error)) from error
    finally:
        _restore(handlers)
    try:
        yield
    finally:
        ray.shutdown()


def _cannot_be_used(address: str, error: Exception) -> str:
    said = str(error).strip().removesuffix(".")
    if address:
        return f"--ray_address={address}: no Ray cluster can be joined there: {said}; ray status says what runs there"
    return (
        f"Ray cannot be started here: {said}; try again when this machine has less to do, give --ray_address=HOST:PORT "
        "of a cluster that runs, or leave --executor=ray out"
    )


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    """Ray takes signals for itself, so that one that is to end the run would dump it."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


def results_in_turn(ray: Any, tasks: Mapping[Any, Key], what: Callable[[Key], str]) -> Iterator[tuple[Key, Any]]:
    """What each task gave, with what stands for it, as soon as it has ended; ``what`` names a task in messages.

    Raises :class:`UsageError` where one failed or was lost.
    """
    waiting = dict(tasks)
    while waiting:
        (finished,), _ = ray.wait(list(waiting), num_returns=1)
        key = waiting.pop(finished)
        yield key, _given_back(ray, finished, what(key))


def _given_back(ray: Any, finished: Any, what: str) -> Any:
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
