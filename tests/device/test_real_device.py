"""The real daemon and the real client: what tests of devices may build on."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
from pathlib import Path

import psutil
import pytest

from evaltools.device.adb import detached
from evaltools.device.adb.adb import Adb
from tests.command import evaltools
from tests.device.fixtures import SECOND, Devices, leave_out
from tests.device.real_device import FIRST_PORT, Network, NoNetwork, RealDevice, missing_programs, wait_until

LARGE = 20 * 1024 * 1024


def shell(device: RealDevice, command: str) -> subprocess.CompletedProcess[bytes]:
    return device.network.run_adb("-s", device.serial, "shell", command)


def test_two_devices_at_once_are_ready(network: Network, devices: Devices) -> None:
    assert network.states() == {f"127.0.0.1:{FIRST_PORT}": "device", f"127.0.0.1:{FIRST_PORT + 1}": "device"}


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


def test_a_shell_gives_the_exit_code_and_keeps_both_outputs_apart(devices: Devices) -> None:
    for device in devices:
        ended = shell(device, "echo out; echo wrong >&2; exit 7")
        assert (ended.returncode, ended.stdout, ended.stderr) == (7, b"out\n", b"wrong\n")


def test_a_large_file_is_the_same_there_and_back(devices: Devices, tmp_path: Path) -> None:
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(random.Random(0).randbytes(LARGE))
    expected = hashlib.sha256(sent.read_bytes()).hexdigest()
    first, second = devices
    assert first.network.run_adb("-s", first.serial, "push", str(sent), "/data/local/tmp/large").returncode == 0
    assert shell(first, "sha256sum /data/local/tmp/large").stdout.decode().split()[0] == expected
    assert (first.folder / "large").stat().st_size == LARGE
    assert not (second.folder / "large").exists()
    assert first.network.run_adb("-s", first.serial, "pull", "/data/local/tmp/large", str(back)).returncode == 0
    assert hashlib.sha256(back.read_bytes()).hexdigest() == expected


def test_each_device_says_what_it_is(devices: Devices) -> None:
    first, second = devices
    assert shell(first, "getprop ro.product.model").stdout == b"Real daemon\n"
    assert shell(second, "getprop ro.product.model").stdout == b"Second model\n"
    assert shell(second, "getprop ro.build.version.sdk").stdout == b"29\n"
    assert shell(second, "getprop ro.nothing").stdout == b"\n"
    assert b"[ro.soc.model]: [EV100]\n" in shell(first, "getprop").stdout
    assert b"  temperature: 415\n" in shell(second, "dumpsys battery").stdout
    assert b"Thermal Status: 2\n" in shell(second, "dumpsys thermalservice").stdout
    assert shell(second, "dumpsys nothing").stderr == b"Can't find service: nothing\n"


def test_a_program_of_the_test_s_own_is_found_before_the_machine_s(devices: Devices) -> None:
    first, second = devices
    first.add_program("logcat", "#!/bin/sh\necho line $1\n")
    assert shell(first, "logcat -d").stdout == b"line -d\n"
    first.add_program("logcat", "#!/bin/sh\nexit 3\n")
    assert shell(first, "logcat -d").returncode == 3
    assert shell(second, "logcat -d").returncode == 127


def test_a_device_whose_daemon_died_is_lost_and_found_again(network: Network, devices: Devices) -> None:
    first, second = devices
    shell(first, "setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! >/data/local/tmp/sleeper")
    first.kill_daemon()
    wait_until(lambda: network.states().get(first.serial) != "device", "the client still knows the device")
    assert network.states()[second.serial] == "device"
    assert shell(first, "true").returncode != 0
    first.start_daemon()
    network.connect(first)
    assert shell(first, "kill -0 $(cat /data/local/tmp/sleeper)").returncode == 0
    assert shell(first, "kill -9 $(cat /data/local/tmp/sleeper)").returncode == 0
    wait_until(lambda: shell(first, "kill -0 $(cat /data/local/tmp/sleeper)").returncode == 1, "a dead process stays")


def test_nothing_outside_reaches_a_daemon(devices: Devices) -> None:
    shown = shell(devices[0], "cat /proc/net/dev").stdout.decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in shown] == ["lo"]
    vsock = "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)"
    ended = shell(devices[0], f"{_python()} -c '{vsock}'")
    assert b"Address family not supported by protocol" in ended.stderr


def test_nothing_is_left_at_the_end(tmp_path: Path) -> None:
    try:
        with Network(tmp_path / "network") as network, RealDevice(network, tmp_path / "device") as device:
            network.connect(device)
            shell(device, "setsid sleep 600 >/dev/null 2>&1 </dev/null &")
            number_of_network = os.readlink(f"/proc/{_number(network.command())}/ns/net")
            assert len(_processes_in(number_of_network)) >= 4
    except NoNetwork as reason:
        leave_out(reason)
    assert _processes_in(number_of_network) == []
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


def test_a_network_without_programs_says_which_script_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALTOOLS_ADBD", raising=False)
    monkeypatch.setenv("EVALTOOLS_ADB", "/bin/sh")
    with pytest.raises(NoNetwork, match=r"EVALTOOLS_ADBD is not set: run `python scripts/get_adbd.py`"):
        Network(tmp_path).__enter__()
    monkeypatch.setenv("EVALTOOLS_ADB", str(tmp_path / "nothing"))
    assert str(missing_programs()).startswith(f"EVALTOOLS_ADB={tmp_path / 'nothing'} is no program")


def _python() -> str:
    """A Python that a device finds, too."""
    return psutil.Process().exe()


def _number(command: list[str]) -> int:
    return int(next(part for part in command if part.startswith("--target=")).removeprefix("--target="))


def _processes_in(network: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.readlink(f"/proc/{process.pid}/ns/net") == network:
                found.append(process.pid)
        except OSError:  # it has ended, or is another user's
            continue
    return found
