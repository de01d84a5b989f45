"""What a person is told about the devices that adb sees."""

from __future__ import annotations

import io
import re

from evaltools.cli.shared.terminal import make_console
from evaltools.report.tables.device import print_devices
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceList, ListedDevice

PHONE = DeviceFacts(
    "R58M", "device", model="Pixel 7", manufacturer="Google", soc="Tensor", sdk=34, android="14", abi="arm64-v8a",
    cpus=8, battery_level=87, battery_temperature=283, thermal_status=0, temperatures={"SKIN": 26.5},
)  # fmt: skip


def row(facts: DeviceFacts) -> dict[str, str]:
    """The cells by heading; columns are two blanks or more apart."""
    text = io.StringIO()
    console = make_console(text)
    console.width = 200
    finding = DeviceFinding(ListedDevice(facts.serial, "device"), facts)
    print_devices(DeviceList("1", "adb", (finding,)), console)
    headings, cells = (re.split(r" {2,}", line.strip()) for line in text.getvalue().splitlines())
    return dict(zip(headings, cells, strict=True))


def test_a_phone_that_is_not_throttled_says_so_and_how_warm_it_is() -> None:
    """The highest temperature is that which --cool_down waits for, the battery's among them."""
    shown = row(PHONE)
    assert (shown["battery"], shown["hottest"], shown["throttling"]) == ("87% 28.3 C", "28.3 C", "none")


def test_a_device_without_sensors_is_told_from_one_that_is_cool() -> None:
    shown = row(DeviceFacts("10.0.0.9:5555", "device", model="board"))
    assert (shown["battery"], shown["hottest"], shown["throttling"]) == ("-", "-", "-")
