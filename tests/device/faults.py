"""What happens to links and devices, each as something that a test lets happen in the middle of something else."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from evaltools.adb.client import Adb
from tests.device.fault_proxy import FaultProxy

Fault = Callable[[FaultProxy, Adb], None]
_AWAY_S: Final = 0.7


def cut(proxy: FaultProxy, client: Adb) -> None:
    """The cable is pulled and plugged at once."""
    proxy.cut()


def away(proxy: FaultProxy, client: Adb) -> None:
    """The cable is pulled for a while."""
    proxy.go_away()
    time.sleep(_AWAY_S)
    proxy.go_on()


def stalled(proxy: FaultProxy, client: Adb) -> None:
    """The network takes everything and brings nothing for a while."""
    proxy.stall()
    time.sleep(_AWAY_S)
    proxy.go_on()


def restarted_daemon(proxy: FaultProxy, client: Adb) -> None:
    """The daemon dies, and is there again after a while, as after ``adb root``."""
    proxy.device.kill_daemon()
    proxy.release()  # else nobody hears of the end behind what is held
    time.sleep(_AWAY_S)
    proxy.device.start_daemon()


def ended_server(proxy: FaultProxy, client: Adb) -> None:
    """Somebody runs ``adb kill-server``."""
    client.run(["kill-server"], 10.0)


FAULTS: Final[tuple[Fault, ...]] = (cut, away, stalled, restarted_daemon, ended_server)
