"""Benchmarks by TensorFlow's app for iOS, which has no command line: its file of flags, and what it printed.

The app reads ``benchmark_params.json`` in its bundle, hands each key on as a flag of benchmark_model, and takes nothing
but texts for values. ``graph`` is the name of a file in the bundle.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec.structs import replace

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.conclude import Asked, conclude
from evaltools.configuration import AUTO, CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import DELEGATES, PARAMETERS
from evaltools.engine.opening import describe_model
from evaltools.errors import DataError, UsageError
from evaltools.file_content import Unreadable, content_of
from evaltools.model import read_model
from evaltools.native.logs.benchmark import measured_of_logs, parse_benchmark_log
from evaltools.native.logs.log_lines import plain_lines
from evaltools.parameter import Parameter, format_value
from evaltools.request import Request
from evaltools.result.environment import describe_environment
from evaltools.result.facts import RuntimeUsed
from evaltools.result.result import Result
from evaltools.result.rounds import Measured, Records

_RUNTIME: Final = RuntimeUsed("app", "TFLiteBenchmark", "", "default")
_FIRST_LINE: Final = re.compile(r"Log parameter values verbosely: \[.*\]")
_GRAPH: Final = "Graph"
_THREADS: Final = "Num threads"
_BY_LOG: Final = {parameter.log: parameter for parameter in PARAMETERS.values() if parameter.log}
_ABOUT_THIS_FILE: Final = ("graph", "output_file_path", "config", "configs")
_ELSEWHERE: Final = (
    "measured by the benchmark app for iOS, as its log says; processor, platform and packages are those of the "
    "computer that read the log"
)


def ios_params(request: Request) -> dict[str, str]:
    """The content of the file for a benchmark of one model with one configuration.

    Raises :class:`UsageError` for several, and for what the app does not know.
    """
    graphs = request.options.texts("graph")
    if len(graphs) > 1 or len(request.tests) > 1:
        raise UsageError(
            f"{len(graphs)} model{'s' * (len(graphs) != 1)} with {len(request.tests)} configurations: the app runs one "
            "model with one configuration; write a file for each"
        )
    graph = graphs[0].replace("\\", "/").rpartition("/")[2]
    if not graph.rpartition(".")[0]:
        raise UsageError(
            f"--graph={graphs[0]}: the app finds a model by its name and ending, as in model.tflite; rename it"
        )
    (configuration,) = request.tests
    if configuration.runtime != AUTO:
        raise UsageError(
            f"--runtime={configuration.runtime} is a runtime for Python, which the app is not; leave it out"
        )
    if configuration.kernels == "reference":
        raise UsageError("--kernels=reference: the app has no such kernels; use --kernels=builtin, or leave it out")
    stated = {
        request.options.parameters[name]: value
        for name, value in request.options.stated.items()
        if name not in _ABOUT_THIS_FILE and name not in CONFIGURATION_PARAMETERS
    }
    found = {"graph": graph, "num_threads": str(configuration.num_threads)}
    for parameter, value in {
        **stated,
        **{PARAMETERS[name]: value for name, value in configuration.delegates.given},
    }.items():
        first = value[0] if isinstance(value, tuple) else value
        reason = _why_not(parameter)
        if reason is not None:
            raise UsageError(
                f"{parameter.format(first)}: the benchmark app for iOS does not know it: {reason}; leave it out"
            )
        found[parameter.name] = str(int(first)) if isinstance(first, bool) else format_value(first)
    if configuration.kernels == "builtin" and configuration.xnnpack is None:
        found["use_xnnpack"] = "0"
    return found


def _why_not(parameter: Parameter) -> str | None:
    """Why the app does not have a flag; None where it has it."""
    platforms, of_delegate = parameter.platforms, parameter.name in PARAMETERS
    on_apple = "Apple" in platforms or (platforms.startswith("all") and "does something" not in platforms)
    reasons = {
        "it is evaltools' own": not of_delegate and not (parameter in benchmark_flags.PARAMETERS and parameter.log),
        "it names a file, and the app finds no file but the model in its bundle": parameter.is_path,
        parameter.not_native.reason if parameter.not_native else "": parameter.not_native is not None,
        f"it is there for {platforms}": of_delegate and (not on_apple or parameter.name.startswith("external_")),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def result_of_ios_log(log: Path, graph: Path, command: Sequence[str], allow_fallback: bool = False) -> Result:
    """The result in the file ``log`` for the model ``graph``; ``command`` is only recorded.

    Raises :class:`~evaltools.errors.ModelError`, and :class:`DataError` for a log that cannot be read, holds no
    benchmark, or is of another model.
    """
    model = read_model(graph)
    try:
        text = content_of(log).decode("utf-8", "replace")
        measured = measured_in_ios_log(text, graph.name, model.node_count, allow_fallback)
    except Unreadable as error:
        raise DataError(f"--log_file={log} cannot be read: {error}; give the text of the console") from error
    except DataError as error:
        raise DataError(f"--log_file={log}: {error}") from None
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    asked = Asked(describe_environment(list(command), now, 0.0), {}, [describe_model(model)])
    return conclude(asked, {"": Records(measured, [_ELSEWHERE])})


def starts_in(text: str) -> list[str]:
    """The logs of single starts of the app in the log of all; raises :class:`DataError` where there is none."""
    lines = text.splitlines()
    plain = [" ".join(record.text for record in plain_lines(line)) for line in lines]
    places = [place for place, line in enumerate(plain) if _FIRST_LINE.fullmatch(line)]
    if places:
        ends = [*places[1:], len(lines)]
        return ["\n".join(lines[place:end]) for place, end in zip(places, ends, strict=True)]
    raise DataError(
        'no start of the benchmark is in it: there is no line "Log parameter values verbosely: [0]". Copy all that the '
        "console shows from the press of the button on"
    )


def measured_in_ios_log(text: str, model: str, node_count: int, allow_fallback: bool = False) -> list[Measured]:
    """What was measured of each configuration in the log of the app, whose starts with the same flags are its rounds.

    ``model`` is the name of the file that was measured, ``node_count`` the number of nodes of its main graph. Raises
    :class:`DataError` where the log is of another model, or of no start at all.
    """
    by_flags: dict[tuple[str, ...], list[str]] = {}
    configurations: dict[tuple[str, ...], Configuration] = {}
    for start in starts_in(text):
        parameters = parse_benchmark_log(start).parameters
        measured = PurePosixPath(parameters.get(_GRAPH, "")).name
        if measured and measured != model:
            raise DataError(
                f"it is of the model {measured}, and --graph names {model}; give the model that was measured"
            )
        configuration = _configuration_of(parameters)
        flags = tuple(configuration.to_flags())
        configurations[flags] = configuration
        by_flags.setdefault(flags, []).append(start)
    names = _names(list(configurations.values()))
    return [
        measured_of_logs(0, replace(configurations[flags], name=name), node_count, _RUNTIME, starts, (), allow_fallback)
        for name, (flags, starts) in zip(names, by_flags.items(), strict=True)
    ]


def _configuration_of(parameters: Mapping[str, str]) -> Configuration:
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
