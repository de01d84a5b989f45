"""Evaluations from Python: each call makes the request that the command line makes, and measures it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, overload

from evaltools.api.configurations import AnyPath, OneConfiguration, Tests, flags_of, read_tests, reference_text
from evaltools.api.inputs import Inputs, input_options
from evaltools.api.locating import located_after
from evaltools.api.models import Models
from evaltools.api.progress import OnProgress, observer_of
from evaltools.api.result import Result
from evaltools.candidates import with_tests_here
from evaltools.commands.models import compared_with_first, flags_of_models
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean
from evaltools.request import Request
from evaltools.request.flags import GivenFlags
from evaltools.runs.measure import measure
from evaltools.tasks.own import FunctionTask, kind_named
from evaltools.tasks.own.definition import TaskFunction
from evaltools.tasks.own.loading import located
from evaltools.tasks.shared.declared import DeclaredTask, declared_task

SeveralPaths = list[AnyPath] | list[str] | list[Path] | tuple[AnyPath, ...]
_NAMES: Final = ("images", "ground_truth", "labels", "inputs", "reference", "tests", "progress")
"""What some of the functions take under a name of its own."""


@overload
def imagenet(
    model: AnyPath,
    *,
    images: AnyPath,
    ground_truth: AnyPath,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result: ...
@overload
def imagenet(
    model: SeveralPaths,
    *,
    images: AnyPath,
    ground_truth: AnyPath,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Models: ...
def imagenet(
    model: AnyPath | SeveralPaths,
    *,
    images: AnyPath,
    ground_truth: AnyPath,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """Top-1 to Top-10 accuracy on labelled pictures, for a reference and any number of configurations.

    ``tests`` maps names to configurations; without it every delegate that works on this machine is tried. ``options``
    are those of ``evaltools imagenet`` by their names, such as ``num_images=100`` or ``run_dir="run"``. Prints nothing.
    Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong; Ctrl-C ends it
    with what was measured until then. Without ``labels``, those in the model's metadata or in a file beside it are
    taken. A list of models gives :class:`~evaltools.Models`: the first is the reference of the others, unless
    ``reference_model`` is another one.
    """
    named = {"ground_truth_images_path": images, "ground_truth_labels": ground_truth, "model_output_labels": labels}
    return _evaluate(declared_task("imagenet"), model, named, options, reference, tests, progress)


@overload
def coco(
    model: AnyPath,
    *,
    images: AnyPath,
    ground_truth: AnyPath | None = None,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result: ...
@overload
def coco(
    model: SeveralPaths,
    *,
    images: AnyPath,
    ground_truth: AnyPath | None = None,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Models: ...
def coco(
    model: AnyPath | SeveralPaths,
    *,
    images: AnyPath,
    ground_truth: AnyPath | None = None,
    labels: AnyPath | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """MAP of a detector on annotated pictures, and whether the boxes agree; ``ground_truth`` is in COCO's format.

    Everything else as for :func:`imagenet`.
    """
    named = {
        "ground_truth_images_path": images,
        "ground_truth_annotations": ground_truth,
        "model_output_labels": labels,
    }
    return _evaluate(declared_task("coco"), model, named, options, reference, tests, progress)


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
    "photos" or "both", as ``--inputs`` has them. Everything else as for :func:`imagenet`.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(f"{options['run_dir']}.inputs") if options.get("run_dir") else None
        if inputs is not None and folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evaltools-")))
        named = {} if inputs is None or folder is None else input_options(inputs, Path(model), folder)
        return _evaluate_one(declared_task("inference_diff"), model, named, options, reference, tests, progress)


@overload
def run(
    task: AnyPath | TaskFunction[...],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result: ...
@overload
def run(
    task: AnyPath | TaskFunction[...],
    model: SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Models: ...
def run(
    task: AnyPath | TaskFunction[...],
    model: AnyPath | SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    **options: Any,
) -> Result | Models:
    """A task of your own: a function with ``@evaltools.task``, ``"FILE.py:NAME"`` or ``"FILE.yaml"``.

    One that comes with evaltools or is installed goes by its name. ``options`` are those of the task and those of
    ``evaltools run``. Everything else as for :func:`imagenet`.
    """
    if not isinstance(task, str | os.PathLike | TaskFunction):
        raise UsageError(
            f'task: expected a function with @evaltools.task above it, "FILE.py:NAME" or "FILE.yaml", got {task!r}'
        )
    kind = FunctionTask(located(task)) if isinstance(task, TaskFunction) else kind_named(os.fspath(task))
    return _evaluate(kind, model, {}, options, reference, tests, progress)


def _evaluate(
    kind: DeclaredTask,
    model: AnyPath | SeveralPaths,
    named: Mapping[str, Any],
    options: Mapping[str, Any],
    reference: OneConfiguration | None,
    tests: Tests,
    progress: bool | OnProgress | None,
) -> Result | Models:
    """One model, or one after the other."""
    if isinstance(model, str | os.PathLike):
        return _evaluate_one(kind, model, named, options, reference, tests, progress)
    flags = _flags(kind, [os.fspath(each) for each in model], named, options, reference)
    requests = {name: _request(kind, own, tests) for name, own in flags_of_models(flags).items()}
    compared = compared_with_first(requests)
    return Models({name: Result(measure(kind, request, observer_of(progress))) for name, request in compared.items()})


def _evaluate_one(
    kind: DeclaredTask,
    model: AnyPath,
    named: Mapping[str, Any],
    options: Mapping[str, Any],
    reference: OneConfiguration | None,
    tests: Tests,
    progress: bool | OnProgress | None,
) -> Result:
    request = _request(kind, _flags(kind, model, named, options, reference), tests)
    result = measure(kind, request, observer_of(progress))
    return Result(result, located_after(request, result))


def _flags(
    kind: DeclaredTask,
    model: AnyPath | list[str],
    named: Mapping[str, Any],
    options: Mapping[str, Any],
    reference: OneConfiguration | None,
) -> GivenFlags:
    """The flags that the arguments stand for; raises :class:`UsageError` for options that there are not."""
    whole_names = {short: each.name for each in kind.parameters.values() for short in each.names[1:]}
    options = {whole_names.get(name, name): value for name, value in options.items()}
    for name in options:
        if name in named or name == "model_file":
            raise UsageError(f"{name}: it has an argument of its own, such as model, images or inputs; give that alone")
        if name in kind.parameters and (instead := kind.parameters[name].instead_in_python):
            raise UsageError(f"{name}: {instead}")
        if name not in kind.parameters and name not in CONFIGURATION_PARAMETERS:
            raise UsageError(f"there is no option {name!r}.{did_you_mean(name, [*_NAMES, *kind.parameters])}")
        if name in CONFIGURATION_PARAMETERS:
            raise UsageError(f'{name} is about a configuration; give tests={{"{name}": Configuration({name}=...)}}')
    values = {"model_file": model, "reference": reference_text(reference), **named, **options}
    return flags_of(values, kind.parameters)


def _request(kind: DeclaredTask, flags: GivenFlags, tests: Tests) -> Request:
    request = kind.request_of_flags(flags, tests=read_tests(tests, flags.text("compat") == "native"))
    if tests is None and flags.leave_tests_open:
        request, _ = with_tests_here(request)
    return request
