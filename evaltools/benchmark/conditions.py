"""The state of the machine at one moment, as far as it can be known, and the CPUs that this process may use."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import psutil

from evaltools.errors import UsageError
from evaltools.result.benchmark import Conditions

Found = TypeVar("Found")

_SYSFS: Final = Path("/sys")
_COLDEST: Final = -40.0
_HOTTEST: Final = 150.0
_MOST_CPUS: Final = 8192
"""As many as Linux can be built for."""
_RANGE: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4})(?::([0-9]{1,4}))?)?")
_MASK: Final = re.compile(r"0[xX]([0-9a-fA-F]{1,2048})")
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


def require_cpus(cpus: Sequence[int]) -> None:
    """Raise :class:`UsageError` where a process cannot be bound to CPUs, or where one of these CPUs does not exist."""
    if not hasattr(psutil.Process(), "cpu_affinity"):
        raise UsageError("this platform does not bind processes to CPUs; leave the CPUs out")
    there_are = _online()
    missing = [cpu for cpu in sorted(set(cpus)) if cpu not in there_are]
    if missing or not cpus:
        wrong = f"CPU {_list_text(missing)} does not exist or is off" if missing else "no CPU is named"
        raise UsageError(f"{wrong}; this machine has {len(there_are)}, numbered up to {max(there_are)}")


def set_affinity(cpus: Sequence[int]) -> None:
    """Bind this process to these CPUs.

    Threads that run already keep their CPUs; threads that start later are bound. Raises :class:`UsageError` where the
    platform cannot bind processes, and for CPUs that do not exist or that this process may not use.
    """
    require_cpus(cpus)
    process, wanted = psutil.Process(), sorted(set(cpus))
    try:
        process.cpu_affinity(wanted)
    except _SAYS_NOTHING as error:
        raise UsageError(f"this process cannot be bound to CPU {_list_text(wanted)} ({error})") from error
    bound = process.cpu_affinity()
    if sorted(bound) != wanted:
        refused = [cpu for cpu in wanted if cpu not in bound]
        raise UsageError(f"this process may not use CPU {_list_text(refused)}, as in a container")


def _online(sysfs: Path = _SYSFS) -> list[int]:
    """The numbers of the CPUs that are switched on."""
    listed = _text(sysfs / "devices" / "system" / "cpu" / "online")
    return list(parse_affinity(listed)) if listed else list(range(os.cpu_count() or 1))


def parse_affinity(text: str) -> tuple[int, ...]:
    """CPUs from a list as ``taskset --cpu-list`` takes it, or from a mask in hexadecimal digits after 0x.

    Raises :class:`UsageError` for anything else.

    >>> parse_affinity("0,2-3"), parse_affinity("0-6:2"), parse_affinity("0xf0")
    ((0, 2, 3), (0, 2, 4, 6), (4, 5, 6, 7))
    """
    mask = _MASK.fullmatch(text.strip())
    if mask:
        bits = int(mask[1], 16)
        found = {cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1}
    else:
        ranges = [_range_of(part.strip()) for part in text.split(",")]
        found = {cpu for each in ranges for cpu in each} if all(ranges) else set()
    if not found or max(found) >= _MOST_CPUS:
        raise UsageError(
            f"{text!r} names no CPUs: expected their numbers, such as 0,2-3, or a mask in hexadecimal, such as 0xc"
        )
    return tuple(sorted(found))


def _range_of(part: str) -> range:
    """The CPUs of ``2``, ``2-5`` or ``2-9:3``; empty for any other text."""
    match = _RANGE.fullmatch(part)
    if match is None or (match[3] is not None and int(match[3]) == 0):
        return range(0)
    first = int(match[1])
    return range(first, int(match[2] or first) + 1, int(match[3] or 1))


def _list_text(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus))
