"""Conditions, compared with the kernel's own words and a /sys made by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import psutil
import pytest

from evaltools.benchmark import conditions
from evaltools.benchmark.conditions import parse_affinity, sample_conditions, set_affinity
from evaltools.errors import UsageError

ON_LINUX: Final = pytest.mark.skipif(sys.platform != "linux", reason="/proc and CPU affinity are Linux's")


class Process:
    """Stands in for psutil's, bound to CPUs."""

    def __init__(self, cpus: list[int]) -> None:
        self.cpus = cpus

    def cpu_affinity(self, wanted: list[int] | None = None) -> list[int]:
        self.cpus = self.cpus if wanted is None else [cpu for cpu in wanted if cpu != 1]
        return self.cpus


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may use CPU 0 and 2."""
    monkeypatch.setattr(psutil, "Process", lambda: Process([0, 2]))


@pytest.fixture
def no_sensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: {}, raising=False)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def write_cpu(sysfs: Path, cpu: int, kilohertz: str, governor: str) -> None:
    folder = sysfs / "devices" / "system" / "cpu" / f"cpu{cpu}" / "cpufreq"
    write(folder / "scaling_cur_freq", kilohertz)
    write(folder / "scaling_governor", governor)


def write_zone(sysfs: Path, number: int, kind: str, thousandths: str) -> None:
    folder = sysfs / "class" / "thermal" / f"thermal_zone{number}"
    write(folder / "type", f"{kind}\n")
    write(folder / "temp", thousandths)


@pytest.mark.usefixtures("two_cpus", "no_sensors")
def test_frequencies_and_governors_are_those_of_the_cpus_in_use(tmp_path: Path) -> None:
    write_cpu(tmp_path, 0, "2400000\n", "performance\n")
    write_cpu(tmp_path, 1, "1000000\n", "powersave\n")
    write_cpu(tmp_path, 2, "3600500\n", "schedutil\n")
    found = sample_conditions(tmp_path)
    assert (found.affinity, found.frequencies_mhz, found.governors) == (
        [0, 2],
        [2400.0, 3600.5],
        ["performance", "schedutil"],
    )


@pytest.mark.usefixtures("no_sensors")
def test_temperatures_of_thermal_zones(tmp_path: Path) -> None:
    """A zone that says nothing, nonsense or the impossible is left out, and the others keep their names."""
    write_zone(tmp_path, 0, "cpu-thermal", "61250\n")
    write_zone(tmp_path, 1, "soc", "garbage\n")
    write_zone(tmp_path, 2, "modem", "-273000\n")
    write_zone(tmp_path, 3, "soc", "44000\n")
    (tmp_path / "class" / "thermal" / "thermal_zone4" / "temp").mkdir(parents=True)
    assert sample_conditions(tmp_path).temperatures == {"cpu-thermal": 61.25, "soc #2": 44.0}


def test_temperatures_of_psutil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ["", "Core", "Core"]
    sensors = [SimpleNamespace(label=label, current=50.0 + place) for place, label in enumerate(labels)]
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: {"coretemp": sensors}, raising=False)
    found = sample_conditions(tmp_path).temperatures
    assert found == {"coretemp": 50.0, "coretemp Core": 51.0, "coretemp Core #2": 52.0}


@ON_LINUX
def test_the_affinity_is_that_of_the_kernel() -> None:
    assert sample_conditions().affinity == sorted(os.sched_getaffinity(0))


def missing(*_: object, **__: object) -> None:
    raise NotImplementedError


def denied(*_: object, **__: object) -> None:
    raise psutil.AccessDenied


@pytest.mark.parametrize("failure", [missing, denied, None])
def test_a_machine_that_says_nothing_is_no_error(
    failure: Callable[..., Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sensors_temperatures", "Process"):
        if failure is None:
            monkeypatch.delattr(psutil, name, raising=False)
        else:
            monkeypatch.setattr(psutil, name, failure, raising=False)
    found = sample_conditions(tmp_path / "none")
    assert (found.frequencies_mhz, found.governors, found.temperatures) == ([], [], {})
    assert found.affinity == list(range(os.cpu_count() or 1))


@ON_LINUX
def test_a_process_is_bound_to_cpus() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = (
        f"from evaltools.benchmark.conditions import set_affinity; set_affinity([{cpu}, {cpu}]);"
        "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('Cpus_allowed_list')][0])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(cpu)


@ON_LINUX
@pytest.mark.parametrize("cpus", [[], [4000], [0, 4000]])
def test_cpus_that_are_not_there_are_refused_with_those_that_are(cpus: list[int]) -> None:
    before = os.sched_getaffinity(0)
    wrong = "CPU 4000 does not exist or is off" if cpus else "no CPU is named"
    with pytest.raises(UsageError, match=f"^{wrong}; this machine has "):
        set_affinity(cpus)
    assert os.sched_getaffinity(0) == before


def test_cpus_that_are_kept_from_this_process_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a container, where the kernel takes those that may be used and says nothing."""
    monkeypatch.setattr(psutil, "Process", lambda: Process([0]))
    monkeypatch.setattr(conditions, "_online", lambda: [0, 1])
    with pytest.raises(UsageError, match="may not use CPU 1, as in a container"):
        set_affinity([0, 1])


def test_a_platform_without_affinity_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "Process", object)
    with pytest.raises(UsageError, match="does not bind processes to CPUs"):
        set_affinity([0])


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0", (0,)),
        ("3,0", (0, 3)),
        ("0,2-3", (0, 2, 3)),
        ("0-4:2, 1", (0, 1, 2, 4)),
        ("0x1", (0,)),
        ("0xf0", (4, 5, 6, 7)),
        ("0X80000001", (0, 31)),
        ("0x" + "1" + 32 * "0", (128,)),
        ("1-1,1", (1,)),
    ],
)
def test_cpus_are_read_as_taskset_reads_them(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_affinity(text) == cpus


@pytest.mark.parametrize(
    "text",
    [
        *["", ",", "0,", "0,,1", "a", "f0", "-1", "3-1", "0-3:0", "0x", "0x0", "0xg"],
        *["1.5", "9999", "0-99999999999", "\u0661", "0 1"],
    ],
)
def test_what_names_no_cpus_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="names no CPUs: expected their numbers, such as 0,2-3, or a mask"):
        parse_affinity(text)
