"""The noise floor of an inference diff: CPU variants, lower precisions, every configuration a second time.

They are planned here, and run again on some inputs of a pass.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import LITERT, TFLITE_RUNTIME
from evaltools.engine.opening import NotMeasured, Opened, open_configuration
from evaltools.errors import InferenceError
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.rounding import MOVED_INPUTS, UNIT_ROUNDOFF, disturb, disturb_constants, shake
from evaltools.runtime import Inference, Open, one_runtime_per_package
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.material import LOCAL_REFERENCE, DiffMaterial
from evaltools.tasks.inference_diff.model_pair import Side
from evaltools.tasks.inference_diff.output_comparison import DiffSummary, OutputComparison
from evaltools.tasks.own.trial import warm_up

RepeatKind = Literal["noise floor", "precision", "second time"]
NOISE_FLOOR: Final = "noise floor"
PRECISION: Final = "precision"
SECOND_TIME: Final = "second time"
Runs = Sequence[tuple[Array, ...]]
FLOAT32: Final = "float32"
FEW_ROUNDINGS: Final = "a few float32 roundings"
"""The variant with float constants and inputs moved so: how far the model carries rounding, whatever the kernels."""
KEPT_TENSORS: Final = "all tensors kept"
"""The variant with builtin kernels in which no buffer is used twice: where a runtime reuses one too early, it shows."""
PLAIN_KERNELS: Final = "plain C++ kernels"
_ALWAYS: Final = 0
_SEED: Final = 1
_MOST_THREADS: Final = 4


class Runnable(Struct, frozen=True):
    """What a session is opened from, and how it is fed and read."""

    model: ModelFile
    configuration: Configuration
    side: Side


class Repeat(Struct, frozen=True):
    """A session to be run again on the sampled runs; ``expected_from`` names the outputs that it is compared with.

    ``change_inputs`` changes the inputs, if it is given.
    """

    kind: RepeatKind
    name: str
    runnable: Runnable
    expected_from: str
    comparison: OutputComparison
    change_inputs: Callable[[Runs], Runs] | None = None


class RepeatOutcome(Struct, frozen=True):
    """The outcome of a repeat over the first ``runs``; if it failed, ``summary`` is None and ``reason`` says why.

    ``outputs`` are those of the variant that keeps all tensors, and ``largest`` is the largest value inside of the
    model there. ``with_first`` is the summary with the first inference after loading in the place of
    the first run, where that gave other outputs than the same inputs later.
    """

    repeat: Repeat
    summary: DiffSummary | None
    reason: str | None
    runs: int = 0
    outputs: Runs = ()
    largest: float = 0.0
    with_first: DiffSummary | None = None


class RepeatOutcomes(Struct, frozen=True):
    """The outcomes of the repeats over ``runs`` that the verdicts need, or of those before it was ``interrupted``.

    ``left_out`` are the names of those that were not done, or not on all runs, as the time was over. ``problem`` says
    what else went wrong. ``from_kept_tensors`` has, by configuration, the difference of a test from the variant that
    keeps all tensors, where that differs from the reference.
    """

    seen: tuple[RepeatOutcome, ...] = ()
    runs: tuple[int, ...] = ()
    interrupted: bool = False
    left_out: tuple[str, ...] = ()
    problem: str | None = None
    from_kept_tensors: Mapping[str, DiffSummary] = MappingProxyType({})

    def of_kind(self, kind: RepeatKind) -> list[RepeatOutcome]:
        """The outcomes of one kind, in order."""
        return [entry for entry in self.seen if entry.repeat.kind == kind]

    @property
    def missing(self) -> str:
        """The kind of the reason why not all of them were done, empty where they were."""
        return "interrupted" if self.interrupted else "out_of_time" if self.left_out else ""

    @property
    def kept_tensors(self) -> RepeatOutcome | None:
        """The outcome of the variant that keeps all tensors."""
        return next((entry for entry in self.of_kind(NOISE_FLOOR) if entry.repeat.name == KEPT_TENSORS), None)

    def repeated(self, name: str) -> RepeatOutcome | None:
        """The outcome of running a configuration a second time."""
        return next((entry for entry in self.of_kind(SECOND_TIME) if entry.repeat.name == name), None)

    @property
    def repeated_reference(self) -> DiffSummary | None:
        """How the reference's outputs changed a second time; None where nothing else was compared with it."""
        against = (entry.repeat.expected_from for entry in self.seen if entry.repeat.kind != SECOND_TIME)
        found = self.repeated(next(against, ""))
        return found.summary if found else None

    def with_first(self, name: str) -> DiffSummary | None:
        """The same with its first inference, where that gave other outputs; None where it did so in all: a state."""
        repeated = self.of_kind(SECOND_TIME)
        found = self.repeated(name)
        return found.with_first if found and not all(each.with_first for each in repeated) else None


class Sample(Struct, frozen=True):
    """Numbers, inputs and expected outputs of the sampled runs, and how the pass drove its sessions through them.

    A model with a state gives the same outputs again only when it is driven in the same way from the start.
    ``outputs`` has the outputs by configuration, as far as all sampled runs up to there succeeded.
    """

    runs: Sequence[int]
    inputs: Runs
    outputs: Mapping[str, Runs]
    warmup_runs: int
    invocations: int
    keeps_state: bool = False


def run_on_sample(
    repeats: Sequence[Repeat],
    sample: Sample,
    open_with: Open,
    on_step: Callable[[], None] = lambda: None,
    seconds: float = 0.0,
    is_enough: Callable[[Sequence[RepeatOutcome]], bool] = lambda _seen: False,
) -> RepeatOutcomes:
    """Do the repeats, for so many seconds, 0: all, and until ``is_enough`` says that the verdict needs no more.

    Those without expected outputs are left out, and those after Ctrl-C.
    """
    until = time.monotonic() + seconds if seconds else math.inf
    seen: dict[int, RepeatOutcome] = {}
    left_out = []
    is_interrupted = False
    try:
        for place, entry in sorted(enumerate(repeats), key=lambda found: _turn(found[1])):
            if _turn(entry) > _ALWAYS and is_enough(tuple(seen.values())):
                break
            expected = sample.outputs.get(entry.expected_from, ())
            if expected and time.monotonic() < until:
                seen[place] = _look(entry, sample, expected, open_with, until)
                is_whole = seen[place].summary is None or seen[place].runs == len(expected)
                left_out += [] if is_whole else [entry.name]
            elif expected:
                left_out.append(entry.name)
            on_step()
    except KeyboardInterrupt:
        is_interrupted = True
    in_order = tuple(seen[place] for place in sorted(seen))
    return RepeatOutcomes(in_order, interrupted=is_interrupted, left_out=tuple(left_out))


def _turn(entry: Repeat) -> int:
    """When it runs: first what every verdict needs, last plain C++ kernels, which may take a hundred times as long."""
    if entry.kind == SECOND_TIME or entry.name in (KEPT_TENSORS, FEW_ROUNDINGS):
        return _ALWAYS
    return _ALWAYS + (2 if entry.name == PLAIN_KERNELS else 1)


def _look(entry: Repeat, sample: Sample, expected: Runs, open_with: Open, until: float) -> RepeatOutcome:
    inputs = entry.change_inputs(sample.inputs) if entry.change_inputs else sample.inputs
    how = sample.warmup_runs, sample.invocations, open_with, until
    runs = run_inputs(entry.runnable, inputs[: len(expected)], *how)
    if isinstance(runs, str):
        return RepeatOutcome(entry, None, runs)
    outputs = [run.outputs for run in runs.inferences]
    pairs = zip(sample.runs[: len(outputs)], outputs, expected, strict=False)
    differences = {run: entry.comparison.compare(given, wanted) for run, given, wanted in pairs}
    first = runs.first if entry.kind == SECOND_TIME and not sample.keeps_state else None
    with_first = None
    if first is not None and not _are_equal(first.outputs, outputs[0]):
        of_first = {sample.runs[0]: entry.comparison.compare(first.outputs, expected[0])}
        with_first = entry.comparison.summarise(differences | of_first)
    summary = entry.comparison.summarise(differences)
    if entry.name != KEPT_TENSORS:
        return RepeatOutcome(entry, summary, None, len(outputs), with_first=with_first)
    largest = max(run.largest for run in runs.inferences)
    return RepeatOutcome(entry, summary, None, len(outputs), tuple(outputs), largest)


def _are_equal(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(some, others, strict=True))


class InferencesOfInputs(Struct, frozen=True, eq=False):
    """The inferences of some inputs in order, and ``first``, the very first one of the warm-up, None without one."""

    first: Inference | None
    inferences: list[Inference]


def run_inputs(
    runnable: Runnable, inputs: Runs, warmup_runs: int, invocations: int, open_with: Open, until: float = math.inf
) -> InferencesOfInputs | str:
    """Open, warm up, run all inputs; returns each run, or why there are none.

    After the moment ``until`` of the monotonic clock no further run begins, but there is one.
    """
    opened = open_configuration(runnable.model, runnable.configuration, open_with, allow_fallback=True)
    if isinstance(opened, NotMeasured):
        return opened.reason
    try:
        side, session = runnable.side, opened.session
        first = warm_up(session, side.fed(inputs[0]), warmup_runs, invocations)
        found = [session.run(side.fed(inputs[0]), invocations)]
        for values in inputs[1:]:
            if time.monotonic() >= until:
                break
            found.append(session.run(side.fed(values), invocations))
        read = [replace(each, outputs=side.in_order(each.outputs)) for each in found]
        return InferencesOfInputs(first and replace(first, outputs=side.in_order(first.outputs)), read)
    except InferenceError as error:
        return str(error)
    finally:
        opened.session.close()


def plan_repeats(
    material: DiffMaterial, opened: Sequence[Opened], reference: Configuration | None, with_repeats: bool = True
) -> list[Repeat]:
    """All repeats.

    CPU variants and precisions are compared with the reference, or with the CPU if its outputs were loaded.

    There are no repeats where the configurations ran elsewhere.
    """
    base = base_configuration(opened, reference)
    leave_out = base if reference is not None else None
    against = reference.name if reference else LOCAL_REFERENCE
    side, comparison, model = material.side(of_reference=True), material.reference_comparison, material.models[-1]
    planned = [
        Repeat(NOISE_FLOOR, variant.name, Runnable(model, variant, side), against, comparison)
        for variant in cpu_variants(base.runtime, leave_out)
    ]
    content, count = disturb_constants(model.read(), FLOAT32)
    if count:
        runnable, change = Runnable(model.with_content(content), base, side), disturbed_inputs(material.inputs, FLOAT32)
        planned.append(Repeat(NOISE_FLOOR, FEW_ROUNDINGS, runnable, against, comparison, change))
    for precision, rounded in lower_precisions(model, with_int8=material.pair is not None):
        change = disturbed_inputs(material.inputs, precision)
        planned.append(Repeat(PRECISION, precision, Runnable(rounded, base, side), against, comparison, change))
    for entry in opened if with_repeats else ():
        is_reference = entry.configuration is reference
        name = entry.configuration.name
        of_model = model if is_reference else material.model
        own = material.reference_comparison if is_reference else material.own_comparison
        runnable = Runnable(of_model, entry.running, material.side(is_reference))
        planned.append(Repeat(SECOND_TIME, name, runnable, name, own))
    return planned


def base_configuration(opened: Sequence[Opened], reference: Configuration | None) -> Configuration:
    """The configuration that CPU variants and precisions are compared with.

    It is the reference, or builtin kernels if the reference's outputs were loaded.
    """
    for entry in opened:
        if entry.configuration is reference:
            return replace(entry.running, runtime=entry.session.facts.name)
    return Configuration(LOCAL_REFERENCE, runtime=opened[0].session.facts.name, kernels="builtin")


def cpu_variants(runtime: str, leave_out: Configuration | None) -> list[Configuration]:
    """The CPU configurations that are known to be right, but for one equal to ``leave_out``.

    ``runtime`` is the reference's; another one that is installed joins in with its default kernels.
    """
    threads = max(2, min(_MOST_THREADS, os.cpu_count() or 1))
    kinds = [
        (PLAIN_KERNELS, "reference", 1),
        ("builtin kernels", "builtin", 1),
        ("XNNPACK", "default", 1),
        (f"builtin kernels, {threads} threads", "builtin", threads),
        (f"XNNPACK, {threads} threads", "default", threads),
    ]
    own = None
    if leave_out is not None and not leave_out.delegates.requested:
        own = (leave_out.kernel_set, leave_out.num_threads)
    variants = [
        Configuration(name, runtime=runtime, kernels=kernels, num_threads=count)
        for name, kernels, count in kinds
        if (kernels, count) != own
    ]
    variants.append(kept_tensors(runtime))
    others = [other for other in one_runtime_per_package() if other != runtime]
    return variants + [Configuration(f"{other}, default kernels", runtime=other) for other in others]


def kept_tensors(runtime: str) -> Configuration:
    """Builtin kernels with all tensors kept, in the runtime or, where that has no interpreter, in litert."""
    interpreter = runtime if runtime in (LITERT, TFLITE_RUNTIME) else LITERT
    return Configuration(KEPT_TENSORS, runtime=interpreter, kernels="builtin", keeps_tensors=True)


def lower_precisions(model: ModelFile, with_int8: bool) -> list[tuple[str, ModelFile]]:
    """The model with its constants rounded to fp16, bf16 and int8.

    fp16 and bf16 say nothing about a model without floats, int8 nothing about one without 8 bit constants, unless it is
    compared with another one that may have them.
    """
    content = model.read()
    found = []
    for precision in UNIT_ROUNDOFF:
        rounded, count = disturb_constants(content, precision)
        has_floats = any(tensor.dtype.startswith("float") for tensor in model.inputs)
        if count or (with_int8 if precision == "int8" else has_floats):
            found.append((precision, model.with_content(rounded)))
    return found


def disturbed_inputs(tensors: Sequence[TensorInfo], precision: str) -> Callable[[Runs], Runs]:
    """Rounds the float inputs of runs, and for int8 moves a quarter of the quantised numbers by one.

    Inputs whose values select rows of a table stay as they are.
    """

    def change(runs: Runs) -> Runs:
        random = np.random.default_rng(_SEED)
        return [
            tuple(_disturbed(values, tensor, precision, random) for tensor, values in zip(tensors, run, strict=True))
            for run in runs
        ]

    return change


def _disturbed(values: Array, tensor: TensorInfo, precision: str, random: np.random.Generator) -> Array:
    if tensor.rows is not None:
        return values
    if tensor.dtype in ("float32", "float16"):
        rounded = disturb(values.astype(np.float32), precision, random)
        return rounded.astype(values.dtype)
    if precision == "int8" and tensor.is_quantized:
        return shake(values, MOVED_INPUTS, random)
    return values
