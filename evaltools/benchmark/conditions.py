"""The state of the machine at one moment, as far as it can be known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import psutil

from evaltools.result.rounds import Conditions

Found = TypeVar("Found")

_SYSFS: Final = Path("/sys")
_COLDEST: Final = -40.0
_HOTTEST: Final = 150.0
_SAYS_NOTHING: Final = (OSError, ValueError, RuntimeError, AttributeError, psutil.Error)
"""What psutil and files raise where a platform lacks what is asked for."""


def sample_conditions(sysfs: Path = _SYSFS) -> Conditions:
    """Read the conditions; null or empty where the platform does not say, and never an error.

    Temperatures are those of psutil, and of the zones of ``sysfs``/class/thermal; values that no machine survives are
    left out. ``affinity`` has every CPU where the platform does not bind processes to CPUs. ``sysfs`` is where Linux
    shows frequencies, governors and zones; other platforms do not say which CPU has which frequency.

    >>> len(sample_conditions().affinity) > 0
    True
    """
    affinity = _affinity()
    return Conditions(
        affinity=affinity,
        frequencies_mhz=[
            kilohertz / 1000
            for kilohertz in _of_each([_number(_cpufreq(sysfs, cpu) / "scaling_cur_freq") for cpu in affinity])
        ],
        governors=_of_each([_text(_cpufreq(sysfs, cpu) / "scaling_governor") for cpu in affinity]),
        temperatures=_zones(sysfs) | _sensors(),
    )


def _or_none(read: Callable[[], Found]) -> Found | None:
    """The value that ``read`` returns, None on a platform that does not have it."""
    try:
        return read()
    except _SAYS_NOTHING:
        return None


def _text(path: Path) -> str | None:
    """The text in a file of sysfs without blanks around it, None if it is empty or there is no such file."""
    return _or_none(lambda: path.read_text().strip()) or None


def _number(path: Path) -> float | None:
    return _or_none(lambda: float(path.read_text()))


def _of_each(values: Sequence[Found | None]) -> list[Found]:
    """The values, or an empty list if one of them is None: the values of only some CPUs would be misread."""
    found = [value for value in values if value is not None]
    return found if len(found) == len(values) else []


def _affinity() -> list[int]:
    bound = _or_none(lambda: psutil.Process().cpu_affinity())
    return sorted(bound) if bound else list(range(os.cpu_count() or 1))


def _cpufreq(sysfs: Path, cpu: int) -> Path:
    return sysfs / "devices" / "system" / "cpu" / f"cpu{cpu}" / "cpufreq"


def _zones(sysfs: Path) -> dict[str, float]:
    """Temperatures of the kernel's thermal zones by type."""
    folders = _or_none(lambda: sorted((sysfs / "class" / "thermal").glob("thermal_zone*"))) or []
    readings: list[tuple[str, float | None]] = []
    for folder in folders:
        thousandths = _number(folder / "temp")
        readings.append((_text(folder / "type") or folder.name, None if thousandths is None else thousandths / 1000))
    return _named(readings)


def _sensors() -> dict[str, float]:
    """Temperatures that psutil knows, by chip and label."""
    chips = _or_none(lambda: psutil.sensors_temperatures()) or {}
    return _named((f"{chip} {entry.label}".strip(), entry.current) for chip in chips for entry in chips[chip])


def _named(readings: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    """Temperatures in degrees Celsius by name; readings without a value are left out.

    Names that occur several times are numbered. A reading without a value takes a number as well, so that the others
    keep theirs.
    """
    found: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for name, degrees in readings:
        seen[name] += 1
        if degrees is not None and _COLDEST <= degrees <= _HOTTEST:
            found[name if seen[name] == 1 else f"{name} #{seen[name]}"] = degrees
    return found
