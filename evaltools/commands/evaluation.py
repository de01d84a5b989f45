"""Evaluations as command lines: of one model, and of several, the first of which the others are compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.command import TaskCommand
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import UsageError
from evaltools.exit_codes import OF_EVALUATIONS, in_words
from evaltools.known_tasks import task_command
from evaltools.parameter import Parameter
from evaltools.request import Options, Own, Request
from evaltools.request.flags import GivenFlags, parse_flags, read_tests
from evaltools.tasks.framework import own_options
from evaltools.tasks.framework.common_options import MODEL_FILE, REFERENCE_MODEL_FILE

OF_ALL: Final = ("plot", "report")
"""Flags of files about all models."""
_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "sweep", "reference"})
"""Flags that become configurations and are no options of the task."""
REFERENCE: Final = "reference"
OWN_REFERENCE: Final = "own reference"
"""The configuration that runs a model as the reference runs the first one."""


def parse(task: str, arguments: Sequence[str], folder: Path | None = None) -> Request:
    """The request that the command line of a task makes.

    Relative paths start at ``folder``, by default at the working directory.

    Raises :class:`UsageError` for flags that are wrong.
    """
    command = task_command(task)
    return request_of_task(command, flags_of_words(command, arguments), command_of(command, arguments), folder)


def request_of_task(
    task: TaskCommand,
    flags: GivenFlags,
    command: Sequence[str] = (),
    folder: Path | None = None,
) -> Request:
    """What the flags of a task ask for; raises :class:`UsageError` for those that are wrong or missing.

    Relative paths are meant from ``folder``, None: from here.
    """
    folder = folder or Path.cwd()
    options = completed(task, flags.options(leave_out=_OF_CONFIGURATIONS), folder, command)
    is_native = options.text("compat") == "native"
    tests = read_tests(flags, is_native, folder)
    reference = default_reference(task, options)
    if "reference" in flags:
        text, kernels = flags.text("reference"), kernels_of_reference(task, options)
        is_none = text.strip() == "none"
        reference = None if is_none else Configuration.from_text(REFERENCE, text, is_native, kernels)
    return Request(task.name, options, reference, tuple(tests), folder, command=tuple(command))


def kernels_of_reference(task: TaskCommand, options: Options) -> str:
    """The kernels of a reference that states none."""
    return task.native_reference if options.text("compat") == "native" else "builtin"


def default_reference(task: TaskCommand, options: Options) -> Configuration | None:
    """The reference where none is stated; None where its outputs are loaded."""
    if "load_reference" in options:
        return None
    kernels = kernels_of_reference(task, options)
    return Configuration.from_flags(REFERENCE, [], options.text("compat") == "native", kernels)


def completed(task: TaskCommand, options: Options, folder: Path, command: Sequence[str] = ()) -> Options:
    """The options with the paths that the task has as defaults, and with those that follow from others.

    Raises :class:`UsageError` where a required one is missing.
    """
    own = [each.parameter for each in own_options(task.source.function)] if task.source else []
    paths = {each.name: each.default for each in own if each.is_path and each.default}
    found = options.stating({name: path for name, path in paths.items() if name not in options})
    found = found if task.complete is None else found.stating(task.complete(found.stated, folder))
    needed = [parameter.name for parameter in task.parameters.values() if parameter.required]
    if missing := " ".join(f"--{name}=..." for name in needed if not found.text(name)):
        words = f"device run {task.words.removeprefix('run ')}" if "device" in command[1:2] else task.words
        raise UsageError(f"missing: {missing}. See evaltools {words} --help")
    return found


def flags_of_words(task: TaskCommand, arguments: Sequence[str]) -> GivenFlags:
    """The flags of a task's command; raises :class:`UsageError` for those that are wrong."""
    return parse_flags(f"{task.words} MODEL.tflite", task.description, in_words(OF_EVALUATIONS), task.groups, arguments)


def command_of(task: TaskCommand, arguments: Sequence[str]) -> tuple[str, ...]:
    """The whole command line, as results record it."""
    return ("evaltools", *task.words.split(" ", 1), *arguments)


def options_of_models(options: Own, models: Sequence[str]) -> dict[str, Own]:
    """The options of each model's own run by its name, which is put into the names of the files and folders it writes.

    Raises :class:`UsageError` for a model that is given twice, and for one that is not a file.
    """
    others = options.without((MODEL_FILE.name, *OF_ALL))

    def of_one(name: str, model: str) -> Own:
        own = others.rewritten(lambda each, value: of_model(each, value, name) if isinstance(value, str) else value)
        return own.stating({MODEL_FILE.name: model})

    return {name: of_one(name, model) for name, model in models_by_name(models).items()}


def models_by_name(models: Sequence[str]) -> dict[str, str]:
    """Models by the names that their runs have; raises :class:`UsageError` as :func:`options_of_models` does."""
    from evaltools.result.result import model_names

    twice = next((text for place, text in enumerate(models) if text in models[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; give each model once")
    for text in models:
        if not Path(text).is_file():
            raise UsageError(f"model {text}: no such file. Each word without -- is a model to evaluate")
    return dict(zip(model_names([Path(text) for text in models]), models, strict=True))


def of_model(parameter: Parameter, text: str, name: str) -> str:
    """The value of an option of the run of a model: files and folders that it writes have the model's name."""
    is_written = parameter.role in ("output_file", "output_folder") and text
    return _with_name(Path(text), name) if is_written else text


def _with_name(path: Path, name: str) -> str:
    safe_name = re.sub(r"[^\w.-]+", "_", name)
    return str(path.with_name(f"{path.stem}.{safe_name}{path.suffix}"))


def compared_with_first(requests: Mapping[str, Request]) -> dict[str, Request]:
    """The requests of several models, in which the first model is the reference of the others.

    Each of the others also runs as the reference does, so that what the model changes is seen apart from what a
    delegate changes. Nothing changes where the reference's model is stated, where there is no reference, and for a task
    that compares a model with itself.
    """
    found: dict[str, Request] = {}
    for name, request in requests.items():
        first = next(iter(found.values()), None)
        is_compared = (
            first is not None
            and task_command(request.task).compares_models
            and REFERENCE_MODEL_FILE.name not in request.options
            and not request.is_native
        )
        found[name] = _with_reference(request, first) if is_compared and first is not None else request
    return found


def _with_reference(request: Request, first: Request) -> Request:
    if request.reference is None:
        return request
    own = replace(request.reference, name=OWN_REFERENCE)
    others = [test for test in request.tests if test.to_flags() != request.reference.to_flags()]
    stated = request.stating(reference_model_file=first.options.text(MODEL_FILE.name))
    return replace(stated, tests=(own, *others))
