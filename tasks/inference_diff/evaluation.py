"""An inference diff as a task: how models are fed and their outputs compared, and what is tried before the pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Checked, Example, Task, Trial, Tried, WithContext
from evaltools.tasks.framework.tensors import Outputs, TaskTensor
from evaltools.tasks.inference_diff.differences import Differences
from evaltools.tasks.inference_diff.material import DiffMaterial
from evaltools.tasks.inference_diff.measure_noise_floor import noise_floor_of
from evaltools.tasks.inference_diff.output_comparison import DiffObservation
from evaltools.tasks.inference_diff.output_order import COMPARED_RUNS, order_by_values
from evaltools.tasks.inference_diff.result import OutputOrder
from evaltools.tasks.inference_diff.saving import finish
from evaltools.tasks.inference_diff.value_ranges import are_sane


class Run(Struct, frozen=True, eq=False):
    """One run: its number, its inputs, and the reference's outputs where those are loaded."""

    number: int
    inputs: Sequence[Array]
    loaded: tuple[Array, ...] | None


class Choice(Struct, frozen=True):
    """What the first runs showed.

    ``narrowed``: float inputs of which nothing is known are drawn from a narrower range. ``order`` is that of the
    outputs of two models, None where no value was needed to find it.
    """

    narrowed: bool = False
    order: OutputOrder | None = None


def comparison_task(material: DiffMaterial) -> Task:
    """The task of comparing the outputs of each configuration with the reference's."""
    options, plan = material.options, material.plan
    differences = Differences(material=material)
    return Task(
        examples=[Example(name, number) for number, name in enumerate(plan.example_ids)],
        prepare=partial(_fed, material),
        score=partial(_compared, differences),
        metrics=[differences],
        check=partial(_check, material),
        chosen=partial(_chosen, material),
        in_order=True,
        warmup_runs=options.warmup_runs,
        invocations=options.invocations,
        models=material.models,
        pictures=plan.pictures,
        finish=None if material.writer is None else partial(finish, material, material.writer),
        beside=partial(noise_floor_of, material) if options.noise_floor_runs else None,
    )


def _fed(material: DiffMaterial, number: int, tensors: Sequence[TaskTensor]) -> WithContext:
    """The inputs of a run for the model with these tensors."""
    inputs = material.plan.source.inputs(number)
    loaded = None if material.loaded is None else material.loaded[number]
    of_reference = any(tensor.of_reference for tensor in tensors)
    return WithContext(material.side(of_reference).fed(inputs), Run(number, inputs, loaded))


def _compared(differences: Differences, outputs: Outputs, _target: object) -> dict[str, DiffObservation]:
    """The difference from the reference's outputs, which may be loaded; what is to be saved is written."""
    material, run = differences.material, outputs.context
    own = _in_order(material, outputs)
    base = run.loaded
    if base is None and outputs.reference is not None:
        base = _in_order(material, outputs.reference)
    if material.writer is not None:
        material.writer.save(outputs.configuration, run.number, run.inputs, own)
    difference = None if base is None else material.comparison.compare(own, base)
    return {differences.name: DiffObservation(difference, own if run.number in material.remembered else None)}


def _in_order(material: DiffMaterial, outputs: Outputs) -> tuple[Array, ...]:
    return material.side(outputs.tensors[0].of_reference).in_order(outputs)


def _check(material: DiffMaterial, trial: Trial) -> Checked:
    """Find a range of inputs in which the reference does not overflow, and the order of the outputs of two models."""
    reference = trial if material.pair is None else trial.of_reference
    if reference is None:
        return Checked()
    narrowed = _must_be_narrowed(material, reference)
    return Checked(choice=msgspec.to_builtins(Choice(narrowed, _order(material, trial, reference))))


def _must_be_narrowed(material: DiffMaterial, reference: Trial) -> bool:
    """Whether the reference overflows with the present ranges of random floats, and not with narrower ones.

    Only inputs whose range is a guess have a narrower one, as neither the user nor the model states theirs.
    """
    plan, first = material.plan, reference.first
    narrowed = plan.narrowed() if first is not None and not are_sane(first.outputs) else {}
    if not narrowed:
        return False
    ranges = plan.ranges
    plan.source.draw_from(narrowed)
    tried = reference.run([0])
    plan.source.draw_from(ranges)
    return bool(tried) and are_sane(tried[0].outputs)


def _order(material: DiffMaterial, trial: Trial, reference: Trial) -> OutputOrder | None:
    """The order of outputs that only values can tell; the configuration that is nearest to the reference decides."""
    pair = material.pair
    if pair is None or not pair.order.open:
        return None
    places = range(min(COMPARED_RUNS, len(material.plan.example_ids)))
    base = reference.run(places, with_copies=True)
    found = [
        order_by_values(pair.order, material.model.outputs, pair.reference_outputs, *_of_both(material, tried, base))
        for tried in trial.run_on_each(places)
        if base and len(tried) == len(base)
    ]
    return min(found, key=lambda entry: entry[1])[0] if found else None


def _of_both(
    material: DiffMaterial, tried: Sequence[Tried], base: Sequence[Tried]
) -> tuple[list[tuple[Array, ...]], list[tuple[Array, ...]]]:
    own, other = ([_in_order(material, each.outputs) for each in side] for side in (tried, base))
    return own, other


def _chosen(material: DiffMaterial, choice: Any) -> Task:
    found = msgspec.convert(choice, Choice)
    if found.narrowed:
        material.plan.source.draw_from(material.plan.narrowed())
    return comparison_task(material.in_order(found.order))
