"""The actions of ``evaltools device``; what ``list`` says can be used, and what to do for the others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from evaltools.cli.device import run
from evaltools.result.device import DeviceList
from tests.device.fixtures import SECOND, Devices, write_fake_adb
from tests.device.real_device import Network


def test_devices_are_listed_with_their_facts(
    network: Network, devices: Devices, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "found.json"
    assert run(["list", f"--adb={network.adb}", f"--output_file_path={output}"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    row = next(line for line in out.splitlines() if line.startswith(f"{devices[1].serial} "))
    for cell in ("device", SECOND.model, f"(SDK {SECOND.sdk})", "93% 41.5 C", "moderate", "GiB"):
        assert cell in row
    listed = msgspec.json.decode(output.read_bytes(), type=DeviceList)
    assert listed.adb == str(network.adb)
    found = {entry.serial: entry.facts for entry in listed.devices}
    assert sorted(found) == sorted(device.serial for device in devices)
    facts = found[devices[1].serial]
    assert facts is not None
    assert (facts.model, facts.sdk) == (SECOND.model, SECOND.sdk)
    conditions = facts.conditions
    assert (conditions.battery_temperature, conditions.thermal_status) == (SECOND.temperature, SECOND.thermal_status)
    assert conditions.temperatures == {"battery": 41.5}
    assert (facts.free_bytes or 0) > 0
    assert run(["list", f"--adb={network.adb}", f"--serials={devices[0].serial},R58M"]) == 0
    only = capsys.readouterr().out
    assert devices[1].serial not in only
    assert "R58M" in only


def test_without_a_usable_device_the_code_is_3_and_the_next_step_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "found.json"
    assert run(["list", f"--adb={write_fake_adb(tmp_path, 'unauthorized')}", f"--output_file_path={output}"]) == 3
    out, err = capsys.readouterr()
    assert "R58M is unauthorized; unlock the device and accept" in out
    assert "no device can be used; stdout says what to do for each" in err
    (found,) = msgspec.json.decode(output.read_bytes(), type=DeviceList).devices
    assert (found.facts, found.state) == (None, "unauthorized")
    assert "Allow USB debugging" in found.problem
