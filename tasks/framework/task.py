"""Calls a task's function, and checks what it gives; the tensors of models as a task gets them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.errors import DataError, EvaltoolsError, ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.result.metrics import METRICS
from evaltools.tasks.framework.definition import Example, Mean, Setting, Task, Whole, name_of
from evaltools.tasks.framework.faults import FAULTS, described, place_of, sentence, shown
from evaltools.tasks.framework.image_input import SHAPES, StatedLayout, has_free_size
from evaltools.tasks.framework.loading import Loaded
from evaltools.tasks.framework.tensors import ModelTensors, Quantisation, TaskTensor
from evaltools.text import can_be_written

_TAKEN_NAMES: Final = frozenset(
    {*(metric.name for metric in METRICS), "latency_ratio", "name", "reason", "delegation", "facts", "verdict", "entry",
     "figures", "is_measured", "in_words"}
)  # fmt: skip
"""Figures of every result, and what an entry of a result in Python has beside its figures."""


def _tensors_of(model: ModelFile, layout: StatedLayout, channel_order: str, of_reference: bool) -> ModelTensors:
    """The model's tensors as the task gets them; raises :class:`ModelError` where stated channels fit no input."""
    inputs = tuple(
        replace(
            each,
            stated_layout=layout,
            channel_order=channel_order,
            free_size=has_free_size(tensor),
            of_reference=of_reference,
        )
        for tensor, each in zip(model.inputs, tensors_of(model, model.inputs), strict=True)
    )
    if (layout != "auto" or channel_order) and not any(each.layout for each in inputs):
        flag = f"--channel_order={channel_order}" if layout == "auto" else f"--input_layout={layout}"
        listed = ", ".join(map(str, model.inputs))
        raise ModelError(f"{model.path}: {flag} needs an input {SHAPES[layout]}; the model has {listed}")
    outputs = tuple(replace(each, of_reference=of_reference) for each in tensors_of(model, model.outputs))
    return ModelTensors(inputs, outputs)


def tensors_of_models(models: Sequence[ModelFile], setting: Setting) -> tuple[ModelTensors, ...]:
    """The tensors of the model under test and, if it is another, of the reference's, as a task gets them.

    Raises :class:`ModelError` for models with other numbers of outputs, and where stated channels fit no input.
    """
    for model in models[1:]:
        if len(model.outputs) != len(models[0].outputs):
            raise ModelError(
                f"{model.path} has {len(model.outputs)} outputs, {models[0].path} has {len(models[0].outputs)}; models "
                "that are compared need as many"
            )
    return tuple(
        _tensors_of(model, setting.input_layout, setting.channel_order, place > 0) for place, model in enumerate(models)
    )


def make_task(loaded: Loaded, options: Mapping[str, Any], setting: Setting | None = None) -> Task:
    """Call the function, and check what it gives; raises :class:`UsageError`."""
    place, name = place_of(loaded.function), name_of(loaded.function)
    own = {loaded.setting_name: setting} if loaded.setting_name else {}
    try:
        task = loaded.function(**options, **own)
    except EvaltoolsError as error:
        kind = type(error) if isinstance(error, UsageError) else UsageError
        raise kind(described(error, place)) from error
    except FAULTS as error:
        raise UsageError(sentence(error, f"the task {name} cannot be made", place)) from error
    if not isinstance(task, Task):
        raise UsageError(f"{place}: {name} gives {kind_in_words(task)}; return an evaltools.Task(...)")
    try:
        examples = tuple(task.examples)
    except FAULTS as error:
        raise UsageError(sentence(error, "its examples cannot be listed", place)) from error
    _require_examples(examples, place)
    _require_metrics(task.metrics, place)
    given = {name: getattr(task, name) for name in ("prepare", "score", "agree", "draw", "check", "chosen", "native")}
    for name, function in given.items():
        may_be_missing = name in ("agree", "draw", "check", "chosen", "native") or (
            name == "score" and given["agree"] is not None
        )
        if not callable(function) and not (function is None and may_be_missing):
            raise UsageError(f"{place}: {name} is {kind_in_words(function)}; give a function")
    return dataclasses.replace(task, examples=examples)


def _require_examples(examples: Sequence[Any], place: str) -> None:
    if not examples:
        raise DataError(f"{place}: the task has no examples; check what its options point at")
    numbers: dict[str, int] = {}
    for number, example in enumerate(examples):
        if not isinstance(example, Example):
            raise UsageError(
                f"{place}: example {number} is {kind_in_words(example)}; give evaltools.Example(id, input, target)"
            )
        if not isinstance(example.id, str) or not example.id or not can_be_written(example.id):
            raise UsageError(
                f"{place}: the id of example {number} is {shown(example.id)}; give a text that is not empty, of whole "
                "characters"
            )
        if example.id in numbers:
            raise UsageError(
                f"{place}: the examples {numbers[example.id]} and {number} have the same id {example.id!r}; "
                "an id stands for one example, so that a run can be resumed"
            )
        numbers[example.id] = number


def _require_metrics(metrics: Any, place: str) -> None:
    if not isinstance(metrics, Sequence) or not metrics or not all(isinstance(each, Mean) for each in metrics):
        raise UsageError(f'{place}: metrics is {shown(metrics)}; give such as [evaltools.mean("iou", better="higher")]')
    names = [metric.name for metric in metrics]
    for metric in metrics:
        if not isinstance(metric.name, str) or not metric.name.isidentifier():
            raise UsageError(f"{place}: {shown(metric.name)} is not a name of a metric; use letters, digits and _")
        if metric.name in _TAKEN_NAMES:
            raise UsageError(f"{place}: every result has a {metric.name} already; give the metric another name")
        if isinstance(metric, Whole) and metric is not next(each for each in metrics if isinstance(each, Whole)):
            raise UsageError(f"{place}: two metrics judge whole answers, as evaltools.topk(...) does; give one of them")
        if names.count(metric.name) > 1:
            raise UsageError(f"{place}: two metrics are named {metric.name!r}; give each a name of its own")
        if metric.better not in ("higher", "lower"):
            raise UsageError(f"{place}: better={shown(metric.better)} of {metric.name}: write 'higher' or 'lower'")
        if metric.bounds is not None and not _are_bounds(metric.bounds):
            raise UsageError(
                f"{place}: bounds={shown(metric.bounds)} of {metric.name}: give the lowest and the highest score, such "
                "as (0, 1), or leave it out"
            )
        if metric.margin is not None and not 0 < metric.margin < math.inf:
            raise UsageError(
                f"{place}: margin={shown(metric.margin)} of {metric.name}: give a number above 0, or leave it out"
            )


def _are_bounds(given: Any) -> bool:
    """Whether it is a pair of finite numbers, the lower one first."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    are_numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in given)
    return are_numbers and given[0] < given[1]


def tensors_of(model: ModelFile, tensors: Sequence[TensorInfo]) -> tuple[TaskTensor, ...]:
    """Inputs or outputs as a task gets them."""
    return tuple(_tensor(model, tensor) for tensor in tensors)


def _tensor(model: ModelFile, tensor: TensorInfo) -> TaskTensor:
    quantisation = None
    if tensor.scale is not None and tensor.zero_point is not None and tensor.is_quantized:
        quantisation = Quantisation(tensor.scale, tensor.zero_point)
    stated = model.normalization if tensor.index == model.inputs[0].index else None
    dtype = np.dtype("S" if tensor.dtype == "string" else tensor.dtype)
    return TaskTensor(tensor.name, tensor.shape, dtype, quantisation, (stated.mean, stated.std) if stated else None)


def kind_in_words(value: Any) -> str:
    """What was given instead of something else.

    >>> kind_in_words(None), kind_in_words([])
    ('nothing', 'a list')
    """
    return "nothing" if value is None else f"a {type(value).__name__}"
