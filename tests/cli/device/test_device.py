"""``evaltools device list``: what can be used, and what to do for the others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from evaltools.cli.device.command import run
from evaltools.device.adb.adb import Adb
from evaltools.errors import UsageError
from evaltools.result.device import DeviceList
from tests.device.adb_server import own_server
from tests.device.fake_device import Behaviour, FakeDevice

ADB = os.environ.get("EVALTOOLS_ADB") or shutil.which("adb") or ""
needs_adb = pytest.mark.skipif(not ADB, reason="no adb binary: neither EVALTOOLS_ADB nor PATH names one")
DUMPSYS = """\
#!/bin/sh
case "$1" in
  battery) echo '  present: true'; echo '  level: 87'; echo '  scale: 100'; echo '  temperature: 283';;
  thermalservice) echo 'Thermal Status: 2'; echo ' Temperature{mValue=41.5, mType=3, mName=SKIN, mStatus=0}';;
esac
"""
GETPROP = """\
#!/bin/sh
case "$1" in
  ro.product.model) echo 'Pixel 7';;
  ro.product.manufacturer) echo Google;;
  ro.build.version.sdk) echo 34;;
  ro.build.version.release) echo 14;;
esac
"""


@pytest.fixture
def adb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Adb]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    with own_server(ADB) as port:
        yield Adb(ADB, port)


@pytest.fixture
def phone(tmp_path: Path, adb: Adb) -> Iterator[FakeDevice]:
    """A device that answers getprop and dumpsys as a phone does."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("dumpsys", DUMPSYS), ("getprop", GETPROP)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    device = FakeDevice(tmp_path / "phone", Behaviour(environment={"PATH": f"{tools}:{os.environ['PATH']}"}))
    adb.reconnect(device.serial)
    yield device
    device.close()


@pytest.fixture
def stranger(tmp_path: Path, adb: Adb) -> Iterator[FakeDevice]:
    device = FakeDevice(tmp_path / "stranger", Behaviour(state="unauthorized"))
    adb.reconnect(device.serial)
    yield device
    device.close()


@needs_adb
def test_a_phone_is_listed_with_its_facts(
    adb: Adb, phone: FakeDevice, stranger: FakeDevice, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "found.json"
    code = run(["list", f"--adb={ADB}", f"--adb_port={adb.port}", f"--output_file_path={output}"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    row = next(line for line in out.splitlines() if line.startswith(f"{phone.serial} "))
    for cell in ("device", "Google Pixel 7", "14 (SDK 34)", "87% 28.3 C", "41.5 C", "moderate", "GiB"):
        assert cell in row
    assert f"{stranger.serial}: unauthorized\n  unlock the device and accept" in out
    found = {entry["device"]["serial"]: entry for entry in json.loads(output.read_text())["devices"]}
    assert found[phone.serial]["facts"]["battery_temperature"] == 283
    assert found[phone.serial]["facts"]["temperatures"] == {"SKIN": 41.5}
    assert found[stranger.serial]["facts"] is None
    assert "Allow USB debugging" in found[stranger.serial]["next_step"]
    assert msgspec.json.decode(output.read_bytes(), type=DeviceList).adb == ADB


@needs_adb
def test_without_a_usable_device_the_code_is_3(
    adb: Adb, stranger: FakeDevice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", f"--adb={ADB}", f"--adb_port={adb.port}"]) == 3
    out, err = capsys.readouterr()
    assert "Allow USB debugging" in out
    assert "no device can be used; stdout says what to do for each" in err


def test_help_and_unknown_actions(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "list        Which devices can be used" in capsys.readouterr().out
    assert run([]) == 2
    assert "missing: the action" in capsys.readouterr().err
    with pytest.raises(UsageError, match="'lst' is no action of evaltools device.* Did you mean list?"):
        run(["lst"])
    with pytest.raises(SystemExit) as caught:
        run(["list", "--help"])
    assert caught.value.code == 0
    assert "--serials" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--serials=a,all", "give serial numbers with commas between"),
        ("--adb=/no/such/adb", "is no program"),
        ("--output_file_path=found.txt", "ends in .json"),
        ("--serial=a", "Did you mean --serials"),
    ],
)
def test_wrong_flags_are_named(flag: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(["list", flag])


def test_neither_numpy_nor_a_runtime_is_needed() -> None:
    code = (
        "import sys; from evaltools.cli.device.command import run; import evaltools.device.adb.facts; "
        "import evaltools.device.adb.detached; "
        "import evaltools.report.tables.device; run(['--help']); "
        "sys.exit(sorted({'numpy', 'PIL', 'google.protobuf', 'ai_edge_litert'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
