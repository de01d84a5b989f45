"""Commands that do not say what to test: what works on this machine is found out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import NamedTuple

from evaltools.request import Request
from evaltools.request.flags import GivenFlags


class Decided(NamedTuple):
    """A request whose tests are decided, and a line about what cannot run here, empty where nothing is to be said."""

    request: Request
    missing: str = ""


def decided_beside(flags: GivenFlags, request: Request) -> Callable[[], Decided]:
    """What returns the request as it is, or where the flags leave its tests open, with those that work here.

    That is found out beside what the caller does meanwhile, which imports for as long.
    """
    if not flags.leave_tests_open:
        return lambda: Decided(request)
    found: Future[Decided] = Future()

    def decide() -> None:
        try:
            from evaltools.candidates import with_tests_here

            with_tests, missing = with_tests_here(request)
            found.set_result(Decided(with_tests, "" if request.options.is_on("quiet") else missing))
        except BaseException as error:
            found.set_exception(error)

    Thread(target=decide, daemon=True).start()  # Ctrl-C does not wait for it
    return found.result
