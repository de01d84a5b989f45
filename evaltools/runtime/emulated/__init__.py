"""The NPU of a phone's chip on this computer: compiled by its vendor's compiler, run by its vendor's emulator.

What the NPU does not take runs in the interpreter of ai-edge-litert; values go from one to the other unchanged. An
emulator has no latency: what a run takes here says nothing about the chip.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import EMULATED
from evaltools.delegates.npu import NPU
from evaltools.delegates.npu_settings import vendor_flags
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile, model_in_memory
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.contents import read_contents
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.emulated.compiler import MANUFACTURER, compile_for, reasons_by_operator, require_chip
from evaltools.runtime.emulated.compiler_log import CompilerReport
from evaltools.runtime.emulated.segments import CompiledGraph, EmulatedSegment, Segment, read_segments
from evaltools.runtime.litert import RUNTIME as INTERPRETER
from evaltools.runtime.registry import require_support
from evaltools.runtime.session import Array, Inference, RuntimeFacts, Session, TensorSpec

_PACKAGE: Final = "onnxruntime-qnn"


class EmulatedRuntime(Struct, frozen=True):
    """Compiles models for an NPU, and opens them in its emulator."""

    name: str = EMULATED

    def open(self, model: ModelFile, configuration: Configuration) -> EmulatedSession:
        """Compile the model for the chip, and load it into the emulator.

        Raises :class:`ConfigurationUnavailable`, and :class:`UsageError` for a chip that the compiler does not know.
        """
        require_support(configuration, self.name)
        settings = configuration.delegates
        chip = str(settings.value("npu_soc"))
        if NPU not in settings.requested or not chip:
            raise ConfigurationUnavailable(
                "--runtime=emulated runs the NPU of a chip; "
                "say which: --use_npu=true --npu_vendor=qualcomm --npu_soc=SM8750"
            )
        require_chip(chip)
        _require_compilable(model)
        plugin = str(settings.value("compiler_plugin_library_path"))
        compiled = compile_for(model, chip, vendor_flags(settings), plugin)
        _require_taken(model, chip, compiled.report)
        graph = read_segments(compiled.content)
        emulator = f"QAIRT {compiled.report.sdk}".strip()
        version = importlib.metadata.version(_PACKAGE)
        facts = RuntimeFacts(self.name, _PACKAGE, version, configuration.kernel_set, emulator=emulator)
        device = f"{MANUFACTURER} {chip}, emulated by {emulator}"
        warnings = warnings_of(compiled.report) if settings.value("qualcomm_use_fold_relu") else ()
        delegation = _delegation(graph, model, compiled.report, device, warnings)
        return EmulatedSession(model.path, graph, facts, delegation, configuration)


class EmulatedSession:
    """A session that runs one segment after the other, on the emulated NPU or on the CPU."""

    def __init__(
        self,
        path: Path,
        graph: CompiledGraph,
        facts: RuntimeFacts,
        delegation: Delegation,
        configuration: Configuration,
    ) -> None:
        self.facts: Final = facts
        self.delegation: Final = delegation
        self._graph = graph
        cpu = replace(configuration, runtime=INTERPRETER.name, delegates=configuration.delegates.without(NPU))
        self._running: list[tuple[Segment, EmulatedSegment | Session]] = [
            (
                segment,
                EmulatedSegment(segment, graph.names, graph.forms)
                if segment.on_npu
                else INTERPRETER.open(model_in_memory(segment.content, path), cpu),
            )
            for segment in graph.segments
        ]
        specs = self._specs()
        self.inputs: Final = tuple(specs[tensor] for tensor in graph.inputs)
        self.outputs: Final = tuple(specs[tensor] for tensor in graph.outputs)

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run all segments in order, so many times; raises :class:`~evaltools.errors.InferenceError`."""
        values: dict[int, Array] = {}
        times: list[float] = []
        for _ in range(invocations):
            start = time.perf_counter_ns()
            values = dict(zip(self._graph.inputs, inputs, strict=True))
            for segment, running in self._running:
                given = [values[tensor] for tensor in segment.inputs]
                made = running.run(given)
                outputs = made.outputs if isinstance(made, Inference) else made
                values.update(zip(segment.outputs, outputs, strict=True))
            times.append((time.perf_counter_ns() - start) / 1000)
        return Inference(tuple(np.array(values[tensor]) for tensor in self._graph.outputs), tuple(times))

    def close(self) -> None:
        """Release all segments."""
        for _, running in self._running:
            if not isinstance(running, EmulatedSegment):
                running.close()
        self._running = []

    def _specs(self) -> Mapping[int, TensorSpec]:
        """Inputs and outputs as the file has them; those of the CPU as the interpreter reports them."""
        specs = {
            tensor: TensorSpec(self._graph.names[tensor], np.dtype(form.dtype), form.shape)
            for tensor, form in self._graph.forms.items()
        }
        for segment, running in self._running:
            if not isinstance(running, EmulatedSegment):
                specs |= dict(zip(segment.outputs, running.outputs, strict=True))
        return specs


def _require_compilable(model: ModelFile) -> None:
    """Raise :class:`ConfigurationUnavailable` for what the compiler would take for something else than it is."""
    contents = read_contents(model)
    if len(model.signatures) > 1 or len(contents.graphs) > 1:
        raise _unavailable(
            f"{model.path.name} has several graphs, which signatures or loops have, and only a model with one can be "
            "emulated; convert the function that is to run alone, without loops"
        )
    if any(node.operator == DISPATCH for node in contents.main.nodes):
        raise _unavailable(f"{model.path.name} is compiled for an NPU already; give the model that it was made from")
    for tensor in model.inputs:
        if -1 in tensor.shape_signature[1:] or tensor.shape != contents.main.tensors[tensor.index].shape:
            raise _unavailable(
                f"the input {tensor} has sizes that the file leaves open, and the compiler takes those for 1; convert "
                "the model with the sizes that it is to run with"
            )


def _unavailable(message: str) -> ConfigurationUnavailable:
    return ConfigurationUnavailable(message, NPU.name)


def _require_taken(model: ModelFile, chip: str, report: CompilerReport) -> None:
    if report.taken:
        return
    reasons = "; ".join(f"{name}: {why}" for name, why in reasons_by_operator(model, report).items())
    if not report.total_nodes:
        raise _unavailable(f"{model.path.name} has no operators, so that there is nothing to compile")
    message = f"{MANUFACTURER}'s compiler takes none of the nodes ({report.total_nodes}) for {chip}"
    raise _unavailable(f"{message}: {reasons}" if reasons else message)


def _delegation(
    graph: CompiledGraph, model: ModelFile, report: CompilerReport, device: str, warnings: tuple[str, ...]
) -> Delegation:
    coverage = DelegateCoverage(
        NPU.name, True, report.taken, report.partitions, device, evidence="the report of the vendor's compiler"
    )
    left, reasons = Counter(graph.cpu_operators), reasons_by_operator(model, report)
    refused = {operator: reasons[operator] for operator in left if operator in reasons}
    return Delegation(report.total_nodes, (coverage,), left, refused, warnings)


def warnings_of(report: CompilerReport) -> tuple[str, ...]:
    """A ReLU that is folded into a convolution is left out, which is right only where its range cuts nothing off."""
    if not report.wide_ranges:
        return ()
    return (
        f"Qualcomm's compiler folds a ReLU into its convolution {report.wide_ranges} times where values may go beyond "
        "its limits; --qualcomm_use_fold_relu=false keeps the limits",
    )


RUNTIME: Final = EmulatedRuntime()
