"""A part of a model that is to be run, and what came of it, as values that are stored and sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.documents import json_values
from evaltools.runtime.session import Array

WHOLE = -1
"""``first`` of the model as it is, which is not a part."""


class Part(Struct, frozen=True):
    """The operators ``first`` to ``last``, run with a configuration on the reference's tensors.

    ``exposed`` and ``taps`` are tensors that are looked at beside the part's own outputs; taps are copies. Runs are
    repeated with the inputs in turns, until there are ``runs`` of them or ``seconds`` are over, but each input is run
    once. ``variants`` names ways in which the CPU computes the part otherwise, whose differences are measured too:
    ``kernels``, and inputs and constants rounded to ``float32``, ``fp16``, ``bf16`` or ``int8``; such a part is also
    run with what the parts before it gave (the chain). ``keep`` names a file for the arrays of the worst run, of
    ``kept_tensor`` or, without one, of the output that is furthest off. ``against`` names what the tensors are compared
    with instead of the reference's: what the operators gave one by one (``chain``), or values in real numbers; tensors
    of which there are none are left out. With ``as_fed``,
    what the last operator gives is compared with what the reference makes of what that operator was fed in the same
    run; tensors that the part itself makes for it must be among the taps. With ``fed_by_other``, the part is fed what
    ``against`` has in these tensors. ``copy`` names a file that is run instead of the whole model; its outputs are the
    model's, and those that are ``exposed``.
    """

    first: int
    last: int
    configuration: Configuration
    exposed: tuple[int, ...] = ()
    taps: tuple[int, ...] = ()
    runs: int = 1
    seconds: float = 1.0
    variants: tuple[str, ...] = ()
    keep: str = ""
    kept_tensor: int | None = None
    against: str = ""
    as_fed: bool = False
    fed_by_other: bool = False
    copy: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether this is the model itself, as its file has it."""
        return self.first == WHOLE

    @property
    def key(self) -> str:
        """What distinguishes it from other parts of the same model."""
        facts = [getattr(self, name) for name in self.__struct_fields__ if name != "configuration"]
        text = "\n".join([*map(repr, facts), *self.configuration.to_flags()])
        return "part " + hashlib.sha256(text.encode()).hexdigest()[:32]


class TensorRuns(Struct, frozen=True):
    """What one tensor was in all runs.

    ``largest`` has the largest difference of an element of each run in order, ``sizes`` the relative root mean square
    as the verdict rule counts it, and ``rms`` the root mean squares of difference and reference; all are free of NaN.
    ``magnitude`` is the largest value of the reference. ``variants`` has the size of the worst run of each way in which
    the CPU computes the same otherwise, 0 within one quantum. ``rounded`` has the precisions in which all values given
    could be written, while the reference's could not. ``bias``: by how many steps bytes were off to one side on
    average, at least. ``chained`` is the largest difference, and the size, of what the part gives for
    what the parts before it gave, None where that was not run.
    """

    tensor: int
    name: str
    unit: str
    largest: tuple[float, ...] = ()
    sizes: tuple[float, ...] = ()
    rms: tuple[tuple[float, float], ...] = ()
    magnitude: float = 0.0
    not_finite_run: int | None = None
    variants: dict[str, float] = field(default_factory=dict)
    rounded: tuple[str, ...] = ()
    bias: float = 0.0
    chained: tuple[float, float] | None = None

    @property
    def worst(self) -> float:
        """The largest difference of an element in any run."""
        return max(self.largest, default=0.0)

    @property
    def relative(self) -> float:
        """The size of the worst run."""
        return max(self.sizes, default=0.0)


class Outcome(Struct, frozen=True):
    """What came of a part.

    Exactly one of ``outputs``, ``died``, ``refused`` and ``resists`` says something: it ran; the process died of it or
    did not answer, which is ``hung``; the delegate did not open it; it cannot be cut out. ``is_evidence``: the CPU
    gave, bit for bit, what it gave in the whole model; else ``note`` may say why not. ``unlike`` counts inputs that
    gave different outputs the second time. ``taken`` are the operators, by their number in the part, that ran on
    delegates which were asked for; empty where only their count is known.
    """

    outputs: tuple[TensorRuns, ...] = ()
    is_evidence: bool = True
    died: str = ""
    hung: bool = False
    refused: str = ""
    resists: str = ""
    nodes: int = 0
    delegated: int = 0
    taken: tuple[int, ...] = ()
    delegates: tuple[str, ...] = ()
    runs: int = 0
    unlike: int = 0
    compiled: int = 0
    note: str = ""

    @property
    def ran(self) -> bool:
        """Whether there are figures."""
        return bool(self.outputs)

    def of(self, tensor: int) -> TensorRuns:
        """The runs of one of its outputs, of its copy where there is one; raises :class:`StopIteration` for others."""
        return next(runs for runs in reversed(self.outputs) if runs.tensor == tensor)

    @property
    def worst(self) -> float:
        """The largest difference of any output."""
        return max((output.worst for output in self.outputs), default=0.0)


def encode(outcome: Outcome) -> str:
    """As text for the journal: JSON as Python writes it, which knows infinity."""
    return json.dumps(msgspec.to_builtins(outcome))


def decode(text: str) -> Outcome:
    """Read back what :func:`encode` wrote; raises :class:`ValueError` for something else."""
    return msgspec.convert(json_values(text), Outcome)


def other_kernels(tested: Configuration) -> Configuration:
    """XNNPACK; for what is XNNPACK itself, which must not judge itself, the reference kernels.

    >>> other_kernels(Configuration.from_text("npu", "external_delegate_path=npu.so")).to_flags()
    ['--use_xnnpack=true']
    >>> other_kernels(Configuration.from_text("cpu", "use_xnnpack=true")).to_flags()
    ['--kernels=reference']
    """
    if is_xnnpack(tested):
        return Configuration.from_text("reference kernels", "kernels=reference num_threads=1")
    return Configuration.from_text("xnnpack", "use_xnnpack=true num_threads=1")


def is_xnnpack(configuration: Configuration) -> bool:
    """Whether XNNPACK runs what is tested: asked for, or by default as nothing else is."""
    requested = [delegate.name for delegate in configuration.delegates.requested]
    return not requested or "XNNPACK" in requested


class Case(Struct, frozen=True, dict=True):
    """A part of a model that was wrong, and its worst run.

    ``model`` is the part's ``.tflite``, ``arrays`` the ``.npz`` beside it: ``input_N`` with N the number of the tensor
    in the user's model, in the part's order; ``expected`` and ``given``, what the CPU and the delegate had in the
    tensor ``tensor``; ``before``, what the CPU has there for the inputs of the run before; ``output``, the place of
    that tensor among the part's outputs. ``operator`` made it; ``unit`` is "steps" for quantised whole numbers, else
    "absolute". ``tolerance`` is what an element may be off. ``precision`` is that of the configuration's flags, empty
    where they do not say.
    """

    index: int
    operator: str
    tensor: str
    unit: str
    tolerance: float
    model: Path
    arrays: Path
    configuration: Configuration
    precision: str = ""

    @cached_property
    def loaded(self) -> Mapping[str, Array]:
        """The arrays by name."""
        with np.load(self.arrays, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    @property
    def inputs(self) -> list[Array]:
        """What the part was fed, in its order."""
        return [values for name, values in self.loaded.items() if name.startswith("input_")]

    @property
    def expected(self) -> Array:
        """What the CPU gave."""
        return self.loaded["expected"]

    @property
    def output(self) -> int:
        """The place of the tensor among the part's outputs."""
        return int(self.loaded["output"])

    @property
    def crashes(self) -> bool:
        """Whether the part gave nothing: neither ``given`` nor ``before`` is there."""
        return "given" not in self.loaded

    @property
    def given(self) -> Array:
        """What the delegate gave."""
        return self.loaded["given"]

    @property
    def before(self) -> Array:
        """What the CPU gives for the inputs of the run before."""
        return self.loaded["before"]
