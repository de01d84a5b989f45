"""Reads the commands of the runs in ``gates.toml``: words become requests, as on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.benchmark.command import request_of_flags as benchmark_of_flags
from evaltools.commands import device_run, evaluation
from evaltools.commands.names import task_of
from evaltools.errors import DataError, UsageError
from evaltools.gates.gate_file import BENCHMARK, SUITE, GateFile, RunSource
from evaltools.known_tasks import built_in_tasks, command_named, names_file
from evaltools.parameter import Parameter, did_you_mean
from evaltools.request import Request
from evaltools.request.flags import configurations_of_files_and_texts, parse_flags
from evaltools.runs.gate_runs import OUTPUT_FLAG, Run

_READ: Final = ("input_file", "input_folder", "pictures", "named_files", "layer_files")


def read_run(source: RunSource, folder: Path) -> Run:
    """Read the command of a run; raises :class:`UsageError`, which names the run, for flags that are wrong."""
    try:
        request = _request(source.command, folder.resolve())
    except UsageError as error:
        raise UsageError(f"run {source.name}: {error}") from None
    except SystemExit:
        raise UsageError(f"run {source.name}: its command asks for help; leave that out") from None
    if request is not None and OUTPUT_FLAG in request.options:
        raise UsageError(f"run {source.name}: leave --{OUTPUT_FLAG} out of its command; the gates say where it goes")
    run = Run(source, folder, request)
    if source.model and run.models != [source.model]:
        raise UsageError(f"run {source.name}: models goes with the command of a task or benchmark that has no model")
    return run


def _request(words: Sequence[str], folder: Path) -> Request | None:
    """The request of a command, of a benchmark or a suite as well; None for one that only puts results together."""
    if words[:1] not in ((BENCHMARK,), (SUITE,)):
        return request_of_words(words, folder)
    flags = parse_flags(words[0], "", "", command_named(words[0]).groups, words[1:])
    command = ("evaltools", *words)
    if words[0] == BENCHMARK:
        return benchmark_of_flags(flags, command, folder)
    tests = tuple(configurations_of_files_and_texts(flags, folder=folder))
    return Request(SUITE, flags.options(leave_out=("config", "configs")), None, tests, folder, command=command)


def request_of_words(words: Sequence[str], folder: Path) -> Request | None:
    """The request of an evaluation, here or on devices, None for another command.

    Raises :class:`UsageError` for flags that are wrong.
    """
    task = task_of(words[0]) if words else None
    try:
        if task is not None:
            return evaluation.parse(task, words[1:], folder)
        match words:
            case ["run", own_task, *rest]:
                place = os.path.join(folder, own_task) if names_file(own_task) else own_task
                return evaluation.parse(place, rest, folder)
            case ["device", "run", on_devices, *rest]:
                return device_run.parse(on_devices, rest, folder)
    except SystemExit:
        raise UsageError("its command asks for help; leave that out") from None
    return None


def problems(file: GateFile, runs: Sequence[Run]) -> Iterator[str]:
    """What is certain to go wrong with the commands of a file, so that none of them needs to be run to see it."""
    for run in runs:
        yield from (f"run {run.source.name}: {problem}" for problem in _missing_paths(run))
        yield from (f"{file.path}: {problem}" for problem in _impossible_limits(file, run))
    for number, gate in enumerate(file.gates, 1):
        of_run = [run for run in runs if gate.may_be_about(run.source)]
        about = [run for run in of_run if run.places(gate)]
        if of_run and not about:
            asked = " and ".join(
                f"{what} {name!r}" for what, name in (("task", gate.task), ("model", gate.model)) if name
            )
            models = [Path(model).name for run in of_run for model in run.models]
            hint = did_you_mean(gate.model, models)
            yield f"{file.path}: gate {number}: no run is of {asked}; there are {', '.join(models)}.{hint}"
        for run in about:
            names = run.configurations
            if names and not any(map(gate.names, names)):
                hint = did_you_mean(gate.configuration, names)
                yield (
                    f"{file.path}: gate {number}: run {run.source.name} has no configuration {gate.configuration!r}; "
                    f"there are {', '.join(names)}.{hint}"
                )


def _missing_paths(run: Run) -> Iterator[str]:
    """The files and folders that a command is to read and that are not there."""
    given = [] if run.request is None else [run.request.options, run.request.devices]
    for options in filter(None, given):
        for name in options.stated:
            parameter = options.parameters[name]
            for text in options.texts(name) if parameter.role in _READ else ():
                yield from _missing(parameter, text, run.folder)


def _missing(parameter: Parameter, text: str, folder: Path) -> list[str]:
    paths: list[Path] = []

    def note(path: Path) -> str:
        paths.append(path)
        return str(path)

    try:
        parameter.rewrite(text, note, folder)
    except DataError as error:
        return [str(error)]
    return [f"--{parameter.name}={path}: no such file or folder" for path in paths if not (folder / path).exists()]


def _impossible_limits(file: GateFile, run: Run) -> Iterator[str]:
    """Limits on figures that the task of a run never has."""
    of_tasks = {name: {metric.name for metric in task.metrics} for name, task in built_in_tasks().items()}
    of_tasks[BENCHMARK] = set()
    if run.request is None or run.request.task not in of_tasks:
        return
    task = run.request.task
    of_others = set().union(*of_tasks.values()) - of_tasks[task]
    if task == BENCHMARK:
        of_others.add("failed_examples")
    for criterion in (criterion for gate in file.gates if run.places(gate) for criterion in gate.criteria):
        if criterion.figure in of_others:
            yield (
                f"{criterion.text!r} is compared with run {run.source.name}, which is of {task} and has no "
                f"{criterion.figure} ({criterion.metric.meaning}); say which task or run it is about"
            )
