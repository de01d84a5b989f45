"""The figures of a benchmark, for a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools.metrics.op_profile import OpProfile, explained_share, slowdown, top_on_cpu, total_us
from evaltools.report.benchmark_result import BenchmarkFigures, BenchmarkResult, BenchmarkRow
from evaltools.report.table_cells import device_text, milliseconds, one_line

_KB_PER_MB: Final = 1024
_MOST_OPERATORS: Final = 5
_MOST_DISTURBANCES: Final = 3
_LOW_SHARE: Final = 0.8
_MUCH_SLOWER: Final = 1.5


def print_benchmark(result: BenchmarkResult, console: Console) -> None:
    """Rows by latency, those that failed with their reasons, what was not quiet, operators left on the CPU."""
    measured = sorted((row for row in result.rows if row.figures), key=_median_us)
    if measured:
        console.print(_table(result, measured))
    for row in result.rows:
        if row.status == "failed":
            console.print(f"{label(result, row)} failed: {row.reason}", style="bold red")
        elif row.fallback:
            console.print(f"{label(result, row)} FALLBACK: {row.fallback}", style="bold red")
    for row in measured:
        _print_disturbances(label(result, row), row, 1 if len(measured) > 1 else _MOST_DISTURBANCES, console)
    for row in measured:
        _print_operators(label(result, row), row, console)


def label(result: BenchmarkResult, row: BenchmarkRow) -> str:
    """The configuration's name, with the model where there are several."""
    if len(result.models) == 1:
        return row.name
    return f"{one_line(Path(result.models[row.model].file).stem)}, {row.name}"


def describe_row(row: BenchmarkRow) -> str:
    """One line: what runs it, with proof."""
    if row.runtime is None or row.delegation is None:
        return f"failed: {row.reason}"
    threads = "threads chosen by the runtime" if row.num_threads == -1 else f"{row.num_threads} thread"
    parts = [f"{row.runtime.package} {row.runtime.version}", f"{row.runtime.kernels} kernels"]
    parts.append(threads if row.num_threads in (1, -1) else f"{threads}s")
    for delegate in row.delegates:
        if delegate.nodes is None:
            parts.append(f"{delegate.name} not created")
            continue
        added = "" if delegate.requested else " (added by the runtime)"
        device = device_text(delegate.device, delegate.is_cpu)
        parts.append(f"{delegate.name}{added}{device} {delegate.nodes} of {row.delegation.total_nodes} nodes")
    return ", ".join(parts)


def _median_us(row: BenchmarkRow) -> float:
    return row.figures.inference.p50_us if row.figures and row.figures.inference.count else math.inf


def _table(result: BenchmarkResult, rows: Sequence[BenchmarkRow]) -> Table:
    with_accuracy = any(row.accuracy for row in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    if len(result.models) > 1:
        table.add_column("model", overflow="fold")
        table.add_column("MB", justify="right")
    table.add_column("configuration", overflow="fold")
    headings = [
        "delegated",
        "median [95 %]",
        "average",
        "p95",
        "with reading",
        "load",
        "first run",
        "peak MB",
        "steady MB",
    ]
    for heading in (*headings, *(("accuracy", "front") if with_accuracy else ())):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        assert row.figures is not None
        model = result.models[row.model]
        cells = [one_line(Path(model.file).stem), f"{model.size_bytes / 1e6:.2f}"] if len(result.models) > 1 else []
        cells += [row.name, _delegated(row), *_times(row.figures), *_memory(row)]
        if with_accuracy:
            cells.append(f"{row.accuracy.metric} {100 * row.accuracy.value:.2f} %" if row.accuracy else "-")
            cells.append("*" if row.on_latency_front else "")
        table.add_row(*cells)
    return table


def _delegated(row: BenchmarkRow) -> str:
    proof = row.delegation
    return f"{proof.delegated_nodes}/{proof.total_nodes}" if proof and row.delegates else "-"


def _times(figures: BenchmarkFigures) -> list[str]:
    init = milliseconds(figures.init.p50_us)
    if not figures.inference.count:
        return ["-", "-", "-", "-", init, "-"]
    span = figures.median_interval
    interval = f" [{span.low / 1000:.3g}, {span.high / 1000:.3g}]" if span else ""
    return [
        milliseconds(figures.inference.p50_us) + interval,
        milliseconds(figures.inference.avg_us),
        milliseconds(figures.percentiles["95"]),
        milliseconds(figures.run_and_read.p50_us),
        init,
        milliseconds(figures.first_run.p50_us),
    ]


def _memory(row: BenchmarkRow) -> list[str]:
    peaks = [entry.memory.peak_kb for entry in row.rounds if entry.memory.peak_kb is not None]
    steady = [entry.memory.steady_kb for entry in row.rounds if entry.memory.steady_kb is not None]
    return [f"{max(values) / _KB_PER_MB:.1f}" if values else "-" for values in (peaks, steady)]


def _print_disturbances(name: str, row: BenchmarkRow, most: int, console: Console) -> None:
    """Each once, whichever round it disturbed."""
    found = list(dict.fromkeys(text for entry in row.rounds for text in entry.disturbances))
    more = f" (and {len(found) - most} more, in the JSON result)" if len(found) > most else ""
    for number, text in enumerate(found[:most], 1):
        console.print(f"{name}: not quiet: {text}{more if number == most else ''}", style="yellow")


def _print_doubts(name: str, profile: OpProfile, console: Console) -> None:
    """Where the operators' times say little about the runs that were measured."""
    share, factor = explained_share(profile), slowdown(profile)
    if share is not None and share < _LOW_SHARE:
        console.print(f"{name}: the operators make up {100 * share:.0f} % of a run: it is too short for their times")
    if factor is not None and factor > _MUCH_SLOWER:
        console.print(f"{name}: profiled runs took {factor:.1f} times as long as others: trust shares, not times")


def _print_operators(name: str, row: BenchmarkRow, console: Console) -> None:
    if row.profile_failure is not None:
        console.print(f"{name}: operators are not profiled: {row.profile_failure}", style="yellow")
    if row.profile is None or not row.profile.ops:
        return
    _print_doubts(name, row.profile, console)
    total = total_us(row.profile)
    left = top_on_cpu(row.profile, _MOST_OPERATORS)
    if not left:
        console.print(f"{name}: no operator is left on plain CPU kernels")
        return
    console.print(f"{name}: top operators left on the CPU, of {milliseconds(total / row.profile.runs)} per run")
    for op in left:
        time_us = sum(op.times_us)
        node = "" if op.node is None else f" node {op.node}"
        console.print(
            f"  {milliseconds(time_us / row.profile.runs):>9}  {100 * time_us / total:5.1f} %  {op.type}{node}"
        )
