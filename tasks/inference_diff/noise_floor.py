"""The noise floor of an inference diff: CPU variants, lower precisions, every configuration a second time.

They are planned here as roles, which run on some inputs of a pass when it is over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import LITERT, TFLITE_RUNTIME
from evaltools.engine.opening import Opened
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.dither import dithered
from evaltools.model.rounding import MOVED_INPUTS, UNIT_ROUNDOFF, disturb, disturb_constants, shake
from evaltools.operators.decide import ByOperators
from evaltools.runtime import one_runtime_per_package
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.material import LOCAL_REFERENCE, DiffMaterial
from evaltools.tasks.inference_diff.model_pair import Side
from evaltools.tasks.inference_diff.output_comparison import DiffSummary, OutputComparison

RoleKind = Literal["noise floor", "precision", "second time"]
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
ONCE_MORE: Final = ("int8, rounded once more", "int8, rounded once more (2)", "int8, rounded once more (3)")
"""The copies of a quantised model in which every operator with a bias rounds once more."""
_SEED: Final = 1
_MOST_THREADS: Final = 4


class Role(Struct, frozen=True):
    """A session to be run again on the sampled runs; its outputs are compared with those of ``against``.

    ``side`` says how it is fed and read; ``change`` changes the inputs, if it is given.
    """

    kind: RoleKind
    name: str
    model: ModelFile
    configuration: Configuration
    side: Side
    against: str
    comparison: OutputComparison
    change: Callable[[Runs], Runs] | None = None

    @property
    def turn(self) -> int:
        """When it runs: 0 is what every verdict needs; plain C++ kernels may take a hundred times as long as others."""
        if self.kind == SECOND_TIME or self.name in (KEPT_TENSORS, FEW_ROUNDINGS):
            return 0
        return 2 if self.name == PLAIN_KERNELS else 1


class RoleOutcome(Struct, frozen=True):
    """What came of a role; if it failed, ``summary`` is None and ``reason`` says why.

    ``kind``, ``name`` and ``against`` are those of the role, ``flags`` and ``kernel_set`` those of its configuration.
    ``largest`` is the largest value inside of the model, where all tensors were kept. ``with_first`` is the summary
    with the first inference after loading in the place of the first run, where that gave other outputs than the same
    inputs later. ``tests`` has, of a CPU variant that differs from the reference, the difference of each test from it.
    """

    kind: RoleKind
    name: str
    against: str
    flags: list[str]
    kernel_set: str
    summary: DiffSummary | None
    reason: str | None = None
    largest: float = 0.0
    with_first: DiffSummary | None = None
    tests: Mapping[str, DiffSummary] = field(default_factory=dict)

    @classmethod
    def of(cls, role: Role, summary: DiffSummary | None, reason: str | None = None, **seen: Any) -> RoleOutcome:
        """The outcome of a role."""
        configuration = role.configuration
        return cls(
            role.kind,
            role.name,
            role.against,
            configuration.to_flags(),
            configuration.kernel_set,
            summary,
            reason,
            **seen,
        )

    def is_over(self, runs: Collection[int]) -> bool:
        """Whether it failed or went over all of these runs."""
        return self.summary is None or len(self.summary.by_run[0]) == len(runs)


class RoleOutcomes(Struct, frozen=True):
    """The outcomes of the roles over ``runs`` that the verdicts need, or of those before it was ``interrupted``.

    ``left_out`` are the names of those that were not done, or not on all runs, as the time was over. ``problem`` says
    what else went wrong, ``remarks`` what is to be said of the inputs of two models. ``operators`` has what the
    operators one by one show of configurations whose outputs are too far off, or too sensitive, to say.
    """

    seen: Sequence[RoleOutcome] = ()
    runs: Sequence[int] = ()
    interrupted: bool = False
    left_out: Sequence[str] = ()
    problem: str | None = None
    operators: Mapping[str, ByOperators] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    def of_kind(self, kind: RoleKind) -> list[RoleOutcome]:
        """The outcomes of one kind, in order."""
        return [entry for entry in self.seen if entry.kind == kind]

    @property
    def missing(self) -> str:
        """Why not all of them were done, empty where they were."""
        if self.interrupted:
            return "interrupted before all CPU variants and precisions were measured; run it again to the end"
        late = "not all CPU variants and precisions were measured in time; --max_secs=0 measures all"
        return late if self.left_out else ""

    @property
    def kept_tensors(self) -> RoleOutcome | None:
        """The outcome of the variant that keeps all tensors."""
        return next((entry for entry in self.of_kind(NOISE_FLOOR) if entry.name == KEPT_TENSORS), None)

    def repeated(self, name: str) -> RoleOutcome | None:
        """The outcome of running a configuration a second time."""
        return next((entry for entry in self.of_kind(SECOND_TIME) if entry.name == name), None)

    @property
    def repeated_reference(self) -> DiffSummary | None:
        """How the reference's outputs changed a second time; None where nothing else was compared with it."""
        against = (entry.against for entry in self.seen if entry.kind != SECOND_TIME)
        found = self.repeated(next(against, ""))
        return found.summary if found else None

    @property
    def kernels_of_reference(self) -> str:
        """The CPU kernels of what CPU variants are compared with: builtin ones, if it did not run here."""
        against = next((entry.against for entry in self.seen if entry.kind != SECOND_TIME), "")
        found = self.repeated(against)
        return found.kernel_set if found else "builtin"

    def with_first(self, name: str) -> DiffSummary | None:
        """The same with its first inference, where that gave other outputs; None where it did so in all: a state."""
        repeated = self.of_kind(SECOND_TIME)
        found = self.repeated(name)
        return found.with_first if found and not all(each.with_first for each in repeated) else None


def plan_roles(
    material: DiffMaterial, opened: Sequence[Opened], reference: Configuration | None, with_second_time: bool
) -> list[Role]:
    """All roles.

    CPU variants and precisions are compared with the reference, or with the CPU if its outputs were loaded. Nothing
    runs a second time where the configurations ran elsewhere.
    """
    base = base_configuration(opened, reference)
    leave_out = base if reference is not None else None
    model = material.models[-1]
    side, comparison = material.side(of_reference=True), material.reference_comparison
    against = reference.name if reference else LOCAL_REFERENCE

    def beside(kind: RoleKind, name: str, run: ModelFile, configuration: Configuration, moved: str = "") -> Role:
        change = partial(_disturb_inputs, material.plan.tensors, moved) if moved else None
        return Role(kind, name, run, configuration, side, against, comparison, change)

    planned = [beside(NOISE_FLOOR, variant.name, model, variant) for variant in cpu_variants(base.runtime, leave_out)]
    content, count = disturb_constants(model.read(), FLOAT32)
    if count:
        planned.append(beside(NOISE_FLOOR, FEW_ROUNDINGS, model.with_content(content), base, FLOAT32))
    for precision, rounded in lower_precisions(model, with_int8=material.pair is not None):
        planned.append(beside(PRECISION, precision, rounded, base, "" if precision in ONCE_MORE else precision))
    for entry in opened if with_second_time else ():
        is_reference, name = entry.configuration is reference, entry.configuration.name
        of_model = model if is_reference else material.model
        own = material.reference_comparison if is_reference else material.own_comparison
        planned.append(Role(SECOND_TIME, name, of_model, entry.running, material.side(is_reference), name, own))
    return planned


def local_reference(material: DiffMaterial, opened: Sequence[Opened]) -> Role:
    """The CPU that stands in for a reference whose outputs were loaded."""
    base, side = base_configuration(opened, None), material.side(of_reference=True)
    return Role(NOISE_FLOOR, LOCAL_REFERENCE, material.model, base, side, "", material.reference_comparison)


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

    ``runtime`` is the reference's; another one that is installed joins in with its default kernels. One that has no
    interpreter keeps its tensors in litert.
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
    interpreter = runtime if runtime in (LITERT, TFLITE_RUNTIME) else LITERT
    variants.append(Configuration(KEPT_TENSORS, runtime=interpreter, kernels="builtin", keeps_tensors=True))
    others = [other for other in one_runtime_per_package() if other != runtime]
    return variants + [Configuration(f"{other}, default kernels", runtime=other) for other in others]


def lower_precisions(model: ModelFile, with_int8: bool) -> list[tuple[str, ModelFile]]:
    """The model with its constants rounded to fp16, bf16 and int8.

    fp16 and bf16 say nothing about a model without floats. For int8, a model that is quantised itself is there in
    copies that round once more in each operator; else its constants are rounded, if it has some of 8 bits, or is
    compared with another model that may have them.
    """
    content = model.read()
    copies = [dithered(content, seed) for seed in range(len(ONCE_MORE))]
    found = []
    for precision in UNIT_ROUNDOFF:
        if precision == "int8" and copies[0][1]:
            found += [(name, model.with_content(copy)) for name, (copy, _) in zip(ONCE_MORE, copies, strict=True)]
            continue
        rounded, count = disturb_constants(content, precision)
        if count or (with_int8 if precision == "int8" else has_floats(model)):
            found.append((precision, model.with_content(rounded)))
    return found


def has_floats(model: ModelFile) -> bool:
    """Whether it takes real numbers, which lower precisions round."""
    return any(tensor.dtype.startswith("float") for tensor in model.inputs)


def _disturb_inputs(tensors: Sequence[TensorInfo], precision: str, runs: Runs) -> Runs:
    """Round the float inputs of runs, and for int8 move a quarter of the quantised numbers by one.

    Inputs whose values select rows of a table stay as they are.
    """
    random = np.random.default_rng(_SEED)
    return [
        tuple(_disturbed(values, tensor, precision, random) for tensor, values in zip(tensors, run, strict=True))
        for run in runs
    ]


def _disturbed(values: Array, tensor: TensorInfo, precision: str, random: np.random.Generator) -> Array:
    if tensor.rows is not None:
        return values
    if tensor.dtype in ("float32", "float16"):
        rounded = disturb(values.astype(np.float32), precision, random)
        return rounded.astype(values.dtype)
    if precision == "int8" and tensor.is_quantized:
        return shake(values, MOVED_INPUTS, random)
    return values
