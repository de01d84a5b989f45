"""``evaltools device run`` while links and devices break: the same result, nothing twice, nothing left."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from evaltools.adb.client import Adb
from evaltools.engine.journal import JOURNAL_NAME
from tests.cli.device import runs as device_runs
from tests.cli.evaluate.sample_runs import figures, figures_here, imagenet
from tests.command import Completed
from tests.device.fault_proxy import FaultProxy
from tests.device.faults import restarted_daemon
from tests.device.fixtures import Devices
from tests.device.real_device import Network, wait_until

pytestmark = pytest.mark.once
ARGUMENTS = imagenet("--record_examples=true", pictures=12)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> object:
    return figures_here(ARGUMENTS, tmp_path_factory.mktemp("here") / "here.json")


@pytest.fixture
def clean(devices: Devices, network: Network) -> None:
    """Nothing has been sent to the devices before, and adb knows both again after an earlier fault.

    The proxy before one of them, which adb knows as a device of its own, may be gone.
    """
    for device in devices:
        network.connect(device)
    serials = ",".join(device.serial for device in devices)
    done = device_runs.run(["device", "clean", f"--adb={network.adb}", f"--serials={serials}", "--force"])
    assert done.code == 0, done.err


def command_of(
    network: Network,
    serials: list[str],
    output: Path,
    patience_s: int = 20,
    python: str | Path = sys.executable,
) -> list[str]:
    flags = [f"--device_patience={patience_s}", f"--output_file_path={output}"]
    return device_runs.on_devices(network, serials, ARGUMENTS, *flags, python=python)


def require_same(done: Completed, output: Path, expected: object, devices: Devices) -> None:
    assert done.code == 0, done.err
    assert figures(output) == expected
    wait_until(lambda: not device_runs.left_running(), f"these still run: {device_runs.left_running()}")
    assert device_runs.left_runs(devices) == []


def test_a_fault_while_files_are_sent_and_again_while_it_runs(
    clean: None, network: Network, devices: Devices, proxy: FaultProxy, client: Adb, expected: object,
    tmp_path: Path,
) -> None:  # fmt: skip
    output, held = tmp_path / "result.json", device_runs.Held(tmp_path)
    sent = proxy.passed("up")
    process = device_runs.start(command_of(network, [proxy.serial], output, python=held.python))
    device_runs.wait_for(lambda: proxy.passed("up") > sent + 500_000, process)
    restarted_daemon(proxy, client)
    device_runs.wait_for(lambda: device_runs.is_running(devices[0]), process)
    held.let_go()
    restarted_daemon(proxy, client)
    require_same(device_runs.finish(process), output, expected, devices)


def test_of_two_devices_one_that_is_lost_is_left_out(
    network: Network, devices: Devices, proxy: FaultProxy, tmp_path: Path
) -> None:
    output, held = tmp_path / "result.json", device_runs.Held(tmp_path)
    both = [proxy.serial, devices[1].serial]
    process = device_runs.start(command_of(network, both, output, patience_s=2, python=held.python))
    device_runs.wait_for(lambda: device_runs.is_running(devices[0]), process)
    proxy.go_away()
    held.let_go()
    done = device_runs.finish(process)
    proxy.go_on()
    assert done.code == 3, done.err
    told = device_runs.device_run(output)
    assert [work["serial"] for work in told["work"]] == [devices[1].serial]
    assert [entry["serial"] for entry in told["left_out"]] == [proxy.serial]
    assert f"{proxy.serial}: left out: " in done.err, done.err


_KILLED_ONCE = """#!/bin/sh
if [ "$2" != evaltools.device.on_device ] || [ "$3" = --check ]; then exec {python} "$@"; fi
if [ ! -e {first} ]; then touch {first}; {python} "$@"; exit 137; fi
[ -s run/{journal} ] || exit 9
exec {python} "$@"
"""


def test_what_a_program_had_done_when_it_was_killed_is_not_done_again(
    clean: None, network: Network, devices: Devices, expected: object, tmp_path: Path
) -> None:
    output, python = tmp_path / "result.json", tmp_path / "python"
    python.write_text(
        _KILLED_ONCE.format(python=shlex.quote(sys.executable), first=tmp_path / "first", journal=JOURNAL_NAME)
    )
    python.chmod(0o755)
    done = device_runs.run(command_of(network, [devices[0].serial], output, python=python))
    require_same(done, output, expected, devices)
    (work,) = device_runs.device_run(output)["work"]
    assert [lost["kind"] for lost in work["lost"]] == ["command"]


def test_what_a_killed_run_left_is_ended_by_the_next_that_takes_the_device(
    network: Network, devices: Devices, expected: object, tmp_path: Path
) -> None:
    output, held = tmp_path / "result.json", device_runs.Held(tmp_path)
    serials = [devices[0].serial]
    process = device_runs.start([*command_of(network, serials, output, python=held.python), "--force"])
    device_runs.wait_for(lambda: device_runs.is_running(devices[0]), process)
    second = device_runs.finish(device_runs.start(command_of(network, serials, output)))
    assert second.code == 3
    assert f"device {serials[0]} is in use by " in second.err
    process.kill()
    process.communicate()
    assert device_runs.left_running()
    done = device_runs.run([*command_of(network, serials, output), "--force"])
    require_same(done, output, expected, devices)
