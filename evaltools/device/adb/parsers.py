"""What devices print, as numbers and names. Each gives None, or nothing, for what is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from evaltools.device.adb.sections import PROPERTIES
from evaltools.result.device import DeviceCpu

_HAL: Final = "Current temperatures from HAL"
_TEMPERATURE: Final = re.compile(r"Temperature\{(.*)\}")
_NO_DEGREES: Final = ("6", "7", "8")
"""Types of Android's Temperature.java that are no temperatures: a battery's voltage, current and percentage."""
_LEAST_OF_IDENTITY: Final = 3
_COLDEST: Final = -40.0
_HOTTEST: Final = 150.0


def parse_properties(text: str) -> dict[str, str]:
    r"""``NAME=VALUE`` of ``getprop NAME``; those that are empty, as where a device lacks them, are left out.

    >>> parse_properties("ro.product.model=Pixel 7\nro.soc.model=\n")
    {'ro.product.model': 'Pixel 7'}
    """
    pairs = [line.partition("=") for line in text.splitlines()]
    return {name: value.strip() for name, _, value in pairs if name in PROPERTIES and value.strip()}


def parse_identity(text: str) -> str:
    r"""What no other machine says: a boot's random number, a folder's number and name, and a serial if there is one.

    >>> parse_identity("3f0e\n  1311 /data/local/tmp\nR58M\n"), parse_identity("3f0e\n")
    ('3f0e 1311 /data/local/tmp R58M', '')
    """
    words = text.split()
    return " ".join(words) if len(words) >= _LEAST_OF_IDENTITY else ""


def parse_soc(properties: Mapping[str, str], compatible: str) -> str | None:
    r"""The SoC in Android's properties, else in the names of a device tree, most special first, one in a line.

    >>> parse_soc({}, "raspberrypi,4-model-b\nbrcm,bcm2711\n")
    'brcm,bcm2711'
    """
    if "ro.soc.model" in properties:
        return " ".join(filter(None, [properties.get("ro.soc.manufacturer"), properties["ro.soc.model"]]))
    return properties.get("ro.board.platform") or last_line(compatible)


def last_line(text: str) -> str | None:
    """The last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


def parse_count(text: str) -> int | None:
    """How many CPUs a list of the kernel's names, such as ``0-3,6``.

    >>> parse_count("0-3,6"), parse_count("no such file")
    (5, None)
    """
    total = 0
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            return None
        total += int(last) - int(first) + 1 if dash else 1
    return total


def parse_frequencies(text: str) -> tuple[DeviceCpu, ...]:
    r"""``CPU,governor,current,lowest,highest`` per line, in kHz, in order of the CPUs.

    >>> parse_frequencies("0,schedutil,1803000,300000,1803000\n")[0].current_khz
    1803000
    """
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 5 and cells[0].isdigit():
            found.append(DeviceCpu(int(cells[0]), cells[1] or None, *(_whole(cell) for cell in cells[2:])))
    return tuple(sorted(found, key=lambda cpu: cpu.cpu))


def parse_battery(text: str) -> tuple[int | None, int | None]:
    """Level in percent and temperature in tenths of a degree Celsius, from ``dumpsys battery``.

    A level on another scale is brought to percent. A device without a battery says ``present: false``: None.
    """
    said: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            said.setdefault(name.strip(), value.strip())
    if said.get("present") == "false":
        return None, None
    level, scale = _whole(said.get("level", "")), _whole(said.get("scale", "100"))
    return (level * 100 // scale if level is not None and scale else None), _whole(said.get("temperature", ""))


def parse_thermal(text: str) -> tuple[int | None, dict[str, float] | None]:
    """Status (0 to 6) and degrees Celsius by sensor, from ``dumpsys thermalservice``.

    The HAL's present temperatures count where they are listed, else the service's cached ones. Values that no device
    survives, as sensors without a reading give, are left out; so are cooling devices, and the voltage, current and
    percentage of a battery, which are listed as temperatures.
    """
    status = re.search(r"^\s*Thermal Status: (\d+)\s*$", text, re.MULTILINE)
    before, heading, after = text.partition(_HAL)
    temperatures = _temperatures(after if heading else before) or _temperatures(before)
    return (int(status[1]) if status else None), temperatures or None


def _temperatures(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for match in _TEMPERATURE.finditer(text):
        cells = dict(cell.strip().partition("=")[::2] for cell in match[1].split(","))
        if cells.get("mType") not in _NO_DEGREES:
            _keep(found, cells.get("mName", ""), cells.get("mValue", ""), 1.0)
    return found


def parse_zones(text: str) -> dict[str, float] | None:
    r"""Degrees Celsius by zone from lines of millidegrees and the zone's type; a second of a type is numbered.

    >>> parse_zones("48312 cpu-thermal\n47000 cpu-thermal\n")
    {'cpu-thermal': 48.312, 'cpu-thermal 2': 47.0}
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        value, _, name = line.strip().partition(" ")
        _keep(found, name.strip(), value, 1000.0)
    return found or None


def _keep(found: dict[str, float], name: str, text: str, unit: float) -> None:
    """Put a temperature under its name, or under a numbered one where that is taken."""
    try:
        degrees = float(text) / unit
    except ValueError:
        return
    if not name or not _COLDEST <= degrees <= _HOTTEST:
        return
    number, key = 2, name
    while key in found:
        key = f"{name} {number}"
        number += 1
    found[key] = degrees


def parse_python(text: str) -> tuple[str | None, str | None]:
    r"""Version and path of ``python3`` from its path and what ``--version`` prints.

    >>> parse_python("/usr/bin/python3\nPython 3.11.2\n")
    ('3.11.2', '/usr/bin/python3')
    """
    lines = text.splitlines()
    if len(lines) < 2 or not lines[1].startswith("Python "):
        return None, None
    return lines[1].removeprefix("Python ").strip(), lines[0].strip()


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None
