"""What a log of ``benchmark_model``, or of ours in its words, says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.native.logs.delegates import LoggedDelegation, logged_delegation
from evaltools.native.logs.log_lines import plain_lines
from evaltools.result.benchmark import LoggedMemory, StatFigures

_INT: Final = r"-?\d{1,18}"
_FINITE: Final = rf"{_INT}(?:\.\d{{1,18}})?(?:e[+-]?\d{{1,2}})?"
_REAL: Final = rf"(?:{_FINITE}|-?nan|-?inf)"
_PARAMETER: Final = re.compile(r"(?P<name>[^:\[\]]*[^:\[\]\s])\s*: \[(?P<value>.*)\]")
_LOADED: Final = re.compile(r"Loaded model (?P<path>.+)")
_MODEL_SIZE: Final = re.compile(rf"The input model file size \(MB\): (?P<size>{_REAL})")
_SESSION: Final = re.compile(rf"Initialized session in (?P<ms>{_FINITE})ms\.?")
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
_OLD_TIMINGS: Final = re.compile(
    rf"Average inference timings in us: Warmup: {_REAL}, Init: (?P<init>{_INT}), (?:Inference|no stats): {_REAL}"
    r"(?:Overall .*)?"
)
_MEMORY: Final = re.compile(
    r"(?:Memory footprint delta from the start of the tool|Peak memory footprint) \(MB\): "
    rf"init=(?P<init>{_REAL}) overall=(?P<overall>{_REAL})"
)
_PEAK: Final = re.compile(rf"Overall peak memory footprint \(MB\) via periodic monitoring: (?P<peak>{_REAL})")


class NativeBenchmarkLog(Struct, frozen=True):
    """What a log says; None or empty where it does not say it. Times are in microseconds.

    ``parameters`` maps what the log calls each flag to its value, both as printed. ``model_size_mb`` is in units of
    10**6 bytes. ``init_us`` has six digits only where the log ends before the times. ``errors`` has what was logged as
    an error or as fatal. ``is_complete`` says that both phases ended; the last runs may have failed nevertheless.
    """

    parameters: dict[str, str]
    graph: str | None
    delegations: tuple[LoggedDelegation, ...]
    model_size_mb: float | None
    init_us: int | None
    first_inference_us: int | None
    warm_up: StatFigures | None
    regular: StatFigures | None
    memory: LoggedMemory | None
    errors: tuple[str, ...]
    is_complete: bool


def parse_benchmark_log(text: str) -> NativeBenchmarkLog:
    r"""Read the log of one benchmark, whole or cut off.

    Prefixes (see :mod:`evaltools.native.logs.log_lines`), percentiles and memory may be missing; the words of older
    releases for times, memory and delegation are understood. Lines about anything else are passed over. Raises
    :class:`DataError` where the text holds more than one benchmark.

    >>> log = parse_benchmark_log("INFO: Graph: [a.tflite]\nINFO: Loaded model a.tflite")
    >>> log.graph, log.is_complete
    ('a.tflite', False)
    """
    records = plain_lines(text)
    lines = [record.text for record in records if record.level in ("", "INFO")]
    stats = [figures for figures in map(_stat_figures, lines) if figures is not None]
    if len(stats) > 2:
        message = f"the log has {len(stats)} lines of times, one benchmark has 2; give the log of one benchmark"
        raise DataError(message)
    warm_up = stats[0] if stats else None
    regular = stats[1] if len(stats) == 2 else None
    errors = [record.text for record in records if record.level in ("ERROR", "FATAL")]
    # The app of those releases logged its times as an error, so that they stand out.
    timings = _first(_TIMINGS, lines) or _first(_OLD_TIMINGS, [*lines, *errors])
    size = _first(_MODEL_SIZE, lines)
    parameters = _parameters(lines)
    return NativeBenchmarkLog(
        parameters=parameters,
        graph=parameters.get("Graph"),
        delegations=tuple(entry for entry in map(logged_delegation, lines) if entry is not None),
        model_size_mb=float(size["size"]) if size else None,
        init_us=int(timings["init"]) if timings else _session_us(lines),
        first_inference_us=_first_inference_us(timings, warm_up),
        warm_up=warm_up,
        regular=regular,
        memory=_memory(lines),
        errors=tuple(text for text in errors if _OLD_TIMINGS.fullmatch(text) is None),
        is_complete=regular is not None and timings is not None,
    )


def _first(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return next((found for found in map(pattern.fullmatch, lines) if found), None)


def _parameters(lines: Sequence[str]) -> dict[str, str]:
    """They stand before the model is loaded; reports after it may look alike."""
    before = takewhile(lambda line: _LOADED.fullmatch(line) is None, lines)
    return {found["name"]: found["value"] for found in map(_PARAMETER.fullmatch, before) if found}


def _first_inference_us(timings: re.Match[str] | None, warm_up: StatFigures | None) -> int | None:
    """Older releases do not state it with the times: it is the first warm-up run."""
    if timings is not None and timings.re is _TIMINGS:
        return int(timings["first"])
    return warm_up.first_us if warm_up else None


def _session_us(lines: Sequence[str]) -> int | None:
    found = _first(_SESSION, lines)
    return round(float(found["ms"]) * 1000) if found else None


def _stat_figures(line: str) -> StatFigures | None:
    """The figures of a stat line, which is short where all samples are equal, and shorter where there is none."""
    found = _STAT.fullmatch(line)
    if found is None:
        return None
    equal = found["equal"] or "0"
    first, last, smallest, largest = (int(found[name] or equal) for name in ("first", "last", "min", "max"))
    return StatFigures(
        count=int(found["count"]),
        first_us=first,
        last_us=last,
        min_us=smallest,
        max_us=largest,
        avg_us=float(found["avg"] or equal),
        std_us=int(found["std"] or 0),
        p5_us=_integer(found["p5"]),
        median_us=_integer(found["median"]),
        p95_us=_integer(found["p95"]),
    )


def _memory(lines: Sequence[str]) -> LoggedMemory | None:
    growth, peak = _first(_MEMORY, lines), _first(_PEAK, lines)
    if growth is None:
        return None
    return LoggedMemory(float(growth["init"]), float(growth["overall"]), float(peak["peak"]) if peak else None)


def _integer(text: str | None) -> int | None:
    return None if text is None else int(text)
