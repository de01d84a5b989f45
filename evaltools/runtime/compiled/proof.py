"""What ran where in a compiled model, and what shows it.

``is_fully_accelerated()`` alone is not believed: it has said yes of models that ran on the CPU. An accelerator has run

* as many operations as its own messages count, of the graph that is run (the GPU's do not say of which graph);
* all of a model that the GPU was asked to take alone, without the CPU to fall back on: then it counts none;

and only where a message names the device that ran.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.delegates.npu import NPU
from evaltools.delegates.provider import Delegate
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.model import ModelFile
from evaltools.model.contents import operator_counts, read_graphs
from evaltools.runtime.compiled.messages import (
    AcceleratorShare,
    Device,
    doubts,
    gpu_device,
    gpu_share,
    npu_device,
    npu_share,
    speaks_of_graphs,
)
from evaltools.runtime.compiled.source import Source
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.litert import RUNTIME as INTERPRETER

_DEVICES: Final = {GPU.name: gpu_device, NPU.name: npu_device}
_UNTOUCHED: Final = ", with its own precision and number of threads"
_REST: Final = "(not named)"


class NotProven(Exception):
    """An accelerator seems to be in use, and nothing shows that it is."""


class Printed(Struct, frozen=True):
    """What was printed while the model was compiled, prepared with its sizes of inputs, and run for the first time."""

    compiling: str
    preparing: str
    running: str
    was_resized: bool

    @property
    def whole(self) -> str:
        """Everything."""
        return self.compiling + self.preparing + self.running


def prove(
    model: ModelFile,
    configuration: Configuration,
    accelerator: Delegate | None,
    alone: bool,
    source: Source,
    printed: Printed,
) -> Delegation:
    """The delegation of a model that was compiled, from what was printed meanwhile; raises :class:`NotProven`."""
    if accelerator is None:
        return _of_cpu(model, configuration)
    device = _DEVICES[accelerator.name](printed.whole)
    if device is None:
        raise NotProven(f"nothing that ai-edge-litert printed says that the {accelerator.name} ran; the CPU did")
    share = _share(accelerator, source, printed)
    if share is None and not (alone and accelerator is GPU):
        raise NotProven(
            f"nothing that ai-edge-litert printed says what the {accelerator.name} took of the graph that is run "
            f"(number {source.graph} of {source.graphs} in the file); convert the function that is to run alone"
        )
    coverage = _coverage(accelerator, device, share, alone, source)
    asked_for_xnnpack = XNNPACK in configuration.delegates.requested
    refused = {kind.removeprefix("CUSTOM "): reason for kind, reason in share.refused.items()} if share else {}
    left = {} if (coverage.nodes or 0) >= source.nodes else _left(model, source, coverage, refused)
    others = (DelegateCoverage(XNNPACK.name, True, 0, 0),) if asked_for_xnnpack else ()
    return Delegation(model.node_count, (coverage, *others), left, refused, doubts(printed.whole))


def _share(accelerator: Delegate, source: Source, printed: Printed) -> AcceleratorShare | None:
    """What was taken of the graph that is run; where its inputs were resized, the GPU speaks of it once more."""
    if accelerator is not GPU:
        return npu_share(printed.compiling, source.graph, source.nodes)
    if source.graphs > 1:
        return None
    speaks_again = printed.was_resized and speaks_of_graphs(printed.preparing)
    return gpu_share(printed.preparing if speaks_again else printed.compiling, source.nodes)


def _coverage(
    accelerator: Delegate, device: Device, share: AcceleratorShare | None, alone: bool, source: Source
) -> DelegateCoverage:
    nodes = source.nodes
    if alone and accelerator is GPU and (share is None or share.operations == nodes):
        evidence = f"took the model alone, without the CPU; device named by ai-edge-litert: {device.name}"
        return DelegateCoverage(accelerator.name, True, nodes, 1, device.name, device.is_cpu, evidence)
    assert share is not None
    how = "took the model alone, without the CPU; " if alone else ""
    which = f" of graph {source.graph}" if source.graphs > 1 else ""
    evidence = (
        f"{how}ai-edge-litert: {share.operations} of {share.total} operations{which}; device {device.name}"
        f"{_UNTOUCHED if accelerator is NPU and device.is_cpu else ''}"
    )
    return DelegateCoverage(
        accelerator.name, True, share.operations, share.partitions, device.name, device.is_cpu, evidence
    )


def _left(model: ModelFile, source: Source, coverage: DelegateCoverage, refused: Iterable[str]) -> dict[str, int]:
    """Operators on the CPU by kind, as far as they are named."""
    left = source.nodes - (coverage.nodes or 0)
    kinds = operator_counts(read_graphs(memoryview(model.read()))[:1])
    named: dict[str, int] = {}
    for kind in refused:
        count = min(kinds.get(kind, 0), left - sum(named.values()))
        if count:
            named[kind] = count
    rest = left - sum(named.values())
    return named | ({_REST: rest} if rest else {})


def _of_cpu(model: ModelFile, configuration: Configuration) -> Delegation:
    """``CompiledModel`` does not say what XNNPACK took, so it is counted in the interpreter of the same package."""
    requested = XNNPACK in configuration.delegates.requested
    counted = INTERPRETER.open(model, Configuration("counted", kernels=configuration.kernel_set))
    proof: Any = counted.delegation
    counted.close()
    evidence = "counted in the interpreter of the same package; CompiledModel does not tell"
    delegates = tuple(
        DelegateCoverage(entry.delegate, requested, entry.nodes, entry.partitions, evidence=evidence)
        for entry in proof.delegates
    )
    if requested and not delegates:
        delegates = (DelegateCoverage(XNNPACK.name, True, 0, 0),)
    return Delegation(proof.total_nodes, delegates, proof.cpu_operators)
