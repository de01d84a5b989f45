"""Facts about devices, by one shell command each; or what to do about them."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from evaltools.adb.client import NOT_LISTED, USABLE, Adb, DeviceError, Link, next_step
from evaltools.result.device import DeviceConditions, DeviceCpu, DeviceFacts, DeviceFinding

PROPERTIES: Final = (
    "ro.product.model",
    "ro.product.manufacturer",
    "ro.soc.manufacturer",
    "ro.soc.model",
    "ro.board.platform",
    "ro.build.version.sdk",
    "ro.build.version.release",
    "ro.product.cpu.abi",
)
_CPUFREQ: Final = (
    'for d in /sys/devices/system/cpu/cpu[0-9]*/cpufreq; do [ -d $d ] || continue; l=${d%/cpufreq}; l="${l##*/cpu}"; '
    "for f in scaling_governor scaling_cur_freq cpuinfo_min_freq cpuinfo_max_freq; do "
    'v=; { read v < $d/$f; }; l="$l,$v"; done; echo "$l"; done'
)
_ZONES: Final = (
    "command -v dumpsys > /dev/null || for z in /sys/class/thermal/thermal_zone*; do "
    't=; v=; { read t < $z/type; read v < $z/temp; } && echo "$v $t"; done'
)
_COMMANDS: Final = {
    "properties": (
        f'command -v getprop > /dev/null && for p in {" ".join(PROPERTIES)}; do echo "$p=$(getprop $p)"; done'
    ),
    "model": "tr '\\000' '\\n' < /proc/device-tree/model",
    "compatible": "tr '\\000' '\\n' < /proc/device-tree/compatible",
    "machine": "uname -m",
    "cpus": "ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l",
    "cpufreq": _CPUFREQ,
    "battery": "command -v dumpsys > /dev/null && dumpsys battery",
    "thermal": "command -v dumpsys > /dev/null && dumpsys thermalservice",
    "zones": _ZONES,
    "gpu": "command -v dumpsys > /dev/null && dumpsys SurfaceFlinger | grep -m 1 '^GLES: '",
    "space": "df -k /data/local/tmp",
    "python": "python3 --version",
}
_THAT_CHANGE: Final = ("cpufreq", "battery", "thermal", "zones")
"""The questions whose answers change while a device works."""
_AT_ONCE: Final = 8


def facts_command(mark: str, names: Iterable[str] = _COMMANDS) -> str:
    """Questions in one command; ``mark`` is new."""
    asked = "; ".join(f"echo; echo {mark} {name}; {_COMMANDS[name]}" for name in names)
    return f"exec 2> /dev/null; {asked}; exit 0"


def split_sections(text: str, mark: str) -> dict[str, str]:
    r"""The answers by the names of the questions.

    >>> split_sections("\nm machine\naarch64\n\nm cpus\n", "m")
    {'machine': 'aarch64', 'cpus': ''}
    """
    found = {}
    for section in f"\n{text}".split(f"\n{mark} ")[1:]:
        name, _, answer = section.partition("\n")
        found[name.strip()] = answer.strip()
    return found


_HAL: Final = "Current temperatures from HAL"
_TEMPERATURE: Final = re.compile(r"Temperature\{(.*)\}")
_NO_DEGREES: Final = ("6", "7", "8")
"""Types of Android's Temperature.java that are no temperatures: a battery's voltage, current and percentage."""
_COLDEST: Final = -40.0
_HOTTEST: Final = 150.0


def parse_properties(text: str) -> dict[str, str]:
    r"""``NAME=VALUE`` of ``getprop NAME``; those that are empty, as where a device lacks them, are left out.

    >>> parse_properties("ro.product.model=Pixel 7\nro.soc.model=\n")
    {'ro.product.model': 'Pixel 7'}
    """
    pairs = [line.partition("=") for line in text.splitlines()]
    return {name: value.strip() for name, _, value in pairs if name in PROPERTIES and value.strip()}


def parse_soc(properties: Mapping[str, str], compatible: str) -> str | None:
    r"""The SoC in Android's properties, else in the names of a device tree, most special first, one in a line.

    >>> parse_soc({}, "raspberrypi,4-model-b\nbrcm,bcm2711\n")
    'brcm,bcm2711'
    """
    if "ro.soc.model" in properties:
        return " ".join(filter(None, [properties.get("ro.soc.manufacturer"), properties["ro.soc.model"]]))
    return properties.get("ro.board.platform") or last_line(compatible)


def parse_gpu(text: str) -> str | None:
    """The GPU by the name that its driver gives, in the line of ``dumpsys SurfaceFlinger`` about OpenGL ES.

    >>> parse_gpu("GLES: Qualcomm, Adreno (TM) 740, OpenGL ES 3.2 V@0676.65")
    'Adreno (TM) 740'
    """
    names = text.strip().removeprefix("GLES:").split(",")
    return names[1].strip() or None if len(names) > 2 else None


def last_line(text: str) -> str | None:
    """The last line that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


def parse_frequencies(text: str) -> tuple[DeviceCpu, ...]:
    r"""``CPU,governor,current,lowest,highest`` per line, in kHz, in order of the CPUs.

    >>> parse_frequencies("0,schedutil,1803000,300000,1803000\n")[0].current_khz
    1803000
    """
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        number = _count(cells[0])
        if len(cells) == 5 and number is not None:
            found.append(DeviceCpu(number, cells[1] or None, *(_whole(cell) for cell in cells[2:])))
    return tuple(sorted(found, key=lambda cpu: cpu.cpu))


def masks_of_cpus(cpus: Sequence[DeviceCpu]) -> dict[str, str]:
    """Masks of the CPUs with the highest frequency, ``big``, and of those with the lowest one, ``little``.

    None where all are alike, or the device does not say.

    >>> cpus = [DeviceCpu(0, None, None, None, 1800), DeviceCpu(1, None, None, None, 2400)]
    >>> masks_of_cpus(cpus), masks_of_cpus(cpus[:1])
    ({'big': '2', 'little': '1'}, {})
    """
    highest = {cpu.cpu: cpu.highest_khz for cpu in cpus if cpu.highest_khz is not None}
    if len(set(highest.values())) < 2:
        return {}
    wanted = {"big": max(highest.values()), "little": min(highest.values())}
    return {
        name: f"{sum(1 << number for number, own in highest.items() if own == khz):x}" for name, khz in wanted.items()
    }


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


def parse_thermal(text: str) -> tuple[int | None, dict[str, float]]:
    """Status (0 to 6) and degrees Celsius by sensor, from ``dumpsys thermalservice``.

    The HAL's present temperatures count where they are listed, else the service's cached ones. Values that no device
    survives, as sensors without a reading give, are left out; so are cooling devices, and the voltage, current and
    percentage of a battery, which are listed as temperatures.
    """
    status = re.search(r"^\s*Thermal Status: (\d+)\s*$", text, re.MULTILINE)
    before, heading, after = text.partition(_HAL)
    temperatures = _temperatures(after if heading else before) or _temperatures(before)
    return (_count(status[1]) if status else None), temperatures


def _temperatures(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for match in _TEMPERATURE.finditer(text):
        cells = dict(cell.strip().partition("=")[::2] for cell in match[1].split(","))
        if cells.get("mType") not in _NO_DEGREES:
            _keep(found, cells.get("mName", ""), cells.get("mValue", ""), 1.0)
    return found


def parse_zones(text: str) -> dict[str, float]:
    r"""Degrees Celsius by zone from lines of millidegrees and the zone's type; a second of a type is numbered.

    >>> parse_zones("48312 cpu-thermal\n47000 cpu-thermal\n")
    {'cpu-thermal': 48.312, 'cpu-thermal 2': 47.0}
    """
    found: dict[str, float] = {}
    for line in text.splitlines():
        value, _, name = line.strip().partition(" ")
        _keep(found, name.strip(), value, 1000.0)
    return found


def _keep(found: dict[str, float], name: str, text: str, unit: float) -> None:
    """Put a temperature under its name, with a number behind it where the name is taken."""
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


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _count(text: str) -> int | None:
    """A whole number without a sign."""
    return None if text.startswith("-") else _whole(text)


def conditions_now(link: Link) -> DeviceConditions:
    """What changes while a device works; raises :class:`DeviceError`."""
    return read_conditions(_ask(link, _THAT_CHANGE))


def _ask(link: Link, names: Iterable[str]) -> dict[str, str]:
    mark = f"evaltools-{uuid.uuid4().hex[:12]}"
    return split_sections(link.shell(facts_command(mark, names)).text, mark)


def read_facts(serial: str, sections: Mapping[str, str]) -> DeviceFacts:
    """The facts in the answers of :func:`facts_command`.

    >>> facts = read_facts("R5", {"machine": "aarch64", "cpus": "8", "python": "Python 3.11.2"})
    >>> facts.machine, facts.cpus, facts.python, facts.sdk
    ('aarch64', 8, '3.11.2', None)
    """
    properties = parse_properties(sections.get("properties", ""))
    python = re.match(r"Python (\S+)", sections.get("python", ""))
    sdk = properties.get("ro.build.version.sdk", "")
    return DeviceFacts(
        serial=serial,
        model=properties.get("ro.product.model") or last_line(sections.get("model", "")),
        manufacturer=properties.get("ro.product.manufacturer"),
        soc=parse_soc(properties, sections.get("compatible", "")),
        sdk=_count(sdk),
        android=properties.get("ro.build.version.release"),
        abi=properties.get("ro.product.cpu.abi"),
        machine=last_line(sections.get("machine", "")),
        cpus=_count(sections.get("cpus", "")) or None,
        gpu=parse_gpu(sections.get("gpu", "")),
        conditions=read_conditions(sections),
        free_bytes=free_bytes(sections.get("space", "")),
        python=python[1] if python else None,
    )


def read_conditions(sections: Mapping[str, str]) -> DeviceConditions:
    """What changes, in the answers of :func:`facts_command`."""
    level, temperature = parse_battery(sections.get("battery", ""))
    status, temperatures = parse_thermal(sections.get("thermal", ""))
    return DeviceConditions(
        battery_level=level,
        battery_temperature=temperature,
        thermal_status=status,
        temperatures=temperatures or parse_zones(sections.get("zones", "")),
        cpu_frequencies=parse_frequencies(sections.get("cpufreq", "")),
    )


def free_bytes(df: str) -> int | None:
    r"""The space left in the output of ``df -k FOLDER``, in bytes; None where it is not a table in blocks of 1 KiB.

    A long name of a file system may break the line in two.

    >>> free_bytes("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/block/dm-5 100 60 40 60% /data\n")
    40960
    """
    lines = df.splitlines()
    headings = [number for number, line in enumerate(lines) if line.startswith("Filesystem")]
    if not headings or not ("1K-blocks" in lines[headings[-1]] or "1024-blocks" in lines[headings[-1]]):
        return None
    cells = " ".join(lines[headings[-1] + 1 :]).split()
    blocks = _count(cells[3]) if len(cells) >= 6 else None
    return None if blocks is None else blocks * 1024


def find_devices(adb: Adb, serials: Sequence[str] = ()) -> tuple[DeviceFinding, ...]:
    """The devices named by ``serials`` in that order, or all, with what to do for each that cannot be used.

    A device that is named and not listed has the state ``not found``. Raises :class:`DeviceError` where there is no
    list.
    """
    listed = adb.devices()
    wanted = {serial: listed.get(serial, NOT_LISTED) for serial in serials} or listed
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(pool.map(lambda serial: _finding(adb, serial, wanted[serial]), wanted))


def _finding(adb: Adb, serial: str, state: str) -> DeviceFinding:
    if state != USABLE:
        return DeviceFinding(serial, state, None, f"{serial} is {state}; {next_step(state)}")
    try:
        return DeviceFinding(serial, state, read_facts(serial, _ask(Link(adb, serial), _COMMANDS)))
    except DeviceError as error:
        return DeviceFinding(serial, state, None, str(error))
