"""An adb server of a test's own, so that the machine's server and it do not matter to each other."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from evaltools.device.adb.errors import AdbMissing, ServerFailed
from evaltools.device.adb.process import end_group, run_adb

_PROBED: Final = range(5554, 5586)
"""Ports at which every adb server looks for emulators."""
_START_S: Final = 10.0
_END_S: Final = 10.0
_LOOK_S: Final = 0.05


def free_port() -> int:
    """A free TCP port of this machine, outside those at which adb servers look for emulators."""
    with _kept_port() as port:
        return port


@contextmanager
def _kept_port() -> Iterator[int]:
    """A free port that nobody else is given before the end of the block.

    One who asks for it by its number can listen there, as adb's server does, which shares addresses, too.
    """
    while True:
        with socket.socket() as keeper:
            keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            keeper.bind(("127.0.0.1", 0))
            port = int(keeper.getsockname()[1])
            if port not in _PROBED:
                yield port
                return


@contextmanager
def own_server(adb_path: str, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a server on a free port and give the port; it ends with the block. Raises :class:`ServerFailed`.

    Where it is ended in between, the next command of an :class:`Adb` starts another there, which ends with the block,
    too.
    """
    with _kept_port() as port:
        yield from _serve(adb_path, port, environment)


def _serve(adb_path: str, port: int, environment: Mapping[str, str] | None) -> Iterator[int]:
    try:
        process = subprocess.Popen(
            [adb_path, "-P", str(port), "nodaemon", "server"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**(os.environ if environment is None else environment)},
            start_new_session=True,
        )
    except OSError as error:
        raise AdbMissing(f"{adb_path} cannot be run: {error.strerror}; give --adb=PATH") from error
    try:
        _wait_for(process, port)
        yield port
    finally:
        is_first = process.poll() is None
        end_group(process)
        if not is_first:
            run_adb([adb_path, "-P", str(port), "kill-server"], _END_S, environment)


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    limit = time.monotonic() + _START_S
    while time.monotonic() < limit and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(_LOOK_S)
        else:
            return
    ending = "does not listen" if process.poll() is None else f"ended with code {process.returncode}"
    raise ServerFailed(f"an adb server of its own on port {port} {ending}; try adb -P {port} nodaemon server by hand")
