"""Evaluations from Python: each call makes the request that the command line makes, and measures it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from evaltools.api.configurations import AnyPath, OneConfiguration, Tests, read_reference, read_tests
from evaltools.api.inputs import Inputs, input_options
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import OnProgress, observer_of
from evaltools.api.result import Models, Result
from evaltools.candidates import with_tests_here
from evaltools.command import TaskCommand
from evaltools.commands.evaluation import (
    compared_with_first,
    completed,
    default_reference,
    kernels_of_reference,
    options_of_models,
)
from evaltools.errors import UsageError
from evaltools.known_tasks import OWN, task_command
from evaltools.request import Options, Request
from evaltools.runs.evaluate import measure
from evaltools.tasks.framework import own_command
from evaltools.tasks.framework.definition import Task, is_task
from evaltools.tasks.framework.loading import located

SeveralPaths = list[AnyPath] | list[str] | list[Path] | tuple[AnyPath, ...]
_ARGUMENTS: Final = ("model", "inputs", "reference", "tests", "progress")
"""What the functions take beside options."""
_DEFAULT_INPUTS: Final[Mapping[str, Any]] = MappingProxyType({})


@with_options(task_command("imagenet").parameters)
def imagenet(
    model: AnyPath | SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """Top-1 to Top-10 accuracy on labelled pictures, for a reference and any number of configurations.

    ``model`` is a .tflite file, ``images`` a folder, ``ground_truth`` a file with the label of each picture in a line,
    ``labels`` one with the label of each output. ``tests`` maps names to configurations, each an
    :class:`~evaltools.Configuration` or the text of its flags; without it every delegate that works on this machine is
    tried. ``reference`` is the configuration that they are compared with, the CPU's builtin kernels where it is not
    stated. ``options`` are those of ``evaltools imagenet`` by their names, such as ``num_images=100`` or
    ``run_dir="run"``. Shares such as ``top1`` are 0..1, times milliseconds, sizes MB of 2**20 bytes.

    Prints nothing. Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong;
    Ctrl-C ends it with what was measured until then. Without ``labels``, those in the model's metadata or in a file
    beside it are taken. A list of models gives :class:`~evaltools.Models`: the first is the reference of the others,
    unless ``reference_model`` is another one.
    """
    return _evaluate(task_command("imagenet"), model, options, reference, tests, progress)


@with_options(task_command("coco").parameters)
def coco(
    model: AnyPath | SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """MAP of a detector on annotated pictures, and whether the boxes agree; ``ground_truth`` is in COCO's format.

    Everything else as for :func:`imagenet`.
    """
    return _evaluate(task_command("coco"), model, options, reference, tests, progress)


@with_options(task_command("inference_diff").parameters)
def diff(
    model: AnyPath,
    *,
    inputs: Inputs | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result:
    """How far the outputs of configurations are from a reference's, for any model.

    ``inputs``: an array, arrays by name, several of either (each is a run), a folder of pictures or files, or "noise",
    "photos" or "both", as ``--inputs`` has them. An array has the shape of the input, or one more axis in front, along
    which runs lie, and is of the input's type or of real numbers, which are quantised as the input is. Errors are in
    the real numbers of the output, ``max_quanta`` in steps of its quantisation. Everything else as for
    :func:`imagenet`.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(f"{options['run_dir']}.inputs") if options.get("run_dir") else None
        if inputs is not None and folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evaltools-")))
        named = {} if inputs is None or folder is None else input_options(inputs, Path(model), folder)
        return _evaluate_one(task_command("inference_diff"), model, options, reference, tests, progress, named)


@with_options(task_command(OWN).parameters, more=True)
def run(
    task: AnyPath | Callable[..., Task],
    model: AnyPath | SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """A task of your own: a function with ``@evaltools.task`` or ``"FILE.py:NAME"``.

    One that comes with evaltools or is installed goes by its name. ``options`` are those of the task and those of
    ``evaltools run``. Everything else as for :func:`imagenet`.
    """
    return _evaluate(_command_of(task), model, options, reference, tests, progress)


def _command_of(task: AnyPath | Callable[..., Task]) -> TaskCommand:
    if is_task(task):
        return own_command(located(task))
    if isinstance(task, str | os.PathLike):
        return task_command(os.fspath(task))
    raise UsageError(f'task: expected a function with @evaltools.task above it or "FILE.py:NAME", got {task!r}')


def _evaluate(
    task: TaskCommand,
    model: AnyPath | SeveralPaths,
    options: Mapping[str, Any],
    reference: OneConfiguration | None,
    tests: Tests,
    progress: bool | OnProgress | None,
) -> Result | Models:
    """One model, or one after the other."""
    if isinstance(model, str | os.PathLike):
        return _evaluate_one(task, model, options, reference, tests, progress)
    models = [os.fspath(each) for each in model]
    stated = options_of({}, task.parameters, options, _ARGUMENTS)
    requests = {name: _request(task, own, reference, tests) for name, own in options_of_models(stated, models).items()}
    compared = compared_with_first(requests)
    return Models({name: Result(measure(task, request, observer_of(progress))) for name, request in compared.items()})


def _evaluate_one(
    task: TaskCommand,
    model: AnyPath,
    options: Mapping[str, Any],
    reference: OneConfiguration | None,
    tests: Tests,
    progress: bool | OnProgress | None,
    inputs: Mapping[str, Any] = _DEFAULT_INPUTS,
) -> Result:
    stated = options_of({"model_file": model, **inputs}, task.parameters, options, _ARGUMENTS)
    request = _request(task, stated, reference, tests)
    result = measure(task, request, observer_of(progress))
    if "locate" not in request.options or not request.options.is_on("locate"):
        return Result(result)
    from evaltools.api.locating import located_after

    return Result(result, located_after(request, result))


def _request(task: TaskCommand, stated: Options, reference: OneConfiguration | None, tests: Tests) -> Request:
    folder = Path.cwd()
    options = completed(task, stated, folder)
    is_native = options.text("compat") == "native"
    if reference is None:
        used = default_reference(task, options)
    else:
        used = read_reference(reference, is_native, kernels_of_reference(task, options))
    request = Request(task.name, options, used, read_tests(tests, is_native), folder)
    if tests is None and stated.leave_tests_open:
        request, _ = with_tests_here(request)
    return request
