"""A row of a benchmark from the logs of ``benchmark_model`` or of the benchmark app."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.delegates.nnapi import CPU_DEVICES, nnapi_may_use_cpu
from evaltools.errors import DataError
from evaltools.native.logs.benchmark import NativeBenchmarkLog, parse_benchmark_log
from evaltools.native.logs.delegate_use import FALLBACK_HINT, delegate_used, delegation_proof, of_main_graph
from evaltools.native.logs.delegates import (
    DelegateLog,
    applied_as,
    delegate_lines,
    read_delegate_log,
    taken_by,
    undelegated,
)
from evaltools.native.logs.log_lines import plain_lines
from evaltools.parameter import Value
from evaltools.result.benchmark import BenchmarkRow, LoggedFigures, LoggedRound, StatFigures
from evaltools.result.evaluation import DelegateUsed, RuntimeUsed
from evaltools.stats.latency import median_interval, rounds_ratio

_RUNS_FAILED: Final = re.compile(r"Benchmarking failed\.|Node number \d+ \(.+\) failed to invoke\.")
_UNKNOWN_FLAGS: Final = re.compile(r"Unconsumed cmdline flags: (?P<flags>.+)")
_ADDED: Final = "XNNPACK"


class _Start(Struct, frozen=True):
    """One start of the program, read."""

    text: str
    log: NativeBenchmarkLog
    delegates: DelegateLog


def row_of_log(
    model: int,
    name: str,
    flags: Sequence[str],
    num_threads: int,
    texts: Sequence[str],
    asked: Mapping[str, Mapping[str, Value]],
    node_count: int,
    allow_fallback: bool = False,
    runtime: RuntimeUsed | None = None,
    failures: Sequence[str] = (),
) -> BenchmarkRow:
    """The row of a configuration; ``texts`` are the whole logs of its rounds, one start of the program each.

    ``failures`` says of each round why it did not come to its end, where its device knows: it crashed, was out of time;
    empty where it did, and altogether where all did.
    ``asked`` maps the delegates that were asked for, in order, to their options in force; ``node_count`` is that of the
    model's main graph. A round without times, one whose runs failed, and one whose program did not know a flag makes a
    failed row. So does one whose log does not prove that every delegate that was asked for took nodes; with
    ``allow_fallback`` such a row is measured, and says so. The reason names the round where there are several.
    """
    row = BenchmarkRow(model, name, list(flags), num_threads, "failed", "it was never started", runtime=runtime)
    logs: list[NativeBenchmarkLog] = []
    doubts: dict[str, None] = {}
    for number, (text, known) in enumerate(zip_longest(texts, failures, fillvalue=""), 1):
        place = f"round {number}: " if len(texts) > 1 else ""
        try:
            start = _Start(text, parse_benchmark_log(text), read_delegate_log(delegate_lines(text)))
        except DataError as error:
            return replace(row, reason=place + str(error), logged=logged_figures(logs))
        row = _with_delegation(row, start.delegates, asked, node_count)
        doubt = _doubt(start.delegates, asked)
        failure = known or _why_failed(start, doubt)
        if failure is None and doubt and not allow_fallback:
            failure = f"{doubt}; {FALLBACK_HINT}"
        if failure is not None:
            return replace(row, reason=place + failure, logged=logged_figures(logs))
        if doubt:
            doubts[doubt] = None
        logs.append(start.log)
    if not logs:
        return row
    fallback = "; ".join(doubts) or None
    return replace(row, status="measured", reason=None, fallback=fallback, logged=logged_figures(logs))


def logged_figures(logs: Sequence[NativeBenchmarkLog]) -> LoggedFigures | None:
    """What the logs of rounds say together; None without one that has the times of its runs."""
    rounds = [
        LoggedRound(log.init_us, log.first_inference_us, log.warm_up, log.regular, log.memory)
        for log in logs
        if log.regular is not None
    ]
    if not rounds:
        return None
    regular = [entry.regular for entry in rounds]
    count = sum(entry.count for entry in regular)
    medians = _medians(rounds)
    return LoggedFigures(
        rounds=rounds,
        count=count,
        min_us=min(entry.min_us for entry in regular),
        max_us=max(entry.max_us for entry in regular),
        avg_us=sum(entry.avg_us * entry.count for entry in regular) / count if count else 0.0,
        median_us=float(statistics.median(medians)) if medians else None,
        median_interval=median_interval([[median] for median in medians]) if len(medians) > 1 else None,
    )


def with_logged_ratios(rows: Sequence[BenchmarkRow]) -> list[BenchmarkRow]:
    """Each measured row against the first one of its model, from the medians of rounds in which both took a turn."""
    first: dict[int, BenchmarkRow] = {}
    found = []
    for row in rows:
        if row.status == "measured" and first.setdefault(row.model, row) is not row:
            base, own = (
                [[median] for median in _medians(each.logged.rounds if each.logged else [])]
                for each in (first[row.model], row)
            )
            row = replace(row, versus_first=rounds_ratio(base, own))
        found.append(row)
    return found


def _medians(rounds: Sequence[LoggedRound]) -> list[int]:
    """Those of all rounds, none where one is not known or is of no run."""
    found = [_median(entry.regular) for entry in rounds]
    known = [median for median in found if median is not None]
    return known if len(known) == len(found) else []


def _median(regular: StatFigures) -> int | None:
    return regular.median_us if regular.count else None


def _why_failed(start: _Start, doubt: str) -> str | None:
    """Why there are no figures, or those of something else. A delegate that failed is the reason for what follows."""
    lines = [line.text for line in plain_lines(start.text)]
    unknown = next((found for found in map(_UNKNOWN_FLAGS.fullmatch, lines) if found), None)
    if unknown:
        return f"the program does not know {unknown['flags']} and ran without; leave it out, or use another release"
    if start.log.is_complete:
        failed = next((line for line in lines if _RUNS_FAILED.fullmatch(line)), None)
        return f'runs failed: the log says "{failed}"' if failed else None
    if doubt and start.delegates.refuted:
        return doubt
    known = {*delegate_lines(start.text), *filter(_RUNS_FAILED.fullmatch, start.log.errors)}
    said = [line for line in start.log.errors if line not in known] or list(start.log.errors)
    if said:
        return f'the log says "{said[0]}"'
    last = next((line for line in reversed(lines) if line), "")
    return f'the log ends without times, at "{last}"' if last else "the log is empty"


def _doubt(log: DelegateLog, asked: Mapping[str, Mapping[str, Value]]) -> str:
    """Which delegates are not proven, and why; empty where all are."""
    reasons = undelegated(log, list(asked), nnapi_may_use_cpu(asked.get("NNAPI", {})))
    return "; ".join(f"the {delegate} delegate was asked for, but {reason}" for delegate, reason in reasons.items())


def _with_delegation(
    row: BenchmarkRow, log: DelegateLog, asked: Mapping[str, Mapping[str, Value]], node_count: int
) -> BenchmarkRow:
    """The row with what the delegates took; no proof where the log does not say how many nodes one took."""
    used = [_asked_delegate(log, delegate, asked, node_count) for delegate in asked]
    if _ADDED not in asked and _ADDED in log.created:
        found = delegate_used(_ADDED, False, {}, of_main_graph(taken_by(log, _ADDED, [_ADDED])))
        used.append(replace(found, evidence=found.evidence or f"its log: {_ADDED} was created, its nodes are not said"))
    is_known = all(delegate.nodes is not None or not delegate.evidence for delegate in used)
    return replace(row, delegates=used, delegation=delegation_proof(used, node_count) if is_known else None)


def _asked_delegate(
    log: DelegateLog, delegate: str, asked: Mapping[str, Mapping[str, Value]], node_count: int
) -> DelegateUsed:
    """Where nothing says how many nodes, benchmark_model's word may: a graph executed completely has all of them."""
    found = delegate_used(delegate, True, asked[delegate], taken_by(log, delegate, list(asked)))
    applied = applied_as(log, delegate)
    if delegate == "NNAPI" and log.devices:
        found = replace(found, device=", ".join(log.devices), is_cpu=CPU_DEVICES.issuperset(log.devices))
    if applied is None or applied.coverage == "none":
        return replace(found, nodes=0, partitions=0) if found.nodes is None and delegate in log.created else found
    if applied.coverage == "full":
        return replace(found, nodes=node_count, partitions=1, evidence=found.evidence or _word(delegate, "completely"))
    return replace(found, partitions=applied.kernels, evidence=found.evidence or _word(delegate, "partially"))


def _word(delegate: str, coverage: str) -> str:
    return f"its log: {delegate} executes the graph {coverage}"
