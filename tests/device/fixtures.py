"""Fixtures for tests on the real daemon; a ``conftest.py`` that imports them has them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from evaltools.adb.client import Adb, Link
from evaltools.adb.store import DEFAULT_ROOT
from evaltools.device.device import Device
from evaltools.device.flags import PARAMETERS, read_device_flags
from evaltools.request.flags import parse_flags
from evaltools.result.device import DeviceFacts
from tests.device.fault_proxy import FaultProxy
from tests.device.real_device import FIRST_PORT, Facts, Network, NoNetwork, RealDevice
from tests.expected import leave_out

SECOND = Facts(model="Second model", sdk=29, temperature=415, thermal_status=2)
Devices = tuple[RealDevice, RealDevice]
PATIENCE_S: Final = 30.0
_FAKE_ADB: Final = """#!/bin/sh
case "$*" in
*devices*) printf 'List of devices attached\\nR58M\\tSTATE\\n' ;;
*start-server*) ;;
*shell*)
  [ "STATE" = device ] || exit 1
  for command; do :; done
  sh -c "$command" 2>&1
  exit 0 ;;
*) exit 1 ;;
esac
"""
_PROBED: Final = range(5554, 5586)
"""Ports at which every adb server looks for emulators."""


def device_at(
    client: Adb,
    serial: str,
    root: str = DEFAULT_ROOT,
    stop: threading.Event | None = None,
    patience_s: float = 30.0,
    report: Callable[[str], None] = lambda _line: None,
) -> Device:
    """A device of ``evaltools device run`` of which nothing is known."""
    words = (f"--device_folder={root}", f"--device_patience={patience_s}")
    flags = read_device_flags(parse_flags("device run imagenet", "", "", {"devices": PARAMETERS}, words).options())
    return Device(client, DeviceFacts(serial), flags, stop or threading.Event(), report)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    try:
        opened = Network(tmp_path_factory.mktemp("network")).__enter__()
    except NoNetwork as reason:
        leave_out("ADBD", reason)
    yield opened
    opened.__exit__(None, None, None)


@pytest.fixture(scope="module")
def devices(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devices]:
    """Two devices, which adb's default server of the network knows."""
    folder = tmp_path_factory.mktemp("devices")
    with (
        RealDevice(network, folder / "first") as first,
        RealDevice(network, folder / "second", FIRST_PORT + 1, SECOND) as second,
    ):
        for device in (first, second):
            network.connect(device)
        yield first, second


@pytest.fixture(scope="module")
def client(network: Network) -> Adb:
    """adb with the default server of the network."""
    return Adb(str(network.adb))


@pytest.fixture
def own_client(network: Network, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adb]:
    """adb with a server on a port of its own."""
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(free_port()))
    own = Adb(str(network.adb))
    yield own
    own.run(["kill-server"], 10.0)


@pytest.fixture
def proxy(network: Network, devices: Devices) -> Iterator[FaultProxy]:
    """A link to the first device that breaks on demand; adb knows the device through it, too."""
    with FaultProxy(network, devices[0]) as proxy:
        network.connect(proxy)
        yield proxy
    network.run_adb("disconnect", proxy.serial)


@pytest.fixture
def first(client: Adb, devices: Devices) -> Link:
    """The way to the first device."""
    return Link(client, devices[0].serial)


@pytest.fixture
def breaking(client: Adb, proxy: FaultProxy) -> Link:
    """The way to the first device through the proxy; what breaks is waited for."""
    return Link(client, proxy.serial, PATIENCE_S)


def free_port() -> int:
    """A free TCP port of this machine, outside those at which adb servers look for emulators."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = int(listening.getsockname()[1])
        if port not in _PROBED:
            return port


def write_fake_adb(folder: Path, state: str) -> str:
    """Write a program that answers as adb where the device R58M is in a state that no daemon can be brought into.

    Its shell is one without exit codes, as before Android 7: stderr comes on stdout.
    """
    program = folder / "fake_adb"
    program.write_text(_FAKE_ADB.replace("STATE", state))
    program.chmod(0o755)
    return str(program)
