"""The inputs that a task makes of an example, checked: here, or in a process that does nothing else."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evaltools.engine.steps import Prepared
from evaltools.errors import ImageError, TaskError
from evaltools.preprocess import resizing_by_kernel
from evaltools.runtime.session import Array
from evaltools.tasks.own.definition import Example, WithContext
from evaltools.tasks.own.faults import FAULTS, described, place_of, sentence
from evaltools.tasks.own.tensors import ModelTensors, TaskTensor
from evaltools.tasks.shared.image_input import steps_of_pictures

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
