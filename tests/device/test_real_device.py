"""The real daemon and the real client: what tests of devices may build on."""

from __future__ import annotations

import json
from pathlib import Path

from evaltools.device.adb import detached
from evaltools.device.adb.adb import Adb
from tests.command import evaltools
from tests.device.fixtures import SECOND, Devices
from tests.device.real_device import Network


def test_evaltools_lists_both_with_their_facts(network: Network, devices: Devices, tmp_path: Path) -> None:
    output = tmp_path / "devices.json"
    done = evaltools("device", "list", f"--adb={network.adb}", f"--output_file_path={output}")
    assert done.code == 0, done.err
    found = {entry["device"]["serial"]: entry["facts"] for entry in json.loads(output.read_text())["devices"]}
    assert sorted(found) == sorted(device.serial for device in devices)
    second = found[devices[1].serial]
    assert (second["model"], second["sdk"]) == (SECOND.model, SECOND.sdk)
    assert (second["battery_temperature"], second["thermal_status"]) == (SECOND.temperature, SECOND.thermal_status)
    assert "shell_v2" in second["adb_features"]
    assert second["free_bytes"] > 0
    assert "Second model" in done.out
    only = evaltools("device", "list", f"--adb={network.adb}", f"--serials={devices[0].serial},R58M")
    assert only.code == 0
    assert devices[1].serial not in only.out
    assert "R58M" in only.out


def test_a_detached_command_survives_a_daemon_that_dies(network: Network, devices: Devices) -> None:
    """A detached command goes on while the daemon is away, and its output is whole afterwards."""
    _, second = devices
    adb = Adb(str(network.adb))
    command = detached.start(adb, second.serial, "for i in 1 2 3; do echo line $i; sleep 1; done; exit 5")
    second.kill_daemon()
    second.start_daemon()
    ended = detached.wait(adb, command, timeout_s=60.0)
    assert (ended.code, ended.out, ended.err) == (5, b"line 1\nline 2\nline 3\n", b"")
    detached.remove(adb, command)
