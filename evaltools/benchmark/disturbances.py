"""What was not quiet while something was measured, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.benchmark_result import Conditions
from evaltools.stats.latency_ratio import Drift

STEAL_SHARE: Final = 0.01
"""Of the time of the CPUs in use."""
OTHER_WORK_SHARE: Final = 0.05
"""Of the time of one CPU."""
FREQUENCY_CHANGE: Final = 0.05
DEGREES_RISE: Final = 10.0
HOT_DEGREES: Final = 85.0
DRIFT_CHANGE: Final = 0.05
DRIFT_P_VALUE: Final = 0.01
QUIET_GOVERNOR: Final = "performance"

_STEP_S: Final = 0.01
"""Linux rounds the time of a CPU down to this."""
_WORK_COUNTERS: Final = 5
"""So many such times make up the work of all processes."""


def find_disturbances(
    before: Conditions, after: Conditions, drift: Drift | None, cpu_count: int | None = None
) -> list[str]:
    """What disturbed the time between two samples, one sentence each, with the figures; empty where nothing did.

    Nothing is said of what the samples do not hold. Times that the counters' rounding alone can explain do not count.
    ``drift`` is that of the times measured in between. The load average is held against ``cpu_count``, the CPUs of the
    machine, or the CPUs in use where it is not given.

    >>> start = Conditions(0.5, [0, 1], [], [], {"cpu": 60.0}, 3.0, 100.0, 1.0, 50.0)
    >>> end = Conditions(0.5, [0, 1], [], [], {"cpu": 88.5}, 3.0, 114.0, 11.0, 60.0)
    >>> for sentence in find_disturbances(start, end, Drift(0.12, 0.0004)):
    ...     print(sentence)
    other processes worked 4.00 s in 10.0 s, 40 % of one CPU: end them, or measure when the machine is idle
    cpu rose by 28 degrees to 88 degrees Celsius: let the machine cool down, and pause between runs
    the times rose by 12 % while they were measured (p 0.0004): the machine was not steady
    """
    found = _steal(before, after) + _other_work(before, after) + _frequency(before, after)
    found += _load(before, after, cpu_count or len(after.affinity)) + _temperature(before, after)
    return found + _drift(drift)


def _steal(before: Conditions, after: Conditions) -> list[str]:
    taken = _difference(before.steal_s, after.steal_s)
    available = (after.elapsed_s - before.elapsed_s) * len(after.affinity)
    if taken <= _STEP_S or available <= 0 or taken / available <= STEAL_SHARE:
        return []
    return [
        f"the hypervisor took {taken:.2f} s from this machine's CPUs, {_percent(taken / available)} of the time of the "
        f"{_cpus(len(after.affinity))} in use: other virtual machines worked on its host"
    ]


def _other_work(before: Conditions, after: Conditions) -> list[str]:
    if before.own_s is None or after.own_s is None:
        return []
    elapsed = after.elapsed_s - before.elapsed_s
    others = _difference(before.busy_s, after.busy_s) - _difference(before.own_s, after.own_s)
    if others <= _STEP_S * _WORK_COUNTERS or elapsed <= 0 or others / elapsed <= OTHER_WORK_SHARE:
        return []
    return [
        f"other processes worked {others:.2f} s in {elapsed:.1f} s, {_percent(others / elapsed)} of one CPU: "
        f"end them, or measure when the machine is idle"
    ]


def _frequency(before: Conditions, after: Conditions) -> list[str]:
    pairs = list(zip(before.frequencies_mhz, after.frequencies_mhz, strict=False))
    if before.affinity != after.affinity or len(pairs) != len(after.affinity):
        return []
    changes = [end / start - 1 if start > 0 else 0.0 for start, end in pairs]
    changed = [place for place, change in enumerate(changes) if abs(change) > FREQUENCY_CHANGE]
    if not changed:
        return []
    worst = max(changed, key=lambda place: abs(changes[place]))
    start, end = pairs[worst]
    sentence = (
        f"the frequency of {len(changed)} of {_cpus(len(pairs))} changed, most that of CPU {after.affinity[worst]}: "
        f"from {start:.0f} to {end:.0f} MHz ({100 * changes[worst]:+.0f} %)"
    )
    return [sentence, *_governors(after, changed)]


def _governors(after: Conditions, changed: Sequence[int]) -> list[str]:
    """Of the CPUs whose frequency changed."""
    if len(after.governors) != len(after.affinity):
        return []
    restless = sorted({after.governors[place] for place in changed} - {QUIET_GOVERNOR})
    if not restless:
        return []
    return [
        f"the frequency governor is {' and '.join(restless)}, which changes the frequency: "
        f"set {QUIET_GOVERNOR} to keep it up"
    ]


def _load(before: Conditions, after: Conditions, cpu_count: int) -> list[str]:
    known = [sample.load_average for sample in (before, after) if sample.load_average is not None]
    if not cpu_count or max(known, default=0.0) <= cpu_count:
        return []
    return [
        f"the load average was {max(known):.2f} on {_cpus(cpu_count)}: more wanted to run, this measurement included, "
        f"than could"
    ]


def _temperature(before: Conditions, after: Conditions) -> list[str]:
    """The sensor that is worst: that which rose most, or else the hottest."""
    rises = {
        sensor: degrees - before.temperatures[sensor]
        for sensor, degrees in after.temperatures.items()
        if sensor in before.temperatures
    }
    advice = "let the machine cool down, and pause between runs"
    if rises and max(rises.values()) > DEGREES_RISE:
        sensor = max(rises, key=lambda name: rises[name])
        degrees = after.temperatures[sensor]
        return [f"{sensor} rose by {rises[sensor]:.0f} degrees to {degrees:.0f} degrees Celsius: {advice}"]
    if after.temperatures and max(after.temperatures.values()) > HOT_DEGREES:
        sensor = max(after.temperatures, key=lambda name: after.temperatures[name])
        return [f"{sensor} was at {after.temperatures[sensor]:.0f} degrees Celsius: {advice}"]
    return []


def _drift(drift: Drift | None) -> list[str]:
    if drift is None or abs(drift.change) <= DRIFT_CHANGE or drift.p_value >= DRIFT_P_VALUE:
        return []
    from evaltools.report.table_cells import p_value

    word = "rose" if drift.change > 0 else "fell"
    return [
        f"the times {word} by {100 * abs(drift.change):.0f} % while they were measured ({p_value(drift.p_value)}): "
        f"the machine was not steady"
    ]


def _difference(before: float | None, after: float | None) -> float:
    """In seconds, to the millisecond; 0 where one is not known."""
    return 0.0 if before is None or after is None else round(after - before, 3)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _cpus(count: int) -> str:
    return f"{count} CPU" if count == 1 else f"{count} CPUs"
