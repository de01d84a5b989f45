"""Measures the yardsticks of an inference diff after its pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaltools.engine import Open, Opened, Outcome
from evaltools.errors import ImageError
from evaltools.runtime.session import Array
from evaltools.tasks.diff_request import DiffMaterial, DiffRequest
from evaltools.tasks.diff_reruns import LOCAL_REFERENCE, base_configuration, fit_of
from evaltools.tasks.diff_yardsticks import Driven, Rerun, Runs, Sample, SecondLook, drive, look_again
from evaltools.tasks.inference_diff import DiffObservation


def second_look(
    request: DiffRequest,
    material: DiffMaterial,
    opened: Sequence[Opened],
    reruns: Sequence[Rerun],
    outcome: Outcome[DiffObservation],
    open_with: Open,
    on_step: Callable[[int], None],
) -> SecondLook:
    """Do the reruns on the sampled runs whose inputs can be read; Ctrl-C keeps what was seen until then.

    Where the reference's outputs were loaded, the CPU here stands in for it.
    """
    readable = _readable(material)
    if not readable:
        return SecondLook()
    sample, inputs = list(readable), list(readable.values())
    outputs: dict[str, Runs] = {name: _kept(outcome, name, sample) for name in outcome.records}
    problem = None
    try:
        if request.reference is None:
            base = Driven(material.model, base_configuration(opened, None), fit_of(material, is_reference=True))
            local = drive(base, inputs, request.warmup_runs, request.invocations, open_with)
            outputs[LOCAL_REFERENCE] = [] if isinstance(local, str) else local
            problem = f"no noise floor, the CPU fails here: {local}" if isinstance(local, str) else None
        driven = Sample(inputs, outputs, request.warmup_runs, request.invocations)
        look = look_again(reruns, driven, open_with, lambda: on_step(outcome.failed_examples))
    except KeyboardInterrupt:
        look = SecondLook(interrupted=True)
    if look.interrupted:
        outcome.stopped = "interrupted"
    return SecondLook(look.seen, look.interrupted, problem)


def _readable(material: DiffMaterial) -> dict[int, tuple[Array, ...]]:
    """The inputs of the sampled runs by run; for a model with a state, up to the first that cannot be read."""
    inputs: dict[int, tuple[Array, ...]] = {}
    for index in material.sample:
        try:
            inputs[index] = material.source.inputs(index)
        except ImageError:
            if material.stateful:
                break
    return inputs


def _kept(outcome: Outcome[DiffObservation], name: str, sample: Sequence[int]) -> list[tuple[Array, ...]]:
    """The remembered outputs of a configuration, up to the first failure."""
    kept: list[tuple[Array, ...]] = []
    for index in sample:
        observation = outcome.records[name][index].observation
        if observation is None or observation.outputs is None:
            break
        kept.append(observation.outputs)
    return kept
