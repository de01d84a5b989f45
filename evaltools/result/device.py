"""Devices, as typed facts: what ``evaltools device list`` finds, and what each did in a run and what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct, field


class DeviceCpu(Struct, frozen=True):
    """A CPU as cpufreq shows it; frequencies in kHz, None where they cannot be read."""

    cpu: int
    governor: str | None
    current_khz: int | None
    lowest_khz: int | None
    highest_khz: int | None


class DeviceConditions(Struct, frozen=True):
    """What changes while a device works, at one moment; None or empty where it does not say.

    ``battery_temperature`` is in tenths of a degree Celsius, as of ``dumpsys battery``. ``thermal_status`` is that
    of ``dumpsys thermalservice``, 0 (none) to 6 (shutdown). ``temperatures`` are in degrees Celsius by name: the
    service's, on boards those of /sys/class/thermal. ``cpu_frequencies`` has the CPUs that are on and have cpufreq.
    """

    battery_level: int | None = None
    battery_temperature: int | None = None
    thermal_status: int | None = None
    temperatures: dict[str, float] = field(default_factory=dict)
    cpu_frequencies: tuple[DeviceCpu, ...] = ()


def hottest(conditions: DeviceConditions) -> float | None:
    """The highest temperature that a device states, in degrees Celsius; None where it states none.

    >>> hottest(DeviceConditions(battery_temperature=287, temperatures={"skin": 31.5}))
    31.5
    """
    battery = [] if conditions.battery_temperature is None else [conditions.battery_temperature / 10]
    return max([*conditions.temperatures.values(), *battery], default=None)


class DeviceFacts(Struct, frozen=True):
    """A device at one moment; None (or empty) where it does not say, as Linux boards have no getprop and no dumpsys.

    ``soc`` is ro.soc.manufacturer and ro.soc.model (from SDK 31 on), else ro.board.platform, else the last name in the
    device tree. ``cpus`` counts those that the device has. ``gpu`` is the name that its driver gives. ``free_bytes`` is
    the space left in /data/local/tmp. ``python`` is the version of ``python3``.
    """

    serial: str
    model: str | None = None
    manufacturer: str | None = None
    soc: str | None = None
    sdk: int | None = None
    android: str | None = None
    abi: str | None = None
    machine: str | None = None
    cpus: int | None = None
    gpu: str | None = None
    conditions: DeviceConditions = DeviceConditions()
    free_bytes: int | None = None
    python: str | None = None


class DeviceFinding(Struct, frozen=True):
    """A device in a ``state`` in adb's words, and its facts.

    Without facts it cannot be used; ``problem`` says why, and what to do.
    """

    serial: str
    state: str
    facts: DeviceFacts | None
    problem: str = ""


class DeviceList(Struct, frozen=True):
    """Everything that ``evaltools device list`` says; ``adb`` is the path of the binary."""

    evaltools: str
    adb: str
    devices: tuple[DeviceFinding, ...]


HOST = "host"
"""The name of this computer beside those of devices."""


class LostAttempt(Struct, frozen=True):
    """Work that a device did not finish, and did again afterwards; ``kind`` in a word, ``reason`` in full."""

    kind: str
    reason: str
    elapsed_s: float


class DeviceWork(Struct, frozen=True):
    """The work of one device.

    ``waited_s`` is what it waited to cool down, ``elapsed_s`` what it took after that, transfers included.
    ``delegate_lines`` are what the runtime and its delegates logged of what was delegated. ``lost`` has the attempts
    before the one that counts.
    """

    serial: str
    started_at: str
    waited_s: float
    elapsed_s: float
    before: DeviceConditions
    after: DeviceConditions
    delegate_lines: tuple[str, ...] = ()
    lost: tuple[LostAttempt, ...] = ()

    @property
    def both(self) -> tuple[DeviceConditions, DeviceConditions]:
        """Its conditions before and after."""
        return self.before, self.after


class DeviceLeftOut(Struct, frozen=True):
    """A device that gave up, and why; nothing of it is in the result."""

    serial: str
    reason: str


class DeviceRun(Struct, frozen=True):
    """How a run was done on devices, of which each did everything.

    ``program``: what ran there; ``benchmark_model`` is started for each run of a model, by a run on this computer.
    ``devices`` are as they were at the beginning, ``work`` is what each did. Where there are several, or this computer
    did the same, configurations are named ``NAME@SERIAL``.
    """

    program: Literal["evaltools", "native", "app", "benchmark_model"]
    devices: tuple[DeviceFacts, ...]
    work: tuple[DeviceWork, ...]
    left_out: tuple[DeviceLeftOut, ...] = ()


def together(runs: Sequence[DeviceRun]) -> DeviceRun | None:
    """The work of several runs with the same program, such as shards, as one; None for none."""
    if not runs:
        return None
    devices = {each.serial: each for run in runs for each in run.devices}
    work = tuple(each for run in runs for each in run.work)
    return DeviceRun(
        runs[0].program, tuple(devices.values()), work, tuple(left for run in runs for left in run.left_out)
    )
