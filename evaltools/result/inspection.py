"""What ``evaltools inspect`` finds, as a typed result; every claim says what it rests on."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from evaltools.model.compiled_for import CompiledFor
from evaltools.model.gpu_faults import GpuTrap
from evaltools.model.half_precision import OutsideHalf
from evaltools.model.kind import KindSupport, ModelKind

TESTED: Final = "tested here"
NOT_TESTED: Final = "not tested"
COMPILED: Final = "compiled here"
REFUSED: Final = "refused"
FROM_GRAPH: Final = "from the graph"
FROM_DOCUMENT: Final = "from the documentation"
BASIS: Final = {
    "model": FROM_GRAPH,
    "kind": FROM_GRAPH,
    "compiled_for": FROM_GRAPH,
    "gpu_traps": FROM_GRAPH,
    "outside_fp16": FROM_GRAPH,
}


class TensorFacts(Struct, frozen=True):
    """An input or output: ``shape`` has -1 where the size may change, ``quantization`` is empty where there is none."""

    name: str
    signature_name: str
    dtype: str
    shape: tuple[int, ...]
    quantization: str


class ModelFacts(Struct, frozen=True):
    """What the file holds. ``operators`` counts those of all graphs, ``nodes`` those of the main one."""

    path: str
    size_bytes: int
    sha256: str
    description: str
    graphs: int
    tensors: int
    nodes: int
    constant_bytes: int
    operators: dict[str, int]
    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    signatures: tuple[str, ...]
    metadata: tuple[str, ...]
    dynamic_tensors: int
    stateful: bool


class OperatorLeft(Struct, frozen=True):
    """An operator of which ``count`` stayed on the CPU, the types it computes with, and the ``reason``.

    ``reason`` is the delegate's own, empty where it gives none.
    """

    operator: str
    count: int
    types: str
    reason: str


class DelegateRun(Struct, frozen=True):
    """What a delegate took of the main graph when it was tried, or why that is not known.

    ``basis`` is ``tested here`` or ``not tested``; then ``reason`` says why, and the figures are None. ``partitions``
    are those of the delegate. ``is_cpu``: the device is software on the CPU. ``warnings`` are the runtime's own that
    put the delegate's results in doubt.
    """

    delegate: str
    flags: tuple[str, ...]
    basis: str
    reason: str = ""
    runtime: str = ""
    device: str = ""
    is_cpu: bool = False
    nodes: int | None = None
    total_nodes: int | None = None
    partitions: int | None = None
    left_on_cpu: tuple[OperatorLeft, ...] = ()
    warnings: tuple[str, ...] = ()


class ChipCoverage(Struct, frozen=True):
    """What the NPU of a chip takes of the main graph, as its vendor's compiler reports, or why that is not known.

    ``basis`` is ``compiled here``, ``refused`` (by the compiler) or ``not tested``; then ``reason`` says why, and the
    figures are None. ``compiled_bytes`` is the size of the compiled file, None also where the NPU takes nothing;
    ``saved_as`` is where that file was written, empty where it was not.
    """

    chip: str
    basis: str
    reason: str = ""
    nodes: int | None = None
    total_nodes: int | None = None
    partitions: int | None = None
    compiled_bytes: int | None = None
    saved_as: str = ""
    left_on_cpu: tuple[OperatorLeft, ...] = ()
    warnings: tuple[str, ...] = ()


class NpuCoverage(Struct, frozen=True):
    """What the NPUs of a vendor's chips take; without a compiler there are no ``chips``, and a ``reason``."""

    vendor: str
    compiler: str
    chips: tuple[ChipCoverage, ...]
    reason: str = ""


class SupportOfKind(Struct, frozen=True):
    """The document's table, applied to the kind of the model; of a compiled one what its operators say."""

    basis: str
    source: str
    delegates: tuple[KindSupport, ...]


class Inspection(Struct, frozen=True):
    """Everything that ``evaltools inspect`` says of a model.

    ``basis`` says what the parts rest on that do not say it themselves, by their names. ``npu`` is None where no chip
    was asked for.
    """

    evaltools: str
    basis: dict[str, str]
    model: ModelFacts
    kind: ModelKind
    compiled_for: tuple[CompiledFor, ...]
    support: SupportOfKind
    runs: tuple[DelegateRun, ...]
    npu: NpuCoverage | None
    gpu_traps: tuple[GpuTrap, ...]
    outside_fp16: tuple[OutsideHalf, ...]
