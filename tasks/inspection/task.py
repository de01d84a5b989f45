"""An inspection: what is in a model, what follows from that, and what delegates take of it when they are tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import EvaltoolsError
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.model.contents import Graph, ModelContents, operator_counts, read_contents
from evaltools.model.gpu_faults import gpu_traps
from evaltools.model.half_precision import constants_outside_half
from evaltools.model.kind import SOURCE, quantization_kind, support_of
from evaltools.result.inspection import (
    BASIS,
    FROM_DOCUMENT,
    NOT_TESTED,
    TESTED,
    DelegateRun,
    Inspection,
    ModelFacts,
    OperatorLeft,
    SupportOfKind,
    TensorFacts,
)
from evaltools.runtime import Open, Session, one_runtime_per_package, open_session
from evaltools.runtime.process.isolated import open_isolated

_TIMEOUT_S: Final = 120.0
_LONGEST_REASON: Final = 1200
_CUT: Final = " ..."
_NOT_ASKED: Final = "--run=false"


def inspect_model(path: Path, run: bool = True, opener: Open = open_session) -> Inspection:
    """Read a model, and with ``run`` open it with the delegates that this machine may have, each in its own process.

    Raises :class:`~evaltools.errors.ModelError` for a file that is no sound model. A delegate that cannot be tried is
    ``not tested`` in the result, with the reason.
    """
    model = read_model(path)
    contents = read_contents(model)
    kind = quantization_kind(contents.graphs)
    return Inspection(
        evaltools=version("evaltools"),
        basis=BASIS,
        model=_facts(model, contents),
        kind=kind,
        support=SupportOfKind(FROM_DOCUMENT, SOURCE, support_of(kind.kind)),
        runs=tuple(try_delegates(model, contents.main, run, opener)),
        gpu_traps=gpu_traps(contents.main),
        outside_fp16=constants_outside_half(contents.graphs),
    )


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


def try_delegates(model: ModelFile, graph: Graph, run: bool, opener: Open = open_session) -> list[DelegateRun]:
    """Open a model with XNNPACK in each installed runtime, and with the GPU; without ``run`` nothing is opened.

    ``graph`` is the model's main one. A delegate that cannot be tried is ``not tested``, with the reason.
    """
    runtimes = one_runtime_per_package() or ["auto"]
    tries = [DelegateRun("XNNPACK", (f"--runtime={name}", "--use_xnnpack=true"), NOT_TESTED) for name in runtimes]
    tries.append(DelegateRun("GPU", ("--use_gpu=true",), NOT_TESTED))
    return [_tried(model, graph, entry, opener) if run else replace(entry, reason=_NOT_ASKED) for entry in tries]


def _tried(model: ModelFile, graph: Graph, untried: DelegateRun, opener: Open) -> DelegateRun:
    try:
        configuration = Configuration.from_text("inspect", " ".join(untried.flags))
        session = open_isolated(model, configuration, _TIMEOUT_S, opener)
    except EvaltoolsError as error:
        return replace(untried, reason=_first_line(str(error)))
    try:
        return _taken(session, graph, untried)
    finally:
        session.close()


def _taken(session: Session, graph: Graph, untried: DelegateRun) -> DelegateRun:
    facts, proof = session.facts, session.delegation
    coverage = next((entry for entry in proof.delegates if entry.delegate == untried.delegate), None)
    return replace(
        untried,
        basis=TESTED,
        runtime=f"{facts.package} {facts.version}",
        device=coverage.device if coverage else "",
        is_cpu=coverage.is_cpu if coverage else False,
        nodes=coverage.nodes if coverage else 0,
        total_nodes=proof.total_nodes,
        partitions=coverage.partitions if coverage else 0,
        left_on_cpu=tuple(
            OperatorLeft(operator, count, types_of_left(graph, operator, count), proof.refused.get(operator, ""))
            for operator, count in proof.cpu_operators.items()
        ),
        warnings=proof.warnings,
    )


def types_of_left(graph: Graph, operator: str, count: int) -> str:
    """The types that the ``count`` nodes of an operator left on the CPU compute with; empty where that is not known.

    It is known where all nodes of the operator are left, and where only one group of equal types is as many.

    >>> from evaltools.model.contents import Operation
    >>> types_of_left(Graph((), (Operation(0, "ADD", (), ()),) * 2, (), ()), "ADD", 1)
    ''
    """
    types = Counter(graph.types_of(node) for node in graph.nodes if node.operator == operator)
    if sum(types.values()) == count:
        return "; ".join(types)
    as_many = [name for name, number in types.items() if number == count]
    return as_many[0] if len(as_many) == 1 else ""


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    if not lines:
        return "no reason given"
    return lines[0] if len(lines[0]) <= _LONGEST_REASON else lines[0][:_LONGEST_REASON] + _CUT
