"""The output of TensorFlow's benchmark app for iOS, as Xcode or a device's console shows it: rows of a benchmark.

The app reads its flags from a file in its bundle and runs them when its button is pressed. So one log may hold several
starts; what each was run with stands in its own lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from evaltools.configuration import Configuration
from evaltools.delegates import DELEGATES, PARAMETERS
from evaltools.errors import DataError, UsageError
from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.benchmark_rows import row_of_log, with_logged_ratios
from evaltools.native.logs.log_lines import plain_lines
from evaltools.result.benchmark import BenchmarkRow
from evaltools.result.evaluation import RuntimeUsed

APP: Final = "TFLiteBenchmark"
_FIRST_LINE: Final = re.compile(r"Log parameter values verbosely: \[.*\]")
_FIRST_LINE_OF_OLD: Final = re.compile(r"STARTING!|Min num runs: \[.*\]")
_GRAPH: Final = "Graph"
_THREADS: Final = "Num threads"
_BY_LOG: Final = {parameter.log: parameter for parameter in PARAMETERS.values() if parameter.log}


def starts_in(text: str) -> list[str]:
    """The logs of single starts of the app in the log of all; raises :class:`DataError` where there is none."""
    lines = text.splitlines()
    plain = [" ".join(record.text for record in plain_lines(line)) for line in lines]
    for first in (_FIRST_LINE, _FIRST_LINE_OF_OLD):
        places = [place for place, line in enumerate(plain) if first.fullmatch(line)]
        places = [place for place in places if place - 1 not in places]
        if places:
            ends = [*places[1:], len(lines)]
            return ["\n".join(lines[place:end]) for place, end in zip(places, ends, strict=True)]
    raise DataError(
        'no start of the benchmark is in it: there is no line "Log parameter values verbosely: [0]". Copy all that the '
        "console shows from the press of the button on"
    )


def rows_of_ios_log(text: str, model: str, node_count: int, allow_fallback: bool = False) -> list[BenchmarkRow]:
    """A row for each configuration in the log of the app, whose starts with the same flags are its rounds.

    ``model`` is the name of the file that was measured, ``node_count`` the number of nodes of its main graph. Raises
    :class:`DataError` where the log is of another model, or of no start at all.
    """
    by_flags: dict[tuple[str, ...], list[str]] = {}
    configurations: dict[tuple[str, ...], Configuration] = {}
    for start in starts_in(text):
        parameters = parse_benchmark_log(start).parameters
        _require_model(parameters, model)
        configuration = _configuration(parameters)
        flags = tuple(configuration.to_flags())
        configurations[flags] = configuration
        by_flags.setdefault(flags, []).append(start)
    names = _names(list(configurations.values()))
    rows = []
    for name, (flags, starts) in zip(names, by_flags.items(), strict=True):
        configuration = configurations[flags]
        settings = configuration.delegates
        rows.append(
            row_of_log(
                0,
                name,
                flags,
                configuration.num_threads,
                starts,
                {delegate.name: settings.effective_options(delegate) for delegate in settings.requested},
                node_count,
                allow_fallback,
                RuntimeUsed("app", APP, "", configuration.kernel_set),
            )
        )
    return with_logged_ratios(rows)


def _require_model(parameters: Mapping[str, str], model: str) -> None:
    """The app finds the model by its name, in the folder of its bundle."""
    measured = PurePosixPath(parameters.get(_GRAPH, "")).name
    if measured and measured != model:
        raise DataError(f"it is of the model {measured}, and --graph names {model}; give the model that was measured")


def _configuration(parameters: Mapping[str, str]) -> Configuration:
    """What a start was run with, of the flags that its log states."""
    delegates = [
        (_BY_LOG[name].name, value)
        for name, value in parameters.items()
        if name in _BY_LOG and not _BY_LOG[name].is_path
    ]
    threads = parameters.get(_THREADS, "-1")
    try:
        return Configuration.from_flags("app", [("num_interpreter_threads", threads), *delegates])
    except UsageError as error:
        raise DataError(f"the flags that it states make no sense: {error}") from None


def _names(configurations: Sequence[Configuration]) -> list[str]:
    """Of each the delegates that it asks for, else ``cpu``; numbered where that is not enough."""
    keys = {delegate.name: delegate.key or delegate.name.lower() for delegate in DELEGATES}
    plain = [" ".join(keys[each.name] for each in own.delegates.requested) or "cpu" for own in configurations]
    seen: Counter[str] = Counter()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name} {seen[name]}" if plain.count(name) > 1 else name)
    return names
