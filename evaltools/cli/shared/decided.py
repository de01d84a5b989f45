"""What is done in threads while a command starts: modules are imported, what works on this machine is found out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from evaltools.request import Request
from evaltools.request.flags import GivenFlags

if TYPE_CHECKING:
    from evaltools.runtime.process.ahead import OpenedAhead

_NEEDED_LATER: Final = ("psutil", "scipy.special")
"""By the pass, and by figures."""
_SECONDS_TO_FINISH: Final = 5.0


class Decided(NamedTuple):
    """A request whose tests are decided, and a line about what cannot run here, empty where nothing is to be said."""

    request: Request
    missing: str = ""


@contextmanager
def decided_beside(
    flags: GivenFlags, request: Request, ahead: OpenedAhead | None = None
) -> Iterator[Callable[[], Decided]]:
    """What returns the request as it is, or where the flags leave its tests open, with those that work here.

    That is found out beside what is done in the context, which imports for as long. Ctrl-C there waits a moment for it.
    The sessions that show it are kept ``ahead``.
    """
    found: Future[Decided] = Future()

    def decide() -> None:
        try:
            from evaltools.candidates import with_tests_here

            with_tests, missing = with_tests_here(request, ahead)
            found.set_result(Decided(with_tests, "" if request.options.is_on("quiet") else missing))
        except BaseException as error:
            found.set_exception(error)

    if not flags.leave_tests_open:
        yield lambda: Decided(request)
        return
    thread = Thread(target=decide, daemon=True)
    thread.start()
    try:
        yield found.result
    finally:
        thread.join(_SECONDS_TO_FINISH)  # who leaves beside its children ends them twice


def import_beside() -> None:
    """Begin to import what is needed later in a thread; the main one is about to wait for children for as long.

    Where that fails, the function that needs the module says why.
    """

    def import_them() -> None:
        for module in _NEEDED_LATER:
            with suppress(Exception):
                importlib.import_module(module)

    with suppress(RuntimeError):  # the system allows no more threads
        Thread(target=import_them, daemon=True).start()
