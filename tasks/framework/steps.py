"""What a pass does with each example of a task: inputs are made and outputs scored, and every call is checked."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import json
import math
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.documents import json_values
from evaltools.engine.steps import Prepared, Steps
from evaltools.errors import EvaltoolsError, ImageError, TaskError, UsageError
from evaltools.extensions import named
from evaltools.lazy_sequence import LazySequence
from evaltools.preprocess import resizing_by_kernel
from evaltools.result.section import Drawing
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example, Pooled, Task, Whole, WithContext
from evaltools.tasks.framework.faults import FAULTS, described, place_of, sentence, shown
from evaltools.tasks.framework.image_input import steps_of_pictures
from evaltools.tasks.framework.loading import Loaded, Origin
from evaltools.tasks.framework.sound_reference import are_sound
from evaltools.tasks.framework.task import kind_in_words, make_task
from evaltools.tasks.framework.tensors import ModelTensors, Outputs, TaskTensor

_MOST_NAMED: Final = 3
_LARGEST_SCORE: Final = 1e100
"""Squares of scores and their sums are numbers, too."""
_ROUNDING: Final = 1e-6
Recipe = Callable[[int], Callable[[], Prepared]]
"""Gives a small function that can be pickled, and makes the inputs of an example in another process."""

Prepare = Callable[[Any, Sequence[TaskTensor]], Any]


class Unfit(Exception):
    """A task's function returned something that it must not return."""


def prepare_there(prepare: Prepare, example: Example, number: int, models: Sequence[ModelTensors]) -> Prepared:
    """What :func:`prepared` does, in a process that does nothing else; where native code crashes, its line is named."""
    if not faulthandler.is_enabled():
        faulthandler.enable()
    with contextlib.redirect_stdout(sys.stderr), resizing_by_kernel():
        return prepared(prepare, example, number, models)


def prepared(prepare: Prepare, example: Example, number: int, models: Sequence[ModelTensors]) -> Prepared:
    """The inputs of an example for each model; raises :class:`ImageError` and :class:`TaskError`.

    The context is the number, and that of the inputs of each model.
    """
    with steps_of_pictures() as steps:
        made = [_inputs(prepare, example, model.inputs) for model in models]
    inputs = tuple(array for arrays, _ in made for array in arrays)
    return Prepared(inputs, (number, tuple(context for _, context in made)), tuple(steps))


def _inputs(prepare: Prepare, example: Example, tensors: Sequence[TaskTensor]) -> tuple[list[Array], Any]:
    """What ``prepare`` makes for these tensors, checked, and its context."""
    context = None
    try:
        made: Any = prepare(example.input, tensors)
        if isinstance(made, WithContext):
            made, context = made.arrays, made.context
        if made is None:
            raise Unfit(f"prepare gave nothing for {example.id!r}; return one array for each input of the model")
        if isinstance(made, np.ndarray) and len(tensors) == 1:
            made = (made,)
        arrays = [np.asarray(entry) for entry in made]
    except ImageError:
        raise
    except (TaskError, Unfit) as error:
        raise TaskError(described(error, place_of(prepare))) from error
    except FAULTS as error:
        raise TaskError(sentence(error, f"prepare failed for {example.id!r}", place_of(prepare))) from error
    place = f"{place_of(prepare)}: prepare gave"
    if len(arrays) != len(tensors):
        raise TaskError(f"{place} {len(arrays)} arrays for {example.id!r}; the model has {len(tensors)} inputs")
    return [_fitting(array, tensor, place) for array, tensor in zip(arrays, tensors, strict=True)], context


def _fitting(array: Array, tensor: TaskTensor, place: str) -> Array:
    """The array in the tensor's type, where that changes no whole number; raises :class:`TaskError`."""
    given, wanted = f"{array.dtype}{list(array.shape)}", f"{tensor.dtype}{list(tensor.shape)}"
    expected = f"the input {tensor.name!r} takes {wanted}"
    if array.shape != tensor.shape:
        raise TaskError(f"{place} {given}; {expected}")
    if array.dtype == tensor.dtype or (tensor.dtype.kind == "S" and array.dtype.kind in "SO"):
        return array
    if tensor.dtype.kind in "fc" and array.dtype.kind in "biuf":
        return array.astype(tensor.dtype)
    if tensor.dtype.kind in "iub" and array.dtype.kind in "biu":
        converted = array.astype(tensor.dtype)
        if np.array_equal(converted, array):
            return converted
        raise TaskError(f"{place} {given} with values outside of {tensor.dtype}; {expected}")
    hint = ". Quantise with np.rint(real / scale) + zero_point" if tensor.quantisation else ""
    raise TaskError(f"{place} {given}; {expected}{hint}")


Kept = TypeVar("Kept")


class ObservedScores(Struct, Generic[Kept], frozen=True, eq=False):
    """The scores of one example, in the order of the metrics; ``unknown`` are names that no metric has.

    None stands for the agreement with a reference that failed, or that there is not. ``drawing`` is what changed
    against the reference, where the task draws that. ``certain`` are metrics of the reference's agreement with itself.
    ``whole`` is what is kept for the metric with a part of the result of its own, None where there is none.
    """

    values: tuple[npt.NDArray[Any] | None, ...] = ()
    unknown: tuple[str, ...] = ()
    drawing: Drawing | None = None
    certain: tuple[str, ...] = ()
    whole: Kept | None = None


def steps_of(
    task: Task, models: Sequence[ModelTensors], keeps_state: bool = False, recipe: Recipe | None = None
) -> Steps[ObservedScores[Any]]:
    """What a pass does with each example of a task.

    ``models`` are the tensors of the model under test and, if it is another, of the reference's. ``keeps_state``: a
    model keeps a state from example to example. ``recipe`` None: no other process can make the inputs.
    """
    kept = named(task.whole.kept if task.whole else Whole.kept)
    observed: type[ObservedScores[Any]] = ObservedScores[kept]  # type: ignore[valid-type]
    return Steps(
        LazySequence(range(len(task.examples)), lambda example: task.examples[example].id),
        functools.partial(prepared_for, task, models),
        functools.partial(observe, task, models),
        observed,
        keeps_state or task.in_order,
        keeps_state,
        recipe,
    )


def prepared_for(task: Task, models: Sequence[ModelTensors], example: int) -> Prepared:
    """The inputs that the task makes for each model, checked; the context is the example's number.

    Raises :class:`ImageError` and :class:`TaskError`.
    """
    return prepared(task.prepare, task.examples[example], example, models)


def observe(
    task: Task,
    models: Sequence[ModelTensors],
    made: Prepared,
    outputs: Sequence[Array],
    reference: Sequence[Array] | None = None,
    configuration: str = "",
) -> ObservedScores[Any]:
    """Score the outputs; raises :class:`TaskError`. There is no agreement with a reference that is not sound."""
    number, contexts = made.context
    example, test, other = task.examples[number], models[0], models[-1]
    if reference is outputs:
        own = other.of_outputs(outputs, contexts[-1], configuration=configuration)
        return scores(task, example, own, own if are_sound(outputs) else None)
    base = None if reference is None else other.of_outputs(reference, contexts[-1])
    found = test.of_outputs(outputs, contexts[0], base, configuration)
    return scores(task, example, found, base if base is not None and are_sound(base) else None)


def recipe_of(
    loaded: Loaded, options: Mapping[str, Any], task: Task, models: Sequence[ModelTensors], choice: Any = None
) -> Recipe | None:
    """How other processes make the inputs: by the function itself if they can import it, else by the task's origin.

    ``choice`` is what the task's check chose. None where no other process can.
    """
    origin = loaded.origin
    if origin is not None and origin.module and _can_be_sent(task.prepare):
        return functools.partial(_by_prepare, task, models)
    if origin is None or loaded.setting_name or task.in_order:
        return None
    chosen = b"" if choice is None else json.dumps(choice).encode()
    return functools.partial(_by_origin, origin, tuple(options.items()), task, models, chosen)


def _can_be_sent(function: Callable[..., Any]) -> bool:
    try:
        pickle.dumps(function)
        return True
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


def _by_prepare(task: Task, models: Sequence[ModelTensors], example: int) -> Callable[[], Prepared]:
    own = dataclasses.replace(task.examples[example], target=None)
    return functools.partial(prepare_there, task.prepare, own, example, models)


def _by_origin(
    origin: Origin,
    options: tuple[tuple[str, Any], ...],
    task: Task,
    models: Sequence[ModelTensors],
    choice: bytes,
    example: int,
) -> Callable[[], Prepared]:
    name = task.examples[example].id
    return functools.partial(_load_and_prepare, origin, options, models, example, name, choice)


@functools.lru_cache(maxsize=4)
def _loaded_again(origin: Origin, options: tuple[tuple[str, Any], ...], choice: bytes) -> Task:
    """The task in a process that makes inputs, as its check chose it; it is loaded once."""
    task = make_task(Loaded(origin.load(), origin), dict(options))
    return task.chosen(json_values(choice)) if choice and task.chosen is not None else task


def _load_and_prepare(
    origin: Origin,
    options: tuple[tuple[str, Any], ...],
    models: Sequence[ModelTensors],
    example: int,
    name: str,
    choice: bytes,
) -> Prepared:
    try:
        with resizing_by_kernel():
            task = _loaded_again(origin, options, choice)
    except UsageError as error:
        raise TaskError(str(error)) from error
    known = task.examples[example].id if example < len(task.examples) else None
    if known != name:
        raise TaskError(
            f"{origin} gives other examples each time: number {example} was {name!r}, then {known!r}; "
            "list them in a fixed order"
        )
    return prepare_there(task.prepare, task.examples[example], example, models)


def scores(task: Task, example: Example, outputs: Outputs, reference: Outputs | None) -> ObservedScores[Any]:
    """What ``score`` and ``agree`` give, checked; raises :class:`TaskError`."""
    found: dict[str, Any] = {}
    certain: tuple[str, ...] = ()
    if task.score is not None:
        found |= _given(task, "score", task.score, (outputs, example.target), example)
    if task.agree is not None:
        agreement = _given(task, "agree", task.agree, (outputs, reference or outputs, example.target), example)
        found |= agreement if reference is not None else dict.fromkeys(agreement)
        certain = tuple(agreement) if reference is outputs else ()
    for metric in task.metrics:
        if metric.name not in found:
            there_are = ", ".join(list(found)[:_MOST_NAMED]) or "nothing"
            raise TaskError(f"{scored_at(task)} gave no {metric.name!r} for {example.id!r}, but {there_are}")
    names = [metric.name for metric in task.metrics]
    unknown = tuple(name for name in found if name not in names)
    drawing = None if reference is None else _drawn(task, example, outputs, reference)
    values = tuple(found.get(metric.name) for metric in task.means)
    whole = found.get(task.whole.name) if task.whole else None
    return ObservedScores(values, unknown[:_MOST_NAMED], drawing, certain, whole)


def _drawn(task: Task, example: Example, outputs: Outputs, reference: Outputs) -> Drawing | None:
    """What ``draw`` gives where the outputs are not those of the reference; raises :class:`TaskError`."""
    if task.draw is None or outputs.are_those_of(reference):
        return None
    place = place_of(task.draw)
    try:
        drawing = task.draw(outputs, reference, example)
        return None if drawing is None else _fit_drawing(drawing, example)
    except (EvaltoolsError, Unfit) as error:
        raise TaskError(described(error, place)) from error
    except FAULTS as error:
        raise TaskError(sentence(error, f"draw failed for {example.id!r}", place)) from error


def _fit_drawing(drawing: Any, example: Example) -> Drawing:
    """The drawing, with values of the types that its fields have; raises :class:`Unfit`."""
    try:
        found = msgspec.convert(msgspec.to_builtins(drawing, builtin_types=(bytes,)), Drawing)
    except (TypeError, msgspec.ValidationError) as error:
        raise Unfit(f"draw gave no evaltools.Drawing for {example.id!r}: {error}; return one, or None") from error
    if not 0 <= found.changed < math.inf:
        raise Unfit(f"draw gave changed={found.changed} for {example.id!r}; give a number that is 0 or above")
    return found


def _given(
    task: Task, name: str, function: Callable[..., Any], arguments: tuple[Any, ...], example: Example
) -> dict[str, Array]:
    """What a function of the task gives, by the names of metrics; raises :class:`TaskError`."""
    place = place_of(function)
    of_all = {metric.name for metric in task.metrics if isinstance(metric, Pooled | Whole)}
    with_any_numbers = {metric.name for metric in task.metrics if isinstance(metric, Whole)}
    try:
        given = function(*arguments)
        if not isinstance(given, Mapping):
            such = f'{{"{task.metrics[0].name}": 0.8}}'
            raise Unfit(f"{name} gave {kind_in_words(given)} for {example.id!r}; return a mapping such as {such}")
        numbers = {
            str(each): value
            if each in with_any_numbers
            else _numbers(f"{name} gave {each}", value, example, str(each) in of_all)
            for each, value in given.items()
        }
        _require_within_bounds(task, name, numbers, example)
        return numbers
    except (EvaltoolsError, Unfit) as error:
        raise TaskError(described(error, place)) from error
    except FAULTS as error:
        raise TaskError(sentence(error, f"{name} failed for {example.id!r}", place)) from error


def _require_within_bounds(task: Task, name: str, numbers: Mapping[str, Array], example: Example) -> None:
    """Raise :class:`Unfit` for a score beyond the bounds that its metric states; rounding is let pass."""
    for metric in task.metrics:
        value = None if isinstance(metric, Pooled | Whole) else numbers.get(metric.name)
        if value is None or metric.bounds is None:
            continue
        low, high = metric.bounds
        if not low - _ROUNDING <= float(value) <= high + _ROUNDING:
            raise Unfit(
                f"{name} gave {metric.name}={float(value):g} for {example.id!r}, whose metric states "
                f"bounds=({low:g}, {high:g}); state those that hold"
            )


def _numbers(given: str, value: Any, example: Example, of_all: bool) -> Array:
    """One number, or for a metric of all examples an array of them; raises :class:`Unfit`."""
    size = np.size(value)
    if size != 1 and not of_all:
        raise Unfit(
            f"{given} an array of the shape {list(np.shape(value))} for {example.id!r}; give one number, as its mean"
        )
    if value is None or isinstance(value, (str, bytes)):
        raise Unfit(f"{given}={shown(value)} for {example.id!r}; give {'an array' if of_all else 'a number'}")
    numbers = np.asarray(value) if of_all else np.asarray(float(value))
    if numbers.dtype.kind not in "biuf":
        raise Unfit(f"{given} an array of {numbers.dtype} for {example.id!r}; give numbers")
    if not np.all(np.abs(numbers) <= _LARGEST_SCORE):
        found = float(numbers) if numbers.ndim == 0 else "an array with other numbers"
        raise Unfit(
            f"{given}={found} for {example.id!r}; give "
            f"{'finite numbers' if of_all else 'a finite number'}, at most {_LARGEST_SCORE:g}"
        )
    return numbers


def scored_at(task: Task) -> str:
    """The functions that give scores, with the place of the first."""
    functions = {"score": task.score, "agree": task.agree}
    there = {name: function for name, function in functions.items() if function is not None}
    return f"{place_of(next(iter(there.values())))}: {' and '.join(there)}"
