"""Tasks that are functions, and their commands: typed parameters are the options.

The function gives examples, inputs, scores and metrics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from evaltools.command import Accuracy, Groups, TaskCommand
from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.known_tasks import OWN
from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.framework.common_options import (
    CHANNEL_ORDER,
    CONFIGURATIONS,
    EXECUTION,
    INPUT_LAYOUT,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    MODEL_FILE,
    OUTPUT_FILE_PATH,
    PICTURES,
    REFERENCE_MODEL_FILE,
)
from evaltools.tasks.framework.definition import description_of, name_of

if TYPE_CHECKING:
    from evaltools.request import Request
    from evaltools.tasks.framework.definition import Task
    from evaltools.tasks.framework.loading import Loaded
    from evaltools.tasks.framework.options import Option
    from evaltools.tasks.framework.request import TaskRequest

_NO_ANSWERS: Final = NotNative("the native tool gives no answers of single pictures")
_SHARED: Final = (
    MODEL_FILE,
    REFERENCE_MODEL_FILE,
    OUTPUT_FILE_PATH,
    MAX_FAILED_EXAMPLES,
    replace(
        MARGIN,
        help="Change of a metric that counts as none in the verdict; a metric may state its own. '0.5 points' is 5 of "
        "1000 examples; a number without a unit is in that of a metric that is no share.",
        not_native=_NO_ANSWERS,
    ),
    Parameter(
        "record_examples",
        "Write the scores of every example to the JSON result.",
        default=False,
        about="result",
        not_native=_NO_ANSWERS,
    ),
)


_OF_PICTURES: Final = (replace(CHANNEL_ORDER, given_counts=True), INPUT_LAYOUT)
_OF_ALL: Final = "A task of your own: run FILE.py:NAME MODEL.tflite --option=value ..."
_NEEDS: Final = ("scipy.special",)
_OTHER_NAMES: Final = ("help", "debug", "task", "model", "tests")
"""What the command line and Python take beside options."""


def _shared(native_answers: bool, leaves_out: Collection[str]) -> list[Parameter]:
    shared = [each for each in _SHARED if each.name not in leaves_out]
    if not native_answers:
        return shared
    return [replace(each, not_native=None) if each.not_native is _NO_ANSWERS else each for each in shared]


def all_options(own: Groups, execution: Sequence[Parameter] = EXECUTION) -> Groups:
    """All options of a task under their headings: first its own, then those that all tasks share."""
    return {
        **own,
        "execution": execution,
        "configurations": (*CONFIGURATIONS, *OWN_PARAMETERS),
        **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
        "delegates, common": COMMON,
    }


@lru_cache(maxsize=16)
def own_options(function: Callable[..., Task]) -> tuple[Option, ...]:
    """The options that a function's parameters declare.

    Raises :class:`UsageError` for parameters that cannot be options.
    """
    from evaltools.tasks.framework.faults import place_of
    from evaltools.tasks.framework.options import options_of

    place = place_of(function)
    options = options_of(function, place)
    shared = (parameter for group in all_options({"evaluation": _SHARED}).values() for parameter in group)
    taken = {*_OTHER_NAMES, *(name for parameter in shared for name in parameter.names)}
    for option in options:
        if option.parameter.name in taken:
            name = option.parameter.name
            raise UsageError(f"{place}: every task has an option --{name} already; give the parameter another name")
    return options


def _options_of_task(
    loaded: Loaded,
    native_answers: bool = False,
    leaves_out: Collection[str] = (),
    execution: Sequence[Parameter] = EXECUTION,
) -> Groups:
    own = [option.parameter for option in own_options(loaded.function)]
    names = [parameter.name for parameter in own]
    may_take_pictures = not loaded.is_built_in or any(name in PICTURES for name in names)
    of_pictures = [each for each in _OF_PICTURES if may_take_pictures and each.name not in names]
    by_heading: dict[str, list[Parameter]] = {}
    for parameter in own:
        by_heading.setdefault(parameter.heading or f"options of {name_of(loaded.function)}", []).append(parameter)
    return all_options({**by_heading, "evaluation": (*_shared(native_answers, leaves_out), *of_pictures)}, execution)


def comes_with_evaltools(
    function: Callable[..., Task],
    metrics: str,
    accuracy: Accuracy | None = None,
    native: str = "",
    place: int = 10,
    complete: Callable[[Mapping[str, Any], Path], Mapping[str, str]] | None = None,
    needs: Sequence[str] = _NEEDS,
    native_answers: bool = False,
    leaves_out: Collection[str] = (),
    execution: Sequence[Parameter] = EXECUTION,
) -> TaskCommand:
    """The command of a task that comes with evaltools: the ``COMMAND`` of its folder.

    ``metrics`` is the module that has its ``METRICS``, so that limits on them can be checked before anything runs.
    ``native`` is the module with the lines of the native tool that does the same. ``native_answers``: that tool says
    what it found in each example. ``needs`` are more modules that a device must be able to import. ``leaves_out`` are
    the options of all tasks that this one does not have, ``execution`` those about how the work is done. The others are
    as for :class:`TaskCommand`.
    """
    from evaltools.tasks.framework.loading import Loaded, Origin

    name, description = name_of(function), description_of(function)
    loaded = Loaded(
        function, Origin(Path(inspect.getfile(function)), name, function.__module__), name, is_built_in=True
    )
    return TaskCommand(
        name,
        name.replace("_", "-"),
        partial(_options_of_task, loaded, native_answers, leaves_out, execution),
        _modules(needs),
        summary=description.partition("\n")[0],
        description=description,
        place=place,
        source=loaded,
        accuracy=accuracy,
        native_at=native,
        metrics_at=metrics,
        complete=complete,
    )


def _modules(needs: Sequence[str]) -> Sequence[str]:
    return ("evaltools.runs.task_run", *needs)


def own_command(loaded: Loaded, typed: str = OWN) -> TaskCommand:
    """The command of a task in a file or of an installed one; ``typed`` is what the command line calls it."""
    summary = description_of(loaded.function).partition("\n")[0]
    return TaskCommand(
        loaded.name,
        f"run {typed}",
        partial(_options_of_task, loaded),
        _modules(_NEEDS),
        summary=summary,
        description=summary,
        source=loaded,
    )


def outside_task(text: str) -> TaskCommand:
    """The command of ``FILE.py:NAME`` or of an installed task; that of all such, as when a result is read, for ``own``.

    Raises :class:`UsageError`.
    """
    if text == OWN:
        options = partial(all_options, {"evaluation": _SHARED})
        return TaskCommand(OWN, f"run {OWN}", options, _modules(_NEEDS), summary=_OF_ALL, description=_OF_ALL)
    from evaltools.tasks.framework.loading import load_task

    return own_command(load_task(text), text)


def loaded_of(task: TaskCommand) -> Loaded:
    """The function of a command's task; raises :class:`UsageError` where it stands for all tasks."""
    if task.source is None:
        raise UsageError("which task of your own? Write FILE.py:NAME")
    loaded: Loaded = task.source
    return loaded


def read(task: TaskCommand, request: Request) -> TaskRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    from evaltools.tasks.framework.request import read_request

    loaded = loaded_of(task)
    return read_request(request, loaded, own_options(loaded.function), bool(task.native_at))
