"""Tasks of one's own: a function with typed parameters gives examples, inputs, scores and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter
from evaltools.task_kind import OWN, Accuracy, tree_kinds
from evaltools.tasks.own.definition import description_of, name_of
from evaltools.tasks.shared.declared import DeclaredTask
from evaltools.tasks.shared.options import (
    CHANNEL_ORDER,
    INPUT_LAYOUT,
    MAX_FAILED_EXAMPLES,
    MODEL_FILE,
    OUTPUT_FILE_PATH,
    PICTURES,
    REFERENCE_MODEL_FILE,
)

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.tasks.own.definition import Task
    from evaltools.tasks.own.loading import Loaded
    from evaltools.tasks.own.options import Option
    from evaltools.tasks.shared.request import TaskRequest

_NO_ANSWERS: Final = NotNative("the native tool gives no answers of single pictures")
_SHARED: Final = (
    MODEL_FILE,
    REFERENCE_MODEL_FILE,
    OUTPUT_FILE_PATH,
    MAX_FAILED_EXAMPLES,
    Parameter(
        "margin",
        "Change of a metric, in its own unit, that counts as none in the verdict; a metric may state its own. 0.005 is "
        "half a point of an accuracy.",
        default=0.005,
        about="result",
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
LABEL_METRICS: Final = {
    "accuracy": "audio, text: share of examples whose best label is right, 0..1",
    "label_map": "audio, text: mean over the labels of the average precision of their scores, 0..1",
    "same_answer": "audio, text: share of examples with the reference's best label, 0..1",
    "score_shift": "audio, text: largest change of a score against the reference, mean over the examples",
}
"""What the metrics of tasks with scores of labels mean (:mod:`evaltools.tasks.own.label_scores`)."""
_OF_ALL: Final = "A task of your own: run FILE.py:NAME MODEL.tflite --option=value ..."
_ANSWERS: Final = "evaltools.tasks.own.topk_metrics"
"""The metrics of a classifier's answers, which any task may have."""
_PART: Final = "evaltools.tasks.own.result:OwnPart"
_NEEDS: Final = ("scipy.special",)
_OTHER_NAMES: Final = ("help", "debug", "task", "model", "tests")
"""What the command line and Python take beside options."""


def _shared(native_answers: bool) -> tuple[Parameter, ...]:
    if not native_answers:
        return _SHARED
    return tuple(replace(each, not_native=None) if each.not_native is _NO_ANSWERS else each for each in _SHARED)


class FunctionTask(DeclaredTask):
    """A task that is a function. Without ``loaded`` it stands for all such tasks, as when a result is read.

    ``typed`` is what the command line calls it. ``metrics`` are its metrics, so that limits on them can be checked
    before anything runs: what each means by name, or the module that has them. ``native`` is the module with the lines
    of the native tool that does the same. ``native_answers``: that tool says what it found in each example.
    """

    def __init__(
        self,
        loaded: Loaded | None = None,
        typed: str = OWN,
        metrics: Mapping[str, str] | str = _ANSWERS,
        accuracy: Accuracy | None = None,
        native: str = "",
        place: int = 10,
        complete: Callable[[Options, Path], Options] | None = None,
        part: str = _PART,
        needs: Sequence[str] = _NEEDS,
        native_answers: bool = False,
    ) -> None:
        is_built_in = loaded is not None and loaded.is_built_in
        summary = _OF_ALL if loaded is None else description_of(loaded.function).partition("\n")[0]
        super().__init__(
            OWN if loaded is None else loaded.name,
            summary=summary,
            description=description_of(loaded.function) if loaded is not None and is_built_in else summary,
            options={"evaluation": _shared(native_answers)},
            evaluation="evaltools.tasks.own.evaluation:OwnEvaluation",
            part=part,
            report=native or "evaltools.tasks.own.report",
            metrics=metrics if isinstance(metrics, str) else "",
            needs=needs,
            accuracy=accuracy,
            place=place if is_built_in else 100,
            complete=complete,
        )
        self._loaded = loaded
        self._typed = typed
        self._own_metrics = metrics
        self._has_native_tool = bool(native)

    @property
    def command(self) -> str:
        """The task's name on the command line."""
        return super().command if self._loaded is not None and self._loaded.is_built_in else f"run {self._typed}"

    @property
    def loaded(self) -> Loaded:
        """The task's function; raises :class:`UsageError` where this stands for all tasks."""
        if self._loaded is None:
            raise UsageError("which task of your own? Write FILE.py:NAME")
        return self._loaded

    @cached_property
    def own_options(self) -> tuple[Option, ...]:
        """The options that the function's parameters declare.

        Raises :class:`UsageError` for parameters that cannot be options.
        """
        from evaltools.tasks.own.faults import place_of
        from evaltools.tasks.own.options import options_of

        if self._loaded is None:
            return ()
        place = place_of(self._loaded.function)
        options = options_of(self._loaded.function, place)
        taken = {*_OTHER_NAMES, *(name for each in FunctionTask().parameters.values() for name in each.names)}
        for option in options:
            if option.parameter.name in taken:
                name = option.parameter.name
                raise UsageError(f"{place}: every task has an option --{name} already; give the parameter another name")
        return options

    @property
    def options(self) -> Mapping[str, Sequence[Parameter]]:
        """The task's own options under their headings."""
        if self._loaded is None:
            return super().options
        own = {option.parameter.name: option.parameter for option in self.own_options}
        of_pictures = [each for each in _OF_PICTURES if self._may_take_pictures and each.name not in own]
        return {
            f"options of {name_of(self.loaded.function)}": tuple(own.values()),
            "evaluation": (*super().options["evaluation"], *of_pictures),
        }

    @property
    def _may_take_pictures(self) -> bool:
        """A function in a FILE.py may, whatever it calls them."""
        return not self.loaded.is_built_in or any(each.parameter.name in PICTURES for each in self.own_options)

    def with_stated_paths(self, options: Options, folder: Path) -> Options:
        """The options, completed with the defaults of the function's parameters that are paths."""
        paths = {each.parameter.name: each.parameter.default for each in self.own_options if each.parameter.is_path}
        found = options.stating({name: path for name, path in paths.items() if path and name not in options})
        return super().with_stated_paths(found, folder)

    def read(self, request: Request) -> TaskRequest:
        """Parse and check the options of a request."""
        from evaltools.tasks.own.evaluation import read_request

        return read_request(request, self.loaded, self.own_options, self._has_native_tool)

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task, of one that comes with evaltools."""
        from evaltools.metrics.metric import metric_of_own_task

        if isinstance(self._own_metrics, str):
            return super().metrics
        return [replace(metric_of_own_task(name), meaning=meaning) for name, meaning in self._own_metrics.items()]

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """The task's name for another machine.

        A task in a file is sent with it; an installed one must be installed there.
        """
        origin = self.loaded.origin
        return task if origin is None or origin.module else origin.in_file(take(origin.file))

    def files_beside(self) -> Sequence[Path]:
        """The modules beside the file of the task that it imports."""
        origin = self.loaded.origin
        return () if origin is None or origin.module else origin.beside


def comes_with_evaltools(
    function: Callable[..., Task],
    metrics: Mapping[str, str] | str,
    accuracy: Accuracy | None = None,
    native: str = "",
    place: int = 10,
    complete: Callable[[Options, Path], Options] | None = None,
    part: str = _PART,
    needs: Sequence[str] = _NEEDS,
    native_answers: bool = False,
) -> FunctionTask:
    """A task that comes with evaltools, made as one of your own is: the ``KIND`` of its folder.

    The others are as for :class:`FunctionTask` and :class:`DeclaredTask`.
    """
    from evaltools.tasks.own.loading import Loaded, Origin

    origin = Origin(Path(inspect.getfile(function)), name_of(function), function.__module__)
    loaded = Loaded(function, origin, name_of(function), is_built_in=True)
    return FunctionTask(
        loaded, name_of(function), metrics, accuracy, native, place, complete, part, needs, native_answers
    )


def kind_named(text: str) -> DeclaredTask:
    """The task that ``FILE.py:NAME`` or the name of an installed task stands for.

    Raises :class:`UsageError`.
    """
    if text == OWN:
        return FunctionTask()
    built_in = tree_kinds().get(text)
    if isinstance(built_in, FunctionTask):
        return built_in
    from evaltools.tasks.own.loading import load_task

    return FunctionTask(load_task(text), text)
