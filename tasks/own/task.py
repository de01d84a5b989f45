"""A task with its models, as steps of a pass: every call of its functions is checked."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.documents import json_values
from evaltools.engine.steps import Prepared, Steps
from evaltools.errors import DataError, EvaltoolsError, ModelError, TaskError, UsageError
from evaltools.extensions import named
from evaltools.lazy_sequence import LazySequence
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import resizing_by_kernel
from evaltools.result.metrics import METRICS
from evaltools.result.section import Drawing
from evaltools.runtime.session import Array
from evaltools.tasks.own.definition import Example, Mean, Pooled, Setting, Task, Whole, name_of
from evaltools.tasks.own.faults import FAULTS, calling_task, described, place_of, sentence, shown
from evaltools.tasks.own.inputs import Prepare, Unfit, prepare_there, prepared
from evaltools.tasks.own.loading import Loaded, Origin
from evaltools.tasks.own.tensors import ModelTensors, Outputs, Quantisation, TaskTensor
from evaltools.tasks.shared.image_input import SHAPES, StatedLayout, has_free_size
from evaltools.tasks.shared.sound_reference import are_sound
from evaltools.text import can_be_written

_MOST_NAMED: Final = 3
_LARGEST_SCORE: Final = 1e100
_ROUNDING: Final = 1e-6
"""Squares of scores and their sums are numbers, too."""
_TAKEN_NAMES: Final = frozenset(
    {*(metric.name for metric in METRICS), "latency_ratio", "name", "reason", "delegation", "facts", "verdict", "entry",
     "figures", "is_measured", "in_words"}
)  # fmt: skip
"""Figures of every result, and what an entry of a result in Python has beside its figures."""


Elsewhere = Callable[[Task, int, Sequence[ModelTensors], bytes], Callable[[], Prepared]]
"""Gives a small function that can be pickled, and makes the inputs of an example in another process."""


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


class OwnTask:
    """A task of one's own with its models. Make it with :func:`build`.

    ``models`` are the tensors of the model under test and, if it is another, of the reference's. ``keeps_state``: a
    model keeps a state from example to example. ``elsewhere`` makes the inputs of an example in another process, None
    where no other process can. ``choice`` is what the task's check chose, in JSON, empty where it chose nothing.
    """

    def __init__(
        self,
        task: Task,
        models: Sequence[ModelTensors],
        keeps_state: bool = False,
        elsewhere: Elsewhere | None = None,
        choice: bytes = b"",
    ) -> None:
        self.keeps_state: Final = keeps_state
        self.in_order: Final = keeps_state or task.in_order
        self.task: Final = task
        self.models: Final = tuple(models)
        self.names: Final = LazySequence(range(len(task.examples)), self._name)
        self.elsewhere: Final = elsewhere
        self.choice: Final = choice

    def _name(self, example: int) -> str:
        return self.task.examples[example].id

    @property
    def steps(self) -> Steps[ObservedScores[Any]]:
        """What a pass does with each example."""
        recipe = None if self.elsewhere is None else self.recipe
        return Steps(
            self.names, self.prepare, self.observe, self.observation_type, self.in_order, self.keeps_state, recipe
        )

    @property
    def observation_type(self) -> type[ObservedScores[Any]]:
        """The scores, with what is kept for a metric that has a part of its own."""
        kept = named(self.task.whole.kept if self.task.whole else Whole.kept)
        found: type[ObservedScores[Any]] = ObservedScores[kept]  # type: ignore[valid-type]
        return found

    @property
    def inputs(self) -> tuple[TaskTensor, ...]:
        """The inputs of the model under test."""
        return self.models[0].inputs

    @property
    def of_reference(self) -> OwnTask:
        """The same task for the reference's model alone, on both sides."""
        return OwnTask(self.task, self.models[-1:], self.keeps_state)

    @property
    def of_test(self) -> OwnTask:
        """The same task for the model under test alone, on both sides."""
        return OwnTask(self.task, self.models[:1], self.keeps_state)

    def chosen(self, choice: Any) -> OwnTask:
        """The task for what its check chose; raises :class:`UsageError`."""
        assert self.task.chosen is not None
        return OwnTask(
            self.task.chosen(choice), self.models, self.keeps_state, self.elsewhere, json.dumps(choice).encode()
        )

    def prepared_by(self, prepare: Prepare) -> OwnTask:
        """The same task with other inputs."""
        return OwnTask(dataclasses.replace(self.task, prepare=prepare), self.models, self.keeps_state)

    def with_channels(self, order: str) -> OwnTask:
        """The same task with the channels of pictures in this order."""
        turned = [
            replace(model, inputs=tuple(replace(each, channel_order=order) for each in model.inputs))
            for model in self.models
        ]
        return OwnTask(self.task, turned, self.keeps_state)

    def prepare(self, example: int) -> Prepared:
        """The inputs that the task makes for each model, checked; the context is the example's number."""
        return prepared(self.task.prepare, self.task.examples[example], example, self.models)

    def recipe(self, example: int) -> Callable[[], Prepared]:
        """What :meth:`prepare` does, for another process."""
        assert self.elsewhere is not None
        return self.elsewhere(self.task, example, self.models, self.choice)

    def observe(
        self,
        prepared: Prepared,
        outputs: Sequence[Array],
        reference: Sequence[Array] | None = None,
        configuration: str = "",
    ) -> ObservedScores[Any]:
        """Score the outputs; raises :class:`TaskError`. There is no agreement with a reference that is not sound."""
        number, contexts = prepared.context
        example = self.task.examples[number]
        test, other = self.models[0], self.models[-1]
        if reference is outputs:
            own = other.of_outputs(outputs, contexts[-1], configuration=configuration)
            return scores(self.task, example, own, own if are_sound(outputs) else None)
        base = None if reference is None else other.of_outputs(reference, contexts[-1])
        found = test.of_outputs(outputs, contexts[0], base, configuration)
        return scores(self.task, example, found, base if base is not None and are_sound(base) else None)


def build(loaded: Loaded, options: Mapping[str, Any], setting: Setting) -> OwnTask:
    """The task with its examples, for a model, and the reference's if that is another.

    Raises :class:`UsageError` for one that cannot be used.
    """
    task = make_task(loaded, options, setting)
    models = task.models or setting.models
    for model in models[1:]:
        if len(model.outputs) != len(models[0].outputs):
            raise ModelError(
                f"{model.path} has {len(model.outputs)} outputs, {models[0].path} has {len(models[0].outputs)}; models "
                "that are compared need as many"
            )
    tensors = [
        _tensors_of(model, setting.input_layout, setting.channel_order, place > 0) for place, model in enumerate(models)
    ]
    is_stateful = any(model.stateful for model in models)
    return OwnTask(task, tensors, is_stateful, _elsewhere(loaded, task, options))


def _elsewhere(loaded: Loaded, task: Task, options: Mapping[str, Any]) -> Elsewhere | None:
    """How other processes make the inputs: by the function itself if they can import it, else by the task's origin."""
    if loaded.origin is not None and loaded.origin.module:
        try:
            pickle.dumps(task.prepare)
            return _by_prepare
        except (pickle.PicklingError, AttributeError, TypeError):
            pass
    if loaded.origin is None or loaded.setting_name or task.in_order:
        return None
    return functools.partial(_by_origin, loaded.origin, tuple(options.items()))


def _by_prepare(task: Task, example: int, models: Sequence[ModelTensors], _choice: bytes) -> Callable[[], Prepared]:
    own = dataclasses.replace(task.examples[example], target=None)
    return functools.partial(prepare_there, task.prepare, own, example, models)


def _by_origin(
    origin: Origin,
    options: tuple[tuple[str, Any], ...],
    task: Task,
    example: int,
    models: Sequence[ModelTensors],
    choice: bytes,
) -> Callable[[], Prepared]:
    name = task.examples[example].id
    return functools.partial(_load_and_prepare, origin, options, models, example, name, choice)


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


def make_task(loaded: Loaded, options: Mapping[str, Any], setting: Setting | None = None) -> Task:
    """Call the function, and check what it gives; raises :class:`UsageError`."""
    place, name = place_of(loaded.function), name_of(loaded.function)
    own = {loaded.setting_name: setting} if loaded.setting_name else {}
    try:
        with calling_task():
            task = loaded.function(**options, **own)
    except EvaltoolsError as error:
        kind = type(error) if isinstance(error, UsageError) else UsageError
        raise kind(described(error, place)) from error
    except FAULTS as error:
        raise UsageError(sentence(error, f"the task {name} cannot be made", place)) from error
    if not isinstance(task, Task):
        raise UsageError(f"{place}: {name} gives {_kind(task)}; return an evaltools.Task(...)")
    try:
        with calling_task():
            examples = tuple(task.examples)
    except FAULTS as error:
        raise UsageError(sentence(error, "its examples cannot be listed", place)) from error
    _require_examples(examples, place)
    _require_metrics(task.metrics, place)
    given = {name: getattr(task, name) for name in ("prepare", "score", "agree", "draw", "check", "chosen")}
    for name, function in given.items():
        may_be_missing = name in ("agree", "draw", "check", "chosen") or (
            name == "score" and given["agree"] is not None
        )
        if not callable(function) and not (function is None and may_be_missing):
            raise UsageError(f"{place}: {name} is {_kind(function)}; give a function")
    return dataclasses.replace(task, examples=examples)


def _require_examples(examples: Sequence[Any], place: str) -> None:
    if not examples:
        raise DataError(f"{place}: the task has no examples; check what its options point at")
    numbers: dict[str, int] = {}
    for number, example in enumerate(examples):
        if not isinstance(example, Example):
            raise UsageError(
                f"{place}: example {number} is {_kind(example)}; give evaltools.Example(id, input, target)"
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
        with calling_task():
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
        with calling_task():
            given = function(*arguments)
            if not isinstance(given, Mapping):
                such = f'{{"{task.metrics[0].name}": 0.8}}'
                raise Unfit(f"{name} gave {_kind(given)} for {example.id!r}; return a mapping such as {such}")
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


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
