"""What disturbed a measurement, in words."""

from __future__ import annotations

from typing import Final

from evaltools.report.words.numbers import p_value
from evaltools.result.benchmark import Conditions
from evaltools.stats.latency import Drift, is_clear

STEAL_SHARE: Final = 0.01
"""Of the time of the CPUs in use."""
OTHER_WORK_SHARE: Final = 0.5
"""Of the time of the CPUs that the measurement leaves free."""
OTHER_WORK_WITHOUT_FREE_CPU: Final = 0.05
"""Of the time of one CPU, where the measurement leaves none free."""
FREQUENCY_CHANGE: Final = 0.15
DEGREES_RISE: Final = 10.0
HOT_DEGREES: Final = 85.0
QUIET_GOVERNOR: Final = "performance"

_STEP_S: Final = 0.01
"""Linux rounds the time of a CPU down to this."""
_WORK_COUNTERS: Final = 5
"""So many such times make up the work of all processes."""
_COOL_DOWN: Final = "let the machine cool down, and pause between runs"
_WARM_UP: Final = "warm up longer, as with --warmup_min_secs=5"


def find_disturbances(
    before: Conditions, after: Conditions, drift: Drift | None, cpu_count: int | None = None, *, threads: int = 1
) -> list[str]:
    """What disturbed a measurement between two samples: one sentence each, with figures and what to do about it.

    What the samples do not contain is not judged. CPU times that the rounding of the counters alone can explain do not
    count. ``drift`` is the trend of the times that were measured, ``cpu_count`` the number of CPUs of the machine, by
    default that of the CPUs in use. ``threads`` is the configuration's number of threads; -1 (chosen by the runtime)
    counts as 1.

    Other processes disturb where other CPUs are not free for them. The measurement needs one CPU per thread, as far as
    it may use them, which leaves ``free = cpu_count - needed``. If CPUs are free, other processes disturb from half of
    what these can do, since they share caches, memory and often cores with the measurement. If none is free, they
    disturb from 5 % of one CPU.

    >>> start = Conditions(0.5, [0, 1], [], [], {"cpu": 60.0}, 3.0, 100.0, 1.0, 50.0)
    >>> end = Conditions(0.5, [0, 1], [], [], {"cpu": 88.5}, 3.0, 118.0, 11.0, 60.0)
    >>> for sentence in find_disturbances(start, end, Drift(0.12, 0.0004)):
    ...     print(sentence)
    other processes worked 8.00 s in 10.0 s, 80 % of one CPU, with 1 of 2 CPUs free for them: end them, or measure \
when the machine is idle
    cpu rose by 28 degrees to 88 degrees Celsius: let the machine cool down, and pause between runs
    the times rose by 12 % while they were measured (p 0.0004): let the machine cool down, and pause between runs
    """
    machine_cpus = cpu_count or len(after.affinity)
    known_threads = max(1, threads)
    found = _threads(after, known_threads) + _steal(before, after)
    found += _other_work(before, after, machine_cpus, known_threads) + _frequency(before, after)
    return found + _load(before, after, machine_cpus) + _temperature(before, after) + _drift(drift)


def _threads(after: Conditions, threads: int) -> list[str]:
    cpus = len(after.affinity)
    if not 0 < cpus < threads:
        return []
    return [f"{threads} threads on {_cpus(cpus)}: they wait for each other; use at most {cpus}"]


def _steal(before: Conditions, after: Conditions) -> list[str]:
    taken = _difference(before.steal_s, after.steal_s)
    elapsed = after.elapsed_s - before.elapsed_s
    available = elapsed * len(after.affinity)
    if taken <= _STEP_S or available <= 0 or taken / available <= STEAL_SHARE:
        return []
    return [
        f"the hypervisor took {_seconds(taken)} in {_seconds(elapsed)}, {_percent(taken / available)} of the time of "
        f"the {_cpus(len(after.affinity))} in use, for other virtual machines: measure when its host is less busy, "
        f"or on a machine of its own"
    ]


def _other_work(before: Conditions, after: Conditions, cpu_count: int, threads: int) -> list[str]:
    if before.own_s is None or after.own_s is None:
        return []
    elapsed = after.elapsed_s - before.elapsed_s
    others = _difference(before.busy_s, after.busy_s) - _difference(before.own_s, after.own_s)
    free = max(0, cpu_count - min(threads, len(after.affinity)))
    most = OTHER_WORK_SHARE * free if free else OTHER_WORK_WITHOUT_FREE_CPU
    if others <= _STEP_S * _WORK_COUNTERS or elapsed <= 0 or others / elapsed <= most:
        return []
    return [
        f"other processes worked {_seconds(others)} in {_seconds(elapsed)}, {_percent(others / elapsed)} of one CPU, "
        f"with {free} of {_cpus(cpu_count)} free for them: end them, or measure when the machine is idle"
    ]


def _frequency(before: Conditions, after: Conditions) -> list[str]:
    """The highest frequency of the CPUs in use. CPUs without work reduce their frequency, which slows nothing down."""
    if before.affinity != after.affinity or not before.frequencies_mhz or not after.frequencies_mhz:
        return []
    start, end = max(before.frequencies_mhz), max(after.frequencies_mhz)
    change = end / start - 1 if start > 0 else 0.0
    if abs(change) <= FREQUENCY_CHANGE:
        return []
    return [
        f"the highest frequency of the {_cpus(len(after.affinity))} in use {'rose' if change > 0 else 'fell'} by "
        f"{100 * abs(change):.0f} %, from {start:.0f} to {end:.0f} MHz: {_frequency_advice(after, change)}"
    ]


def _frequency_advice(after: Conditions, change: float) -> str:
    restless = sorted(set(after.governors) - {QUIET_GOVERNOR})
    if restless:
        return f"set the frequency governor to {QUIET_GOVERNOR}; it is {' and '.join(restless)}"
    return _WARM_UP if change > 0 else _COOL_DOWN


def _load(before: Conditions, after: Conditions, cpu_count: int) -> list[str]:
    known = [sample.load_average for sample in (before, after) if sample.load_average is not None]
    if not cpu_count or max(known, default=0.0) <= cpu_count:
        return []
    return [
        f"the load average was {max(known):.2f} on {_cpus(cpu_count)}, more than can run at once, this measurement "
        f"included: end other processes, or use fewer threads"
    ]


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


def _difference(before: float | None, after: float | None) -> float:
    """The difference in seconds, rounded to milliseconds; 0 where one of the two is not known."""
    return 0.0 if before is None or after is None else round(after - before, 3)


def _seconds(seconds: float) -> str:
    """Seconds with three digits, never in scientific notation."""
    return f"{seconds:.0f} s" if seconds >= 99.95 else f"{seconds:#.3g} s"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"


def _cpus(count: int) -> str:
    return f"{count} CPU" if count == 1 else f"{count} CPUs"
