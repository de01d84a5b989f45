"""An inspection: what is in a model, what follows from that, and what delegates take of it when they are tried."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.inspection.npu_chips import ChipsAsked, npu_coverage
from evaltools.inspection.tried import try_delegates
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.model.compiled_for import CompiledFor, compiled_for
from evaltools.model.contents import Graph, ModelContents, operator_counts, read_contents
from evaltools.model.gpu_faults import gpu_traps
from evaltools.model.half_precision import constants_outside_half
from evaltools.model.kind import SOURCE, quantization_kind, support_of
from evaltools.result.inspection import (
    BASIS,
    FROM_DOCUMENT,
    FROM_GRAPH,
    Inspection,
    ModelFacts,
    SupportOfKind,
    TensorFacts,
)
from evaltools.runtime import Open, open_session

_COMPILED_SOURCE: Final = "its operators were compiled for other hardware"


def inspect_model(
    path: Path,
    run: bool = True,
    opener: Open = open_session,
    chips: ChipsAsked | None = None,
    report: Callable[[str], None] = lambda _: None,
    asked: Configuration | None = None,
) -> Inspection:
    """Read a model, and with ``run`` open it with the delegates that this machine may have, each in its own process.

    ``asked`` is a configuration whose delegates are tried as well. With ``chips`` it is compiled for them, and
    ``report`` gets a line before each. Raises :class:`~evaltools.errors.ModelError` for a file that is not a sound
    model, and :class:`~evaltools.errors.UsageError` for unknown chips. What cannot be tried is ``not tested`` in
    the result, with the reason.
    """
    model = read_model(path)
    contents = read_contents(model)
    npu = npu_coverage(model, contents.main, chips, report) if chips else None
    compiled = compiled_for(model.read(), contents.graphs)
    basis, source = (FROM_GRAPH, _COMPILED_SOURCE) if compiled else (FROM_DOCUMENT, SOURCE)
    kind = quantization_kind(contents.graphs)
    return Inspection(
        evaltools=version("evaltools"),
        basis=BASIS,
        model=_facts(model, contents),
        kind=kind,
        compiled_for=compiled,
        support=SupportOfKind(basis, source, support_of(kind.kind, compiled)),
        runs=tuple(try_delegates(model, contents.main, _not_opened(run, compiled), opener, asked)),
        npu=npu,
        gpu_traps=gpu_traps(contents.main),
        outside_fp16=constants_outside_half(contents.graphs),
    )


def _not_opened(run: bool, compiled: Sequence[CompiledFor]) -> str:
    """Why no delegate is tried; empty where each is."""
    if not run:
        return "--run=false"
    return "; ".join(f"{each.operator} was compiled for {each.hardware}" for each in compiled)


def _facts(model: ModelFile, contents: ModelContents) -> ModelFacts:
    return ModelFacts(
        path=str(model.path),
        size_bytes=model.size_bytes,
        sha256=model.sha256,
        description=contents.description,
        graphs=len(contents.graphs),
        tensors=contents.tensor_count,
        nodes=len(contents.main.nodes),
        constant_bytes=contents.constant_bytes,
        operators=operator_counts(contents.graphs),
        inputs=_tensors(contents.main, model.inputs),
        outputs=_tensors(contents.main, model.outputs),
        signatures=contents.signatures,
        metadata=contents.metadata,
        dynamic_tensors=sum(tensor.is_dynamic for graph in contents.graphs for tensor in graph.tensors),
        stateful=model.stateful,
    )


def _tensors(graph: Graph, tensors: Sequence[TensorInfo]) -> tuple[TensorFacts, ...]:
    return tuple(
        TensorFacts(
            name=tensor.name,
            signature_name=tensor.signature_name,
            dtype=tensor.dtype,
            shape=tensor.shape_signature,
            quantization=graph.tensors[tensor.index].quantization,
        )
        for tensor in tensors
    )
