"""What a task of your own is made of: examples, how one becomes inputs, how outputs are scored, which metrics.

Needs neither NumPy nor a runtime, so that ``import evaltools`` stays quick.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, ParamSpec, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy.typing as npt

    from evaltools.result.section import Drawing
    from evaltools.tasks.own.tensors import Outputs, TaskTensor

Parameters = ParamSpec("Parameters")
Better = Literal["higher", "lower"]
SHARE: Final = (0.0, 1.0)
"""The bounds of a metric that is a share."""


@dataclass(frozen=True)
class Example:
    """One example: ``prepare`` takes its ``input``, ``score`` its ``target``; ``id`` is unique and stays the same.

    >>> Example("cat.jpg", "val/cat.jpg", target=3).target
    3
    """

    id: str
    input: Any
    target: Any = None


@dataclass(frozen=True)
class Mean:
    """A metric of a task: the mean of what ``score`` gives under ``name``, over the examples.

    ``margin`` is the change, in the metric's own unit, that counts as none in verdicts; None: that of ``--margin``.
    ``bounds`` are the smallest and the largest score that there can be, None where none is known: without them few
    unequal examples say nothing of others.
    """

    name: str
    better: Better = "higher"
    margin: float | None = None
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Pooled(Mean):
    """A metric of all examples together: ``figure`` takes what ``score`` or ``agree`` gave of each, as arrays in order.

    It gives one number, or one for each example, whose mean is the metric. NaN: there is no such figure.
    """

    figure: Callable[[Sequence[npt.NDArray[Any]]], float | npt.NDArray[Any]]


def share_of(rows: Sequence[npt.NDArray[Any]]) -> float:
    """The sum of the first numbers by that of the second ones; NaN where that is 0.

    >>> share_of([(1, 2), (0, 2)])
    0.25
    """
    part, whole = (sum(float(row[place]) for row in rows) for place in (0, 1))
    return part / whole if whole else float("nan")


def mean(
    name: str,
    better: Better = "higher",
    margin: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Mean:
    """The mean over the examples of what ``score`` gives under this name.

    >>> mean("error", better="lower", margin=0.5).margin
    0.5
    """
    return Mean(name, better, margin, bounds)


def pooled(
    name: str,
    figure: Callable[[Sequence[npt.NDArray[Any]]], float | npt.NDArray[Any]],
    better: Better = "higher",
    margin: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> Pooled:
    """A metric that is not a mean over examples, such as a ratio of sums over all of them.

    >>> pooled("pixel_accuracy", lambda rows: sum(row[0] for row in rows) / sum(row[1] for row in rows)).name
    'pixel_accuracy'
    """
    return Pooled(name=name, better=better, margin=margin, bounds=bounds, figure=figure)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task over some examples.

    ``prepare(input, tensors)`` gives one array per input of the model; each of ``tensors`` has ``name``, ``shape``,
    ``dtype`` and ``quantisation``. ``score(outputs, target)`` gives a number per metric, ``{"iou": 0.8}``; ``outputs``
    are the arrays as the model gives them, and ``outputs.real(0)`` is the first one as real numbers.
    ``agree(outputs, reference, target)`` gives a number per metric, too: how far the outputs are those of the
    reference, for which it is called with its own on both sides. A task has one of the two, or both. For a metric that
    is :func:`pooled` they give an array of numbers. ``draw(outputs, reference, example)`` is asked where the outputs
    are not those of the reference; it gives a ``Drawing``, or None where there is nothing to see, and the page shows
    those that changed most.

    >>> import evaltools as et
    >>> task = et.Task(
    ...     examples=[et.Example("a", 1.0, target=2.0)],
    ...     prepare=lambda value, tensors: [np.full(tensors[0].shape, value, tensors[0].dtype)],
    ...     score=lambda outputs, target: {"error": abs(float(outputs[0].max()) - target)},
    ...     metrics=[et.mean("error", better="lower")],
    ... )
    >>> task.examples[0].id
    'a'
    """

    examples: Sequence[Example]
    prepare: Callable[[Any, Sequence[TaskTensor]], Sequence[npt.ArrayLike]]
    score: Callable[[Outputs, Any], Mapping[str, Any]] | None = None
    agree: Callable[[Outputs, Outputs, Any], Mapping[str, Any]] | None = None
    metrics: Sequence[Mean] = field(default=())
    draw: Callable[[Outputs, Outputs, Example], Drawing | None] | None = None


@runtime_checkable
class KnowsModels(Protocol):
    """A task's function that can say which models it is not for, before any example is made."""

    def require_outputs(self, count: int) -> None:
        """Raise :class:`~evaltools.errors.UsageError` where a model with so many outputs does not fit."""


class TaskFunction(Generic[Parameters]):
    """A function that makes a task; its typed parameters are the options. Calling it gives the :class:`Task`."""

    def __init__(self, function: Callable[Parameters, Task]) -> None:
        functools.update_wrapper(self, function)
        self.function: Final = function
        self.name: Final[str] = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *arguments: Parameters.args, **options: Parameters.kwargs) -> Task:
        """Make the task."""
        return self.function(*arguments, **options)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        lines = (self.function.__doc__ or "").strip().splitlines()
        return lines[0] if lines else ""

    @property
    def description(self) -> str:
        """Its docstring."""
        return inspect.cleandoc(self.function.__doc__ or "")


def task(function: Callable[Parameters, Task]) -> TaskFunction[Parameters]:
    """Make a function with typed parameters a task: ``images: Path`` is the option ``--images``.

    >>> from pathlib import Path
    >>> @task
    ... def rooms(images: Path, size: int = 3) -> Task:
    ...     '''How well rooms are found.'''
    ...     ...
    >>> rooms.name, rooms.summary
    ('rooms', 'How well rooms are found.')
    """
    return TaskFunction(function)
