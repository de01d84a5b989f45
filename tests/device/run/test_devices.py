"""The devices of a run: which are chosen, what is said while they work, and what is said of those that left."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaltools.adb.client import Adb, DeviceError, Link
from evaltools.adb.store import DEFAULT_ROOT, DeviceFolder
from evaltools.cli.shared.terminal import make_console
from evaltools.device.device import DevicesUsed, devices_used
from evaltools.device.flags import PARAMETERS, DeviceFlags, read_device_flags
from evaltools.errors import UsageError
from evaltools.request.flags import parse_flags
from tests.cli.device import runs as device_runs
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import Network, wait_until


def flags_of(words: Sequence[str]) -> DeviceFlags:
    return read_device_flags(parse_flags("device run imagenet", "", "", {"devices": PARAMETERS}, words).options())


@contextmanager
def used(words: Sequence[str], text: io.StringIO | None = None) -> Iterator[DevicesUsed]:
    """The devices of ``evaltools device run`` with these flags; ``text`` gets what is printed."""
    with devices_used(flags_of(words), make_console(text or io.StringIO())) as found:
        yield found


def test_two_wheels_of_one_package_are_refused_and_one_of_evaltools_is_left_aside(tmp_path: Path) -> None:
    names = ["evaltools-0.0.1-py3-none-any.whl", "My_Pkg-1-py3-none-any.whl", "other-1-py3-none-any.whl"]
    for name in names:
        (tmp_path / name).touch()
    assert sorted(flags_of([f"--device_wheels={tmp_path}"]).wheels) == [tmp_path / name for name in names[1:]]
    (tmp_path / "my.pkg-2-py3-none-any.whl").touch()
    with pytest.raises(UsageError, match=r"My_Pkg-1-.* and .*my\.pkg-2-.*\.whl are both my-pkg"):
        flags_of([f"--device_wheels={tmp_path}"])


def test_what_may_still_run_on_a_device_that_left_is_said_with_what_to_do(
    network: Network, devices: Devices, proxy: FaultProxy, tmp_path: Path
) -> None:
    raised, text = list[DeviceError](), io.StringIO()
    with used([f"--adb={network.adb}", f"--serials={proxy.serial}", "--device_patience=1"], text) as found:

        def do() -> None:
            try:
                found.by_serial[proxy.serial].do(lambda: "sleep 300", (), tmp_path)
            except DeviceError as error:
                raised.append(error)

        thread = threading.Thread(target=do)
        thread.start()
        wait_until(lambda: device_runs.is_running(devices[0]), "the part did not begin")
        proxy.go_away()
        thread.join()
    proxy.go_on()
    assert len(raised) == 1
    (line,) = [line for line in text.getvalue().splitlines() if "may still run there" in line]
    assert line.startswith(f"evaltools: {proxy.serial}: something may still run there, and its files be left (")
    assert "it ends itself after 60 minutes" in line
    clean = f"evaltools device clean --serials={proxy.serial} --adb={network.adb}"
    assert f"and {clean} --force ends and deletes all" in line
    assert device_runs.left_running(), "it does run"
    network.connect(proxy)
    assert device_runs.run([*clean.split()[1:], "--force"]).code == 0, "the process of the run goes on"
    assert device_runs.left_running() == []


def test_a_device_that_is_in_use_stops_the_command_or_is_left_out(
    client: Adb, network: Network, devices: Devices
) -> None:
    serial, root = devices[0].serial, f"{DEFAULT_ROOT}-2"
    flags = [f"--adb={network.adb}", f"--device_folder={root}"]
    clean = f"evaltools device clean --serials={serial} --adb={network.adb} --device_folder={root}"
    with DeviceFolder(Link(client, serial), root):
        named = used([*flags, f"--serials={serial}"])
        with pytest.raises(DeviceError, match=f"^device {serial} is in use by .*; --force takes it"), named:
            pass
        text = io.StringIO()
        with used([*flags, "--serials=all"], text) as found:
            assert [*found.by_serial] == [devices[1].serial]
            assert [entry.serial for entry in found.left_out] == [serial]
        assert text.getvalue().startswith(f"left out: device {serial} is in use by ")
        done = device_runs.run(clean.split()[1:])
        assert (done.code, done.out) == (3, "")
        assert f"device {serial} is in use by " in done.err
    with used([*flags, f"--serials={serial}"]):
        assert device_runs.run([*clean.split()[1:], "--force"]).code == 0
    assert not (devices[0].folder / "evaltools-2").exists()


def test_of_two_serials_of_one_device_one_is_left_out(network: Network, devices: Devices, proxy: FaultProxy) -> None:
    first, text = {devices[0].serial, proxy.serial}, io.StringIO()
    with used([f"--adb={network.adb}", "--serials=all"], text) as found:
        (left_out,) = found.left_out
        assert {*found.by_serial} == {*first, devices[1].serial} - {left_out.serial}
        assert left_out.serial in first
    assert f"left out: device {left_out.serial} is in use by " in text.getvalue()
    named = used([f"--adb={network.adb}", f"--serials={devices[0].serial},{proxy.serial}"])
    with pytest.raises(DeviceError, match=f"^device {proxy.serial} is in use by "), named:
        pass


def test_kinds_of_cpus_that_a_device_does_not_name_are_refused(
    network: Network, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.device.device.masks_of_cpus", lambda _cpus: {})
    named = used([f"--adb={network.adb}", f"--serials={devices[0].serial}", "--taskset=big"])
    with pytest.raises(DeviceError, match=f"{devices[0].serial}: it does not say which CPUs are big"), named:
        pass


@pytest.fixture
def offline(network: Network, devices: Devices) -> Iterator[str]:
    """The second device, whose daemon has gone."""
    serial = devices[1].serial
    devices[1].kill_daemon()
    wait_until(lambda: network.states().get(serial) == "offline", "adb did not see it go")
    yield serial
    devices[1].start_daemon()
    network.run_adb("disconnect", serial)
    network.connect(devices[1])


def test_a_device_that_is_offline_at_the_beginning_is_left_out(offline: str, network: Network) -> None:
    with used([f"--adb={network.adb}", "--serials=all"]) as found:
        assert [entry.serial for entry in found.left_out] == [offline]
