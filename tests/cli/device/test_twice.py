"""A device that adb knows by two serials is one device."""

from __future__ import annotations

import io

import pytest

from evaltools.cli.device.run_flags import PARAMETERS, read_device_flags
from evaltools.cli.shared.flags import parse_flags
from evaltools.cli.shared.terminal import make_console
from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import DeviceError
from evaltools.device.adb.facts import device_facts
from evaltools.device.run.devices import DevicesUsed
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import Network


def used(*words: str) -> tuple[DevicesUsed, str]:
    text = io.StringIO()
    own = read_device_flags(parse_flags("device run imagenet", "", "", {"devices": PARAMETERS}, words).options())
    return DevicesUsed(own, make_console(text)), text.getvalue()


def test_of_two_serials_of_one_device_one_is_left_out(network: Network, devices: Devices, proxy: FaultProxy) -> None:
    found, printed = used(f"--adb={network.adb}", "--serials=all")
    (left_out,) = found.left_out
    first = {devices[0].serial, proxy.serial}
    assert set(found.serials) == {*first, devices[1].serial} - {left_out.serial}
    assert left_out.serial in first
    (other,) = first - {left_out.serial}
    assert f"left out: {left_out.serial} is the same device as {other}, connected twice, and would disturb" in printed


def test_two_serials_of_one_device_that_are_named_are_refused(
    network: Network, devices: Devices, proxy: FaultProxy
) -> None:
    first = devices[0].serial
    with pytest.raises(
        DeviceError, match=f"^{proxy.serial} is the same device as {first}, connected twice, .* name one"
    ):
        used(f"--adb={network.adb}", f"--serials={first},{proxy.serial}")
    assert used(f"--adb={network.adb}", f"--serials={proxy.serial}")[0].serials == (proxy.serial,)


def test_two_devices_on_one_kernel_are_two(devices: Devices, client: Adb) -> None:
    first, second = (device_facts(client, device.serial).identity for device in devices)
    assert first.split()[0] == second.split()[0]
    assert first != second
