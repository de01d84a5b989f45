"""A delegate whose float outputs are bit for bit those of CPU kernels: evidence that the CPU stood in for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.engine.opening import Opened
from evaltools.model import TensorInfo
from evaltools.runtime import Open
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest
from evaltools.tasks.inference_diff.reruns import Runnable, Runs, run_inputs
from evaltools.tasks.inference_diff.result import LikeTheCpu
from evaltools.tasks.inference_diff.yardstick_plan import session_wrapper

_KERNELS: Final = {"builtin": "builtin kernels", "default": "XNNPACK"}
_FIRST_RUNS: Final = 3
"""Most delegates differ in these already, which spares the others."""
_SEED: Final = 3


def kernels_of(configuration: Configuration) -> str:
    """The CPU kernels that a configuration runs, empty where a delegate other than XNNPACK runs what it can."""
    others = [delegate for delegate in configuration.delegates.requested if delegate.name != XNNPACK.name]
    return "" if others else configuration.kernel_set


def held_against_the_cpu(
    request: DiffRequest,
    material: DiffMaterial,
    opened: Sequence[Opened],
    inputs: Runs,
    outputs: Mapping[str, Runs],
    open_with: Open,
) -> dict[str, LikeTheCpu]:
    """The delegates whose ``outputs`` are those of CPU kernels; each is run once more with other inputs."""
    found = {}
    if any(tensor.dtype.startswith("float") for tensor in material.model.outputs):
        for entry in opened:
            name = entry.configuration.name
            if entry.configuration is not request.reference and not kernels_of(entry.configuration):
                given = outputs.get(name, ())
                like = _like(request, material, entry, inputs[: len(given)], given, open_with) if given else None
                if like is not None:
                    found[name] = like
    return found


def _like(
    request: DiffRequest, material: DiffMaterial, entry: Opened, inputs: Runs, outputs: Runs, open_with: Open
) -> LikeTheCpu | None:
    fit = session_wrapper(material, is_reference=False)

    def run(configuration: Configuration, runs: Runs) -> Runs | str:
        runnable = Runnable(material.model, configuration, fit)
        return run_inputs(runnable, runs, request.warmup_runs, request.invocations, open_with)

    for kernels, name in _KERNELS.items():
        cpu = Configuration(name, runtime=entry.session.facts.name, kernels=kernels)
        if not all(_same(run(cpu, inputs[:count]), outputs[:count]) for count in (_FIRST_RUNS, len(outputs))):
            continue
        others = other_inputs(material.inputs, inputs[:_FIRST_RUNS])
        expected, given = run(cpu, others), run(entry.running, others)
        if isinstance(expected, str) or isinstance(given, str):
            reason = expected if isinstance(expected, str) else given
            return LikeTheCpu(name, len(outputs), None, str(reason))
        return LikeTheCpu(name, len(outputs), _same(expected, given), "")
    return None


def _same(first: Runs | str, second: Runs) -> bool:
    """Whether all outputs of all runs are equal; not where they could not be computed."""
    return not isinstance(first, str) and all(
        one.dtype == other.dtype and one.tobytes() == other.tobytes()
        for pair in zip(first, second, strict=True)
        for one, other in zip(*pair, strict=True)
    )


def other_inputs(tensors: Sequence[TensorInfo], runs: Runs) -> list[tuple[Array, ...]]:
    """The same numbers in another order; floats are also multiplied by factors from 0.5 to 1 that need all their bits.

    Texts, and numbers that select rows of a table, stay as they are.
    """
    random = np.random.default_rng(_SEED)
    return [tuple(_other(values, tensor, random) for tensor, values in zip(tensors, run, strict=True)) for run in runs]


def _other(values: Array, tensor: TensorInfo, random: np.random.Generator) -> Array:
    if tensor.rows is not None or values.dtype.kind not in "fiu":
        return values
    changed: Array = random.permutation(values.ravel()).reshape(values.shape)
    if values.dtype.kind == "f":
        changed = np.multiply(changed, random.uniform(0.5, 1.0, values.shape)).astype(values.dtype)
    return changed
