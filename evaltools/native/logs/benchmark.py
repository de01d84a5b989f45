"""What logs of ``benchmark_model``, of the benchmark app, or of ours in their words say, and a row made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile, zip_longest
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import DataError
from evaltools.native.logs.delegates import DelegateLog, delegate_lines, read_delegate_log
from evaltools.native.logs.delegation import FALLBACK_HINT, LoggedDelegation, delegation_of
from evaltools.native.logs.log_lines import plain_lines
from evaltools.result.facts import DelegateUsed, RuntimeUsed
from evaltools.result.result import Row
from evaltools.result.rounds import LoggedMemory, LoggedRound, Measured, StatFigures

_INT: Final = r"-?\d{1,18}"
_FINITE: Final = rf"{_INT}(?:\.\d{{1,18}})?(?:e[+-]?\d{{1,2}})?"
_REAL: Final = rf"(?:{_FINITE}|-?nan|-?inf)"
_PARAMETER: Final = re.compile(r"(?P<name>[^:\[\]]*[^:\[\]\s])\s*: \[(?P<value>.*)\]")
_LOADED: Final = re.compile(r"Loaded model (?P<path>.+)")
_STAT: Final = re.compile(
    rf"count=(?P<count>\d{{1,18}})(?:(?<=count=0)| curr=(?P<equal>{_INT})(?:\(all same\))?"
    rf"| first=(?P<first>{_INT}) curr=(?P<last>{_INT}) min=(?P<min>{_INT}) max=(?P<max>{_INT})"
    rf" avg=(?P<avg>{_REAL}) std=(?P<std>{_INT}))"
    rf"(?: p5=(?P<p5>{_INT}) median=(?P<median>{_INT}) p95=(?P<p95>{_INT}))?"
)
_TIMINGS: Final = re.compile(
    rf"Inference timings in us: Init: (?P<init>{_INT}), First inference: (?P<first>{_INT}), "
    rf"Warmup \(avg\): {_REAL}, Inference \(avg\): {_REAL}"
)
_APP_TIMINGS: Final = re.compile(
    rf"Average inference timings in us: Warmup: {_REAL}, Init: (?P<init>{_INT}), (?:Inference|no stats): {_REAL}"
    r"(?:Overall .*)?"
)
"""The app logs its times as an error, so that they stand out; older releases of the program have this line too."""
_MEMORY: Final = re.compile(
    r"(?:Memory footprint delta from the start of the tool|Peak memory footprint) \(MB\): "
    rf"init=(?P<init>{_REAL}) overall=(?P<overall>{_REAL})"
)
_PEAK: Final = re.compile(rf"Overall peak memory footprint \(MB\) via periodic monitoring: (?P<peak>{_REAL})")
_RUNS_FAILED: Final = re.compile(r"Benchmarking failed\.|Node number \d+ \(.+\) failed to invoke\.")
_UNKNOWN_FLAGS: Final = re.compile(r"Unconsumed cmdline flags: (?P<flags>.+)")


class NativeBenchmarkLog(Struct, frozen=True):
    """What the log of one start of the program says.

    ``parameters`` maps what the log calls each flag to its value, both as printed. ``errors`` has what was logged as an
    error or as fatal. ``round`` is None where the log ends before the times; the last runs may have failed where it is
    there.
    """

    parameters: dict[str, str]
    errors: tuple[str, ...]
    round: LoggedRound | None


def parse_benchmark_log(text: str) -> NativeBenchmarkLog:
    r"""Read the log of one benchmark, whole or cut off.

    Prefixes (see :mod:`evaltools.native.logs.log_lines`), percentiles and memory may be missing. Lines about anything
    else are passed over. Raises :class:`DataError` where the text holds more than one benchmark.

    >>> log = parse_benchmark_log("INFO: Graph: [a.tflite]\nINFO: Loaded model a.tflite")
    >>> log.parameters, log.round
    ({'Graph': 'a.tflite'}, None)
    """
    records = plain_lines(text)
    lines = [record.text for record in records if record.level in ("", "INFO")]
    errors = [record.text for record in records if record.level in ("ERROR", "FATAL")]
    stats = [figures for figures in map(_stat_figures, lines) if figures is not None]
    if len(stats) > 2:
        message = f"the log has {len(stats)} lines of times, one benchmark has 2; give the log of one benchmark"
        raise DataError(message)
    timings = _first(_TIMINGS, lines) or _first(_APP_TIMINGS, [*lines, *errors])
    found = None
    if len(stats) == 2 and timings is not None:
        warm_up, regular = stats
        first_us = int(timings["first"]) if timings.re is _TIMINGS else warm_up.first_us
        found = LoggedRound(int(timings["init"]), first_us, warm_up, regular, _memory(lines))
    return NativeBenchmarkLog(
        parameters=_parameters(lines),
        errors=tuple(text for text in errors if _APP_TIMINGS.fullmatch(text) is None),
        round=found,
    )


def unknown_flags(text: str) -> str:
    """The flags that the program says it does not know, empty where it knows all."""
    found = _first(_UNKNOWN_FLAGS, [line.text for line in plain_lines(text)])
    return found["flags"] if found else ""


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return next((found for found in map(pattern.fullmatch, lines) if found), None)


def _parameters(lines: Sequence[str]) -> dict[str, str]:
    """They stand before the model is loaded; reports after it may look alike."""
    before = takewhile(lambda line: _LOADED.fullmatch(line) is None, lines)
    return {found["name"]: found["value"] for found in map(_PARAMETER.fullmatch, before) if found}


def _stat_figures(line: str) -> StatFigures | None:
    """The figures of a stat line, which is short where all samples are equal, and shorter where there is none."""
    found = _STAT.fullmatch(line)
    if found is None:
        return None
    equal = found["equal"] or "0"
    first, last, smallest, largest = (int(found[name] or equal) for name in ("first", "last", "min", "max"))
    p5, median, p95 = (None if found[name] is None else int(found[name]) for name in ("p5", "median", "p95"))
    return StatFigures(
        count=int(found["count"]),
        first_us=first,
        last_us=last,
        min_us=smallest,
        max_us=largest,
        avg_us=float(found["avg"] or equal),
        std_us=int(found["std"] or 0),
        p5_us=p5,
        median_us=median,
        p95_us=p95,
    )


def _memory(lines: Sequence[str]) -> LoggedMemory | None:
    growth, peak = _first(_MEMORY, lines), _first(_PEAK, lines)
    if growth is None:
        return None
    return LoggedMemory(float(growth["init"]), float(growth["overall"]), float(peak["peak"]) if peak else None)


def measured_of_logs(
    model: int,
    configuration: Configuration,
    node_count: int,
    runtime: RuntimeUsed,
    texts: Sequence[str],
    failures: Sequence[str] = (),
    allow_fallback: bool = False,
) -> Measured:
    """What was measured of a configuration; ``texts`` are the whole logs of its rounds, one start of the program each.

    ``failures`` says of each round why it did not come to its end, where its device knows: it crashed, was out of time;
    empty where it did, and altogether where all did. ``node_count`` is that of the model's main graph. A round without
    times, one whose runs failed, and one whose program did not know a flag makes a failed row. So does one whose log
    does not prove that every delegate that was asked for took nodes; with ``allow_fallback`` such a row is measured,
    and says so. The reason names the round where there are several.
    """
    row = Row(
        configuration.name,
        status="not measured",
        reason="it was never started",
        model=model,
        flags=configuration.to_flags(),
        num_threads=configuration.num_threads,
        runtime=replace(runtime, kernels=configuration.kernel_set),
    )
    rounds: list[LoggedRound] = []
    doubts: dict[str, None] = {}
    for number, (text, known) in enumerate(zip_longest(texts, failures, fillvalue=""), 1):
        log = read_delegate_log(delegate_lines(text))
        taken = delegation_of(configuration, log, node_count)
        row = _with_delegation(row, taken, log)
        found = _round_of(text, log, taken.why_not)
        failure = known or (found if isinstance(found, str) else "")
        if taken.why_not and not failure:
            doubts[taken.why_not] = None
            failure = "" if allow_fallback else f"{taken.why_not}; {FALLBACK_HINT}"
        if failure or isinstance(found, str):
            place = f"round {number}: " if len(texts) > 1 else ""
            return Measured(replace(row, reason=place + failure), logged=rounds)
        rounds.append(found)
    if rounds:
        row = replace(row, status="measured", reason="", fallback="; ".join(doubts))
    return Measured(row, logged=rounds)


def _round_of(text: str, delegates: DelegateLog, doubt: str | None) -> LoggedRound | str:
    """The figures of a start, or why there are none, or those of something else.

    A delegate that failed is the reason for what follows.
    """
    try:
        log = parse_benchmark_log(text)
    except DataError as error:
        return str(error)
    lines = [line.text for line in plain_lines(text)]
    if unknown := unknown_flags(text):
        return f"the program does not know {unknown} and ran without; leave it out, or use another release"
    failed = _first(_RUNS_FAILED, lines)
    if log.round is not None:
        return f'runs failed: the log says "{failed[0]}"' if failed else log.round
    if doubt and delegates.refuted:
        return doubt
    known = {*delegate_lines(text), *filter(_RUNS_FAILED.fullmatch, log.errors)}
    said = [line for line in log.errors if line not in known] or list(log.errors)
    if said:
        return f'the log says "{said[0]}"'
    last = next((line for line in reversed(lines) if line), "")
    return f'the log ends without times, at "{last}"' if last else "the log is empty"


def _with_delegation(row: Row, taken: LoggedDelegation, log: DelegateLog) -> Row:
    """The row with what the delegates took; no proof where the log does not say how many nodes one took."""
    used = list(taken.delegates)
    if XNNPACK.name in log.created and XNNPACK.name not in [delegate.name for delegate in used]:
        said = f"its log: {XNNPACK.name} was created, its nodes are not said"
        used.append(DelegateUsed(XNNPACK.name, False, {}, None, None, evidence=said))
    is_known = all(delegate.nodes is not None or not delegate.evidence for delegate in used)
    return replace(row, delegates=used, delegation=taken.proof if is_known else None)
