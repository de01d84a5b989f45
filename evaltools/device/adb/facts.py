"""What a device is and how it is doing: one shell command, and what adb says of its features."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from evaltools.device.adb.adb import SHELL_TIMEOUT_S, Adb
from evaltools.device.adb.parsers import (
    last_line,
    parse_battery,
    parse_count,
    parse_frequencies,
    parse_identity,
    parse_properties,
    parse_python,
    parse_soc,
    parse_thermal,
    parse_zones,
)
from evaltools.device.adb.sections import facts_command, split_sections
from evaltools.device.adb.states import USABLE
from evaltools.device.files.transfer import free_bytes
from evaltools.result.device import DeviceFacts


def device_facts(adb: Adb, serial: str, timeout_s: float = SHELL_TIMEOUT_S) -> DeviceFacts:
    """Ask a device for its facts with one shell command, and adb for its features; raises :class:`DeviceError`."""
    mark = f"evaltools-{uuid.uuid4().hex[:12]}"
    answer = adb.shell(serial, facts_command(mark), timeout_s)
    return read_facts(serial, split_sections(answer.text, mark), adb.features(serial))


def read_facts(serial: str, sections: Mapping[str, str], features: Sequence[str]) -> DeviceFacts:
    """The facts in the answers of :func:`evaltools.device.sections.facts_command`.

    >>> facts = read_facts("R5", {"machine": "aarch64", "cpus": "0-7"}, ["shell_v2"])
    >>> facts.machine, facts.cpus, facts.sdk
    ('aarch64', 8, None)
    """
    properties = parse_properties(sections.get("properties", ""))
    level, temperature = parse_battery(sections.get("battery", ""))
    status, temperatures = parse_thermal(sections.get("thermal", ""))
    python, python_path = parse_python(sections.get("python", ""))
    sdk = properties.get("ro.build.version.sdk", "")
    return DeviceFacts(
        serial=serial,
        state=USABLE,
        model=properties.get("ro.product.model") or last_line(sections.get("model", "")),
        manufacturer=properties.get("ro.product.manufacturer"),
        soc=parse_soc(properties, sections.get("compatible", "")),
        sdk=int(sdk) if sdk.isdigit() else None,
        android=properties.get("ro.build.version.release"),
        abi=properties.get("ro.product.cpu.abi"),
        identity=parse_identity(sections.get("identity", "")),
        machine=last_line(sections.get("machine", "")),
        cpus=parse_count(sections.get("cpus", "")),
        battery_level=level,
        battery_temperature=temperature,
        thermal_status=status,
        temperatures=temperatures or parse_zones(sections.get("zones", "")),
        cpu_frequencies=parse_frequencies(sections.get("cpufreq", "")),
        adb_features=tuple(features),
        free_bytes=free_bytes(sections.get("space", "")),
        python=python,
        python_path=python_path,
    )
