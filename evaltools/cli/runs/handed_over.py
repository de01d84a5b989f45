"""``python -m evaltools.cli.runs.handed_over FILE [WORD]...``: carries out a request that another process wrote.

The words are those of :mod:`evaltools.runs.handing_over`: end with stdin, end with the records.

Relative paths in it start at the working directory.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.cli.main import exit_code_of, set_up_process
from evaltools.errors import DataError
from evaltools.exit_codes import INTERRUPTED
from evaltools.file_content import content_of
from evaltools.runs.handing_over import RECORDS_ONLY, WITH_STDIN
from evaltools.signals import heed_interrupts, ignore_interrupts

if TYPE_CHECKING:
    from evaltools.request import Request

_SECONDS_TO_END: Final = 5.0
"""Half of what whoever started this process waits until it is killed."""


def main(arguments: Sequence[str]) -> int:
    """Carry out the request; returns the exit code."""
    file, *words = arguments
    heed_interrupts()
    try:
        return carry_out_file(Path(file), WITH_STDIN in words, RECORDS_ONLY in words)
    finally:
        ignore_interrupts()


def carry_out_file(file: Path, with_stdin: bool = False, records_only: bool = False) -> int:
    """Carry out the request in a file; see :func:`carry_out`. Messages go to stderr."""
    set_up_process()
    return exit_code_of(
        lambda: carry_out(replace(read_request(file), folder=Path.cwd()), with_stdin, records_only),
        "interrupted before there was a result",
    )


def _end_with_stdin() -> None:
    """Whoever started this process holds the other end, which closes with it, also where it was killed.

    The process then ends as by a signal, so that it takes away what it made; native code may keep it from that.
    """
    while os.read(0, 1):
        pass
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(_SECONDS_TO_END)
    os._exit(INTERRUPTED)


def carry_out(request: Request, with_stdin: bool = False, records_only: bool = False) -> int:
    """Carry out a request of any kind, here, on devices or on a cluster; returns the exit code.

    ``with_stdin``: this process ends when its stdin does. ``records_only``: of an evaluation only the records count,
    which another process makes the figures of.
    """
    from evaltools.benchmark.command import COMMAND as BENCHMARK
    from evaltools.locate.command import COMMAND as LOCATE
    from evaltools.suite.command import COMMAND as SUITE

    if request.devices is None and request.task not in (BENCHMARK.name, SUITE.name):
        from evaltools.runtime.process.server import start_server

        start_server()
    if with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    if request.devices is not None:
        from evaltools.cli.device_run import carry_out_on_devices

        return carry_out_on_devices(request)
    if request.task == BENCHMARK.name:
        from evaltools.cli.benchmark import benchmark

        return benchmark(request)
    if request.task == SUITE.name:
        from evaltools.cli.suite.run import suite

        return suite(request)
    if request.task == LOCATE.name:
        from evaltools.cli.locate import locate_and_print

        return locate_and_print(request)
    if records_only:
        from evaltools.cli.evaluated import record_only

        return record_only(request)
    from evaltools.cli.evaluated import evaluate_and_print

    return evaluate_and_print(request).exit_code


def read_request(file: Path) -> Request:
    """The request in a file that another process wrote; raises :class:`DataError` where it holds none."""
    from evaltools.device.flags import BY_NAME
    from evaltools.documents import json_values
    from evaltools.request.plain import from_plain

    try:
        plain = json_values(content_of(file))
    except ValueError as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    return from_plain(plain, BY_NAME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
