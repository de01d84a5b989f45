"""What a task of your own is made of: examples, how one becomes inputs, how outputs are scored, which metrics.

Needs neither NumPy nor a runtime, so that ``import evaltools`` stays quick.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeGuard, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from evaltools.configuration import Configuration
    from evaltools.metrics.metric import Metric
    from evaltools.model import ModelFile
    from evaltools.result.result import Result, Row
    from evaltools.result.section import Drawing
    from evaltools.tasks.framework.image_input import StatedLayout
    from evaltools.tasks.framework.tensors import Outputs, Quantisation, TaskTensor

Function = TypeVar("Function", bound="Callable[..., Task]")
Better = Literal["higher", "lower"]
_MARK: Final = "__evaltools_task__"


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

    ``margin`` is the change, in the metric's own unit, that counts as none in verdicts; None: that of ``--margin``
    where it is stated, else half a point of a share, whose ``bounds`` are 0 and 1, and 1 % of the reference's value of
    another. ``bounds`` are the smallest and the largest score that there can be, None where none is known: without them
    few unequal examples say nothing of others, and nothing bounds what none of the examples shows. ``meaning`` is what
    lists of metrics say of it.
    """

    name: str
    better: Better = "higher"
    margin: float | None = None
    bounds: tuple[float, float] | None = None
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Pooled(Mean):
    """A metric of all examples together: ``figure`` takes what ``score`` or ``agree`` gave of each, as arrays in order.

    It gives one number, or one for each example, whose mean is the metric. NaN: there is no such figure.
    """

    figure: Callable[[Sequence[npt.NDArray[Any]]], float | npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Whole(Mean):
    """A metric of whole answers, which concludes several figures from all records; a task has at most one.

    ``score`` gives an array of numbers for it, or what the journal is to keep: ``kept`` is the type. ``concluded_by``
    is a function of the metric, the :class:`~evaltools.tasks.framework.collecting.RecordsOfRun` and the rows before
    they have figures of the task, which gives what is :class:`~evaltools.tasks.framework.collecting.Concluded`;
    ``found_beside`` is the type of what is measured beside a pass. All are ``MODULE:NAME``. ``against_reference``:
    nothing is run where there are no outputs of the reference. ``keeps_times``: the result has the time of each run.
    """

    concluded_by: ClassVar[str] = ""
    kept: ClassVar[str] = "numpy:ndarray"
    found_beside: ClassVar[str] = "evaltools.tasks.framework.beside:Found"
    against_reference: ClassVar[bool] = False
    keeps_times: ClassVar[bool] = False


@dataclass(frozen=True, kw_only=True)
class TopK(Whole):
    """Top-1 to Top-``most`` accuracy of a classifier, and the agreement of its best class with the reference's.

    ``labels[i]`` is the label of class i, None for a class without one; an example's target is its right label, and
    its score is what :meth:`score` gives. So it is the ``score`` of a task with no other metric.
    """

    concluded_by: ClassVar[str] = "evaltools.tasks.framework.topk:conclude"
    name: str = "topk"
    labels: Sequence[str | None]
    most: int = 10

    @property
    def k(self) -> int:
        """How many classes are ranked."""
        return min(self.most, len(self.labels))

    def score(self, outputs: Outputs, target: str) -> dict[str, npt.NDArray[Any]]:
        """The best classes of the first output, which has one score per class in any shape, and the right one's rank.

        Raises :class:`~evaltools.errors.TaskError` for an output with another number of scores than labels.
        """
        return {self.name: self.rank(outputs[0].ravel(), target, outputs.tensors[0].quantisation)}

    def rank(self, scores: npt.NDArray[Any], target: str, quantisation: Quantisation | None = None) -> npt.NDArray[Any]:
        """What :meth:`score` gives for scores (N,), raw where there is a quantisation."""
        from evaltools.tasks.framework.answers import ranked

        return ranked(scores, self.labels, target, self.k, quantisation)


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
    meaning: str = "",
) -> Mean:
    """The mean over the examples of what ``score`` gives under this name, in the score's own unit.

    ``better`` says which direction is, ``margin`` which change of the mean counts as none in verdicts, ``bounds`` the
    smallest and the largest score that one example can have, such as ``(0, 1)`` of a share, ``meaning`` what it is.

    >>> mean("error", better="lower", margin=0.5).margin
    0.5
    """
    return Mean(name, better, margin, bounds, meaning)


def pooled(
    name: str,
    figure: Callable[[Sequence[npt.NDArray[Any]]], float | npt.NDArray[Any]],
    better: Better = "higher",
    margin: float | None = None,
    bounds: tuple[float, float] | None = None,
    meaning: str = "",
) -> Pooled:
    """A metric that is not a mean over examples, such as a ratio of sums over all of them.

    ``figure`` takes one array for each example, in their order: what ``score`` gives under this name, a number as an
    array of shape (). It gives the metric, or a number for each example, whose mean is the metric. ``better``,
    ``margin``, ``bounds`` and ``meaning`` are as for :func:`mean`, of the metric itself.

    >>> pooled("pixel_accuracy", lambda rows: sum(row[0] for row in rows) / sum(row[1] for row in rows)).name
    'pixel_accuracy'
    """
    return Pooled(name=name, better=better, margin=margin, bounds=bounds, meaning=meaning, figure=figure)


def in_lists(metrics: Iterable[Mean]) -> list[Metric]:
    """What limits, help and documents know of the metrics of a task before there is a figure.

    >>> in_lists([mean("iou", bounds=(0, 1), meaning="mean IoU")])[0].is_share
    True
    """
    from evaltools.metrics.metric import SHARE, Metric

    return [
        Metric(
            each.name,
            each.meaning,
            better=each.better,
            is_share=each.bounds == SHARE,
            may_be_negative=True,
            is_of_own_task=True,
        )
        for each in metrics
    ]


def topk(labels: Sequence[str | None], most: int = 10) -> TopK:
    """Top-1 to Top-``most`` accuracy, where an example's target is the label of its right class.

    ``labels[i]`` is the label of class i. Ties go to the lower class, as in the native tool.

    >>> topk(["cat", "dog"]).k
    2
    """
    return TopK(labels=labels, most=most)


@dataclass(frozen=True)
class Setting:
    """What a task is carried out with, beside its options: a function that needs it has a parameter of this type.

    Attributes:
        models: the model under test and, if it is another, the reference's.
        input_layout: the order of the axes of a picture's input, as ``--input_layout`` states it.
        channel_order: as ``--channel_order`` states it; empty for what the model says.
        native: ``--compat=native``: do what the native tool does, also where that is a trap.
        reference: the configuration that the tests are compared with, None for none.
        tests: the configurations that are tested.
    """

    models: Sequence[ModelFile]
    input_layout: StatedLayout = "auto"
    channel_order: str = ""
    native: bool = False
    reference: Configuration | None = None
    tests: Sequence[Configuration] = ()


@dataclass(frozen=True)
class WithContext:
    """What ``prepare`` may give: the arrays, and what ``score`` and ``agree`` find as ``outputs.context``.

    The context is anything, such as the place of a picture in its input. Where more than one process is at work, it
    comes sooner if it is made of numbers, texts, arrays, lists, tuples, dictionaries and dataclasses.
    """

    arrays: Sequence[npt.ArrayLike]
    context: Any = None


@dataclass(frozen=True)
class Tried:
    """One example that was run: its place among the examples, its target, and the model's outputs."""

    place: int
    target: Any
    outputs: Outputs


class Trial(Protocol):
    """Runs examples of a task on one model before the pass; a task's ``check`` gets it.

    ``trouble`` is the error of the last example that failed, None where none did. ``first`` is the first example as the
    reference ran it at the beginning of its warm-up; None without one, and for a model that is not the reference's.
    """

    trouble: Exception | None
    first: Tried | None

    @property
    def of_reference(self) -> Trial | None:
        """The same for the reference's model; None where that is no other model, or does not run."""

    @property
    def inputs(self) -> Sequence[TaskTensor]:
        """The inputs of the model."""

    @property
    def targets(self) -> list[Any]:
        """The target of every example of the task."""

    def run(
        self,
        places: Sequence[int],
        prepare: Callable[[Any, Sequence[TaskTensor]], Any] | None = None,
        channel_order: str = "",
        with_copies: bool = False,
        most: int | None = None,
    ) -> list[Tried]:
        """Run the examples at these places, with inputs by another ``prepare``, in another order of channels.

        Only the first ``most`` of those whose inputs can be made. Examples that fail are left out, and copies of one
        that was run unless ``with_copies``: they say nothing new. They run on the first configuration of the model that
        can run all of them, else on the one that runs most.
        """

    def run_on_each(self, places: Sequence[int]) -> list[list[Tried]]:
        """The same on every configuration of the model, without those that can run none of the examples."""


@dataclass(frozen=True)
class Checked:
    """What ``check`` found: sentences that the result shows as warnings, and the ``choice`` for :attr:`Task.chosen`.

    A choice is made of what JSON has, so that a run that goes on and its shards choose the same.
    """

    notes: Sequence[str] = ()
    choice: Any = None


def is_setting(hint: object) -> bool:
    """Whether a parameter of this type takes the :class:`Setting`, and is no option.

    >>> is_setting(Setting), is_setting("et.Setting"), is_setting("int")
    (True, True, False)
    """
    return hint is Setting or (isinstance(hint, str) and hint.rpartition(".")[2] == Setting.__name__)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task over some examples: the first five attributes make one, the others are for special ones.

    Attributes:
        examples: what is evaluated; the id of each names it in results.
        prepare: ``prepare(input, tensors)`` gives an array for each input of the model; each of ``tensors`` has
            ``name``, ``shape``, ``dtype`` and ``quantisation``. Or a :class:`WithContext`.
        score: ``score(outputs, target)`` gives a number for each metric, ``{"iou": 0.8}``, an array for one that is
            :func:`pooled`. ``outputs`` are the arrays as the model gives them, ``outputs.real(0)`` is the first one as
            real numbers. None: there is no truth.
        agree: ``agree(outputs, reference, target)`` gives the same kinds of numbers: how far the outputs are those of
            the reference, for which it is called with its own on both sides. A task has ``score``, ``agree`` or both.
        metrics: what is concluded from these numbers.
        draw: ``draw(outputs, reference, example)`` is asked where the outputs are not those of the reference; it gives
            a ``Drawing``, or None where there is nothing to see. The page shows those that changed most.
        check: ``check(trial)`` is called once before the pass: the :class:`Trial` runs any of the examples, also with
            other inputs. It raises :class:`~evaltools.errors.DataError` for data that do not fit the model, and gives
            sentences that the result shows as warnings, or a :class:`Checked` with what it chose.
        chosen: ``chosen(choice)`` makes the task that is carried out after such a choice.
        facts: texts by name that decide the scores beside the options, such as a checksum of labels: results with
            other facts are not of the same examples. Files that options name, but pictures, are known by them.
        notes: warnings that the result shows, too.
        in_order: inputs are made one after the other, as random numbers are.
        warmup_runs: how often each configuration runs the first example before anything counts.
        invocations: how often every example is run.
        models: those that run, where they are not the models of the :class:`Setting` as they were read.
        pictures: the files that inputs are made of, where they are not what the examples have as their input.
        fed_range: between which values pixels are fed, where the option ``normalization`` alone does not say it.
        beside: is called after the pass with a :class:`~evaltools.tasks.framework.beside.AfterPass`, and measures what
            the figures are to be compared with.
        finish: ``finish(result)`` is called once with the result of a run, to write what the task keeps beside it; it
            gives why something could not be written, else an empty text.
        native: ``native(result, row)`` gives the lines that stdout gets of a measured configuration, as a native tool
            for the same prints them: ``row.figures["iou"].value`` is one of its figures. None: a line for each metric.

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
    prepare: Callable[[Any, Sequence[TaskTensor]], Sequence[npt.ArrayLike] | WithContext]
    score: Callable[[Outputs, Any], Mapping[str, Any]] | None = None
    agree: Callable[[Outputs, Outputs, Any], Mapping[str, Any]] | None = None
    metrics: Sequence[Mean] = field(default=())
    draw: Callable[[Outputs, Outputs, Example], Drawing | None] | None = None
    check: Callable[[Trial], Sequence[str] | Checked] | None = None
    chosen: Callable[[Any], Task] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    in_order: bool = False
    warmup_runs: int = 0
    invocations: int = 1
    models: Sequence[ModelFile] = ()
    pictures: Sequence[Path] | None = None
    fed_range: tuple[float, float] | None = None
    beside: Callable[[Any], Any] | None = None
    finish: Callable[[Result], str] | None = None
    native: Callable[[Result, Row], Sequence[str]] | None = None

    @property
    def means(self) -> list[Mean]:
        """The metrics without the one of whole answers."""
        return [metric for metric in self.metrics if not isinstance(metric, Whole)]

    @property
    def whole(self) -> Whole | None:
        """The metric of whole answers; None where there is none."""
        return next((metric for metric in self.metrics if isinstance(metric, Whole)), None)


def task(function: Function) -> Function:
    """Make a function with typed parameters a task: ``images: Path`` is the option ``--images``.

    It is the same function, marked so that it is found.

    >>> from pathlib import Path
    >>> @task
    ... def rooms(images: Path, size: int = 3) -> Task:
    ...     '''How well rooms are found.'''
    ...     ...
    >>> is_task(rooms), name_of(rooms), description_of(rooms)
    (True, 'rooms', 'How well rooms are found.')
    """
    setattr(function, _MARK, True)
    return function


def is_task(found: object) -> TypeGuard[Callable[..., Task]]:
    """Whether something is a function that :func:`task` marked."""
    return getattr(found, _MARK, False) is True


def name_of(function: Callable[..., Task]) -> str:
    """What results call a task by: the name of its function."""
    return getattr(function, "__name__", type(function).__name__)


def description_of(function: Callable[..., Task]) -> str:
    """The docstring of a task's function; its first line is the summary."""
    return inspect.cleandoc(function.__doc__ or "")
