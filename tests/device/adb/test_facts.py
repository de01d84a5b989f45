"""Facts of a device, from texts in the forms that the documented commands print."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from evaltools.adb.facts import (
    facts_command,
    free_bytes,
    parse_battery,
    parse_frequencies,
    parse_properties,
    parse_soc,
    parse_thermal,
    parse_zones,
    read_facts,
    split_sections,
)
from evaltools.result.device import DeviceConditions, DeviceCpu, DeviceFacts

PROPERTIES = """\
ro.product.model=Pixel 7
ro.product.manufacturer=Google
ro.soc.manufacturer=Google
ro.soc.model=GS201
ro.board.platform=gs201
ro.build.version.sdk=34
ro.build.version.release=14
ro.product.cpu.abi=arm64-v8a"""
BATTERY = """\
Current Battery Service state:
  AC powered: false
  USB powered: true
  Wireless powered: false
  Max charging current: 500000
  Max charging voltage: 5000000
  Charge counter: 3922000
  status: 2
  health: 2
  present: true
  level: 87
  scale: 100
  voltage: 4312
  temperature: 283
  technology: Li-ion"""
THERMAL = """\
IsStatusOverride: false
ThermalEventListeners:
\tcallbacks: 1
\tkilled: false
\tbroadcasts count: -1
ThermalStatusListeners:
\tcallbacks: 2
Thermal Status: 1
Cached temperatures:
\tTemperature{mValue=31.5, mType=3, mName=VIRTUAL-SKIN, mStatus=0}
HAL Ready: true
HAL connection:
\tThermalHAL 2.0 connected: yes
Current temperatures from HAL:
\tTemperature{mValue=44.25, mType=0, mName=BIG, mStatus=0}
\tTemperature{mValue=43.0, mType=0, mName=LITTLE, mStatus=0}
\tTemperature{mValue=39.1, mType=3, mName=VIRTUAL-SKIN, mStatus=1}
\tTemperature{mValue=-274.0, mType=5, mName=broken, mStatus=0}
\tTemperature{mValue=NaN, mType=5, mName=none, mStatus=0}
Current cooling devices from HAL:
\tCoolingDevice{mValue=0, mType=2, mName=thermal-cpufreq-0}"""
CACHED = THERMAL.partition("HAL Ready")[0]
LIMITS = """\
Current temperatures from HAL:
\tTemperature{mValue=4.312, mType=6, mName=vbat, mStatus=0}
\tTemperature{mValue=120.0, mType=7, mName=ibat, mStatus=0}
\tTemperature{mValue=87.0, mType=8, mName=soc, mStatus=0}
\tTemperature{mValue=41.0, mType=9, mName=npu, mStatus=0}
\tTemperature{mValue=40.0, mType=-1, mName=unknown, mStatus=0}
"""
"""Voltage, current and percentage of a battery are listed as temperatures, by types of Android's Temperature.java."""
SPACE = """\
Filesystem       1K-blocks     Used Available Use% Mounted on
/dev/block/dm-49 114986964 25862420  88993472  23% /data"""


def test_a_phone_says_everything() -> None:
    sections = {
        "properties": PROPERTIES,
        "machine": "aarch64",
        "cpus": "8",
        "cpufreq": "4,sched_pixel,2348000,400000,2348000\n0,sched_pixel,1803000,300000,1803000",
        "battery": BATTERY,
        "thermal": THERMAL,
        "space": SPACE,
    }
    assert read_facts("R5", sections) == DeviceFacts(
        serial="R5",
        model="Pixel 7",
        manufacturer="Google",
        soc="Google GS201",
        sdk=34,
        android="14",
        abi="arm64-v8a",
        machine="aarch64",
        cpus=8,
        conditions=DeviceConditions(
            87,
            283,
            1,
            {"BIG": 44.25, "LITTLE": 43.0, "VIRTUAL-SKIN": 39.1},
            (
                DeviceCpu(0, "sched_pixel", 1803000, 300000, 1803000),
                DeviceCpu(4, "sched_pixel", 2348000, 400000, 2348000),
            ),
        ),
        free_bytes=88993472 * 1024,
    )


def test_a_linux_board_has_neither_properties_nor_services() -> None:
    facts = read_facts(
        "10.0.0.9:5555",
        {
            "model": "Raspberry Pi 4 Model B Rev 1.4",
            "compatible": "raspberrypi,4-model-b\nbrcm,bcm2711",
            "machine": "aarch64",
            "zones": "48312 cpu-thermal",
            "python": "Python 3.11.2",
        },
    )
    assert (facts.model, facts.soc, facts.machine) == ("Raspberry Pi 4 Model B Rev 1.4", "brcm,bcm2711", "aarch64")
    assert (facts.python, facts.free_bytes) == ("3.11.2", None)
    assert facts.conditions == DeviceConditions(temperatures={"cpu-thermal": 48.312})
    assert (facts.sdk, facts.android, facts.abi, facts.cpus) == (None, None, None, None)


@pytest.mark.parametrize(
    ("read", "text", "found"),
    [
        (parse_battery, "  present: false\n  level: 0\n  temperature: 0", (None, None)),
        (parse_battery, "  level: 1\n  scale: 2\n  temperature: -35", (50, -35)),
        (parse_battery, "Can't find service: battery", (None, None)),
        (parse_thermal, CACHED, (1, {"VIRTUAL-SKIN": 31.5})),
        (parse_thermal, f"{CACHED}Current temperatures from HAL:\n", (1, {"VIRTUAL-SKIN": 31.5})),
        (parse_thermal, "Can't find service: thermalservice", (None, {})),
        (parse_thermal, LIMITS, (None, {"npu": 41.0, "unknown": 40.0})),
        (parse_frequencies, "3,,,300000,\nbroken", (DeviceCpu(3, None, None, 300000, None),)),
        (parse_zones, "-274000 off\n41000 soc\n\n x\n", {"soc": 41.0}),
        (free_bytes, SPACE, 91129315328),
        (free_bytes, "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/long\n 10 4 6 40% /d", 6144),
        (free_bytes, "Filesystem               Size     Used     Free   Blksize\n/data 24.8G 9.1G 15.7G 4096", None),
        (free_bytes, "df: /data/local/tmp: No such file or directory", None),
        (lambda text: parse_soc(parse_properties(text), ""), "ro.board.platform=msm8998\nro.soc.model=", "msm8998"),
    ],
)
def test_texts_of_odd_devices(read: Callable[[str], object], text: str, found: object) -> None:
    assert read(text) == found


def test_the_questions_fit_into_one_message_of_old_adb_and_a_real_shell_answers_them() -> None:
    command = facts_command("mark-0123456789ab")
    assert len(command) < 3500
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    sections = split_sections(done.stdout, "mark-0123456789ab")
    assert (done.returncode, done.stderr) == (0, "")
    machine = subprocess.run(["uname", "-m"], capture_output=True, text=True, check=True).stdout.strip()
    assert sections["machine"] == machine
    assert int(sections["cpus"]) >= 1
    assert list(sections)[-1] == "python"
