"""Where results were measured: the machine, several places of one run, and the fastest on the CPU of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.result.device import HOST, DeviceRun
from evaltools.result.facts import Environment, Load
from evaltools.result.metrics import figures_of, in_order
from evaltools.result.result import Result, Row


def machine_of(environment: Environment, run: DeviceRun | None, place: str = "") -> str:
    """The machine in words: this computer's processor, or the devices of a run; ``place`` is the one that is meant."""
    here = f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"
    if run is None or place == HOST:
        return here
    found = [facts for facts in run.devices if facts.serial == place] or run.devices
    names = [f"{facts.model or 'device'} {facts.serial}" + (f" ({facts.soc})" if facts.soc else "") for facts in found]
    return " and ".join([here, *names] if run.program == "benchmark_model" else names)


def reference_of(row: Row, rows: Sequence[Row]) -> Row | None:
    """The reference of its model, and job, that a row is compared with: that of its own place, else the first one."""
    references = [each for each in rows if each.role == "reference" and (each.model, each.job) == (row.model, row.job)]
    own = [each for each in references if each.place == row.place]
    return next(iter(own + references), None)


_ON_CPU: Final = frozenset({"XNNPACK", "YNNPACK"})
"""The delegates that are kernels of the CPU."""


def runs_on_cpu(row: Row) -> bool:
    """Whether it was measured on the CPU, as asked: without delegates, or with those that are its kernels.

    A GPU in software is not such a configuration: no app uses it.
    """
    return row.status == "measured" and opens_on_cpu(row)


def opens_on_cpu(row: Row) -> bool:
    """The same of what was opened, whether it was measured or not."""
    return not row.fallback and row.runtime is not None and all(each.name in _ON_CPU for each in row.delegates)


def fastest_on_cpu(rows: Sequence[Row], place: str) -> Row | None:
    """The one with the smallest median time at a place; None where none has a time."""
    timed = [
        (time, row) for row in rows if row.place == place and runs_on_cpu(row) and (time := row.value("latency_ms"))
    ]
    return min(timed, key=lambda found: found[0])[1] if timed else None


def with_cpu_ratios(rows: Sequence[Row], paired: Mapping[tuple[str, str], float]) -> list[Row]:
    """The rows, in which each has its time by that of the fastest one on the CPU.

    ``paired`` are the ratios of times on the same examples, of the second of two names by the first.
    """
    return [_with_ratio(row, rows, paired) for row in rows]


def _with_ratio(row: Row, rows: Sequence[Row], paired: Mapping[tuple[str, str], float]) -> Row:
    cpu, own = fastest_on_cpu(rows, row.place), row.value("latency_ms")
    base = None if cpu is None else cpu.value("latency_ms")
    if cpu is None or cpu is row or row.status != "measured" or not own or not base:
        return row
    ratio = paired.get((cpu.name, row.name), own / base)
    return replace(row, figures=in_order(row.figures | figures_of({"latency_cpu_ratio": ratio})))


def on_devices(result: Result, run: DeviceRun | None, environment: Environment) -> Result:
    """The result of a run on devices, where nothing else is started while they measure; None: on this computer."""
    if run is None:
        return result
    quiet = Load(environment.cpu_count, 0.0, 0.0)
    rows = [replace(row, load=quiet) for row in result.rows]
    return replace(result, rows=rows, device_run=run, environment=environment)
