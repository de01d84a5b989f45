"""Conditions, compared with the kernel's own words and a /sys made by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import psutil
import pytest

from evaltools.benchmark.conditions import sample_conditions

ON_LINUX: Final = pytest.mark.skipif(sys.platform != "linux", reason="/proc and CPU affinity are Linux's")


@pytest.fixture
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may use CPU 0 and 2."""
    monkeypatch.setattr(psutil, "Process", lambda: SimpleNamespace(cpu_affinity=lambda: [0, 2]))


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
