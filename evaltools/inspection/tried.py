"""What delegates take of a model when they are tried here."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import EvaltoolsError
from evaltools.model import ModelFile
from evaltools.model.contents import Graph
from evaltools.result.inspection import NOT_TESTED, TESTED, DelegateRun, OperatorLeft
from evaltools.runtime import Open, Session, one_runtime_per_package, open_session
from evaltools.runtime.process.isolated import open_isolated

TIMEOUT_S: Final = 120.0
"""What one try may take."""
_LONGEST_REASON: Final = 1200
_CUT: Final = " ..."


def try_delegates(
    model: ModelFile,
    graph: Graph,
    not_opened: str,
    opener: Open = open_session,
    asked: Configuration | None = None,
) -> list[DelegateRun]:
    """Open a model with each delegate of ``asked``, with XNNPACK in each installed runtime, and with the GPU.

    ``graph`` is the model's main one. With a reason in ``not_opened`` nothing is opened. A delegate that cannot be
    tried is ``not tested``, with the reason. Each is created in a process of its own.
    """
    runtimes = one_runtime_per_package() or ["auto"]
    tries = [DelegateRun("XNNPACK", (f"--runtime={name}", "--use_xnnpack=true"), NOT_TESTED) for name in runtimes]
    tries.append(DelegateRun("GPU", ("--use_gpu=true",), NOT_TESTED))
    if asked is not None:
        flags = tuple(asked.to_flags())
        tries = [DelegateRun(delegate.name, flags, NOT_TESTED) for delegate in asked.delegates.requested] + tries
    return [replace(entry, reason=not_opened) if not_opened else _tried(model, graph, entry, opener) for entry in tries]


def _tried(model: ModelFile, graph: Graph, untried: DelegateRun, opener: Open) -> DelegateRun:
    try:
        configuration = Configuration.from_text("inspect", shlex.join(untried.flags))
        session = open_isolated(model, configuration, TIMEOUT_S, opener)
    except EvaltoolsError as error:
        return replace(untried, reason=first_line(str(error)))
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


def first_line(text: str) -> str:
    """The first line of a message, which may be cut."""
    lines = text.strip().splitlines()
    if not lines:
        return "no reason given"
    return lines[0] if len(lines[0]) <= _LONGEST_REASON else lines[0][:_LONGEST_REASON] + _CUT
