"""What disturbed a measurement, in words."""

from __future__ import annotations

from typing import Final

from evaltools.metrics.latency import Drift, is_clear
from evaltools.report.words.facts import counted
from evaltools.report.words.numbers import p_value
from evaltools.result.rounds import Conditions

FREQUENCY_CHANGE: Final = 0.15
DEGREES_RISE: Final = 10.0
HOT_DEGREES: Final = 85.0
QUIET_GOVERNOR: Final = "performance"

_COOL_DOWN: Final = "let the machine cool down, and pause between runs"
_WARM_UP: Final = "warm up longer, as with --warmup_min_secs=5"


def find_disturbances(before: Conditions, after: Conditions, drift: Drift | None, *, threads: int = 1) -> list[str]:
    """What disturbed a measurement between two samples: one sentence each, with figures and what to do about it.

    What the samples do not contain is not judged. ``drift`` is the trend of the times that were measured. ``threads``
    is the configuration's number of threads; -1 (chosen by the runtime) counts as 1. What other processes did meanwhile
    is measured beside: :mod:`evaltools.engine.sampling`.

    >>> start, end = Conditions([0, 1], [], [], {"cpu": 60.0}), Conditions([0, 1], [], [], {"cpu": 88.5})
    >>> for sentence in find_disturbances(start, end, Drift(0.12, 0.0004)):
    ...     print(sentence)
    cpu rose by 28 degrees to 88 degrees Celsius: let the machine cool down, and pause between runs
    the times rose by 12 % while they were measured (p 0.0004): let the machine cool down, and pause between runs
    """
    found = _threads(after, max(1, threads)) + _frequency(before, after)
    return found + _temperature(before, after) + _drift(drift)


def _threads(after: Conditions, threads: int) -> list[str]:
    cpus = len(after.affinity)
    if not 0 < cpus < threads:
        return []
    return [f"{threads} threads on {counted(cpus, 'CPU')}: they wait for each other; use at most {cpus}"]


def _frequency(before: Conditions, after: Conditions) -> list[str]:
    """The highest frequency of the CPUs in use. CPUs without work reduce their frequency, which slows nothing down."""
    if before.affinity != after.affinity or not before.frequencies_mhz or not after.frequencies_mhz:
        return []
    start, end = max(before.frequencies_mhz), max(after.frequencies_mhz)
    change = end / start - 1 if start > 0 else 0.0
    if abs(change) <= FREQUENCY_CHANGE:
        return []
    in_use = counted(len(after.affinity), "CPU")
    return [
        f"the highest frequency of the {in_use} in use {'rose' if change > 0 else 'fell'} by "
        f"{100 * abs(change):.0f} %, from {start:.0f} to {end:.0f} MHz: {_frequency_advice(after, change)}"
    ]


def _frequency_advice(after: Conditions, change: float) -> str:
    restless = sorted(set(after.governors) - {QUIET_GOVERNOR})
    if restless:
        return f"set the frequency governor to {QUIET_GOVERNOR}; it is {' and '.join(restless)}"
    return _WARM_UP if change > 0 else _COOL_DOWN


def _temperature(before: Conditions, after: Conditions) -> list[str]:
    """The sensor whose temperature rose most; if none rose, the hottest one."""
    rises = {
        sensor: degrees - before.temperatures[sensor]
        for sensor, degrees in after.temperatures.items()
        if sensor in before.temperatures
    }
    if rises and max(rises.values()) > DEGREES_RISE:
        sensor = max(rises, key=lambda name: rises[name])
        degrees = after.temperatures[sensor]
        return [f"{sensor} rose by {rises[sensor]:.0f} degrees to {degrees:.0f} degrees Celsius: {_COOL_DOWN}"]
    if after.temperatures and max(after.temperatures.values()) > HOT_DEGREES:
        sensor = max(after.temperatures, key=lambda name: after.temperatures[name])
        return [f"{sensor} was at {after.temperatures[sensor]:.0f} degrees Celsius: {_COOL_DOWN}"]
    return []


def _drift(drift: Drift | None) -> list[str]:
    if drift is None or not is_clear(drift):
        return []
    word = "rose" if drift.change > 0 else "fell"
    return [
        f"the times {word} by {100 * abs(drift.change):.0f} % while they were measured ({p_value(drift.p_value)}): "
        f"{_COOL_DOWN if drift.change > 0 else _WARM_UP}"
    ]
