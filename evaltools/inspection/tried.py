"""What delegates take of a model when they are tried here."""

from __future__ import annotations

import shlex
from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import EvaltoolsError
from evaltools.inspection.taken import NOT_TESTED, TESTED, first_line, not_taken, taken
from evaltools.model import ModelFile
from evaltools.model.contents import Graph
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.result import Row
from evaltools.runtime import Open, Session, one_runtime_per_package, open_session
from evaltools.runtime.process.isolated import open_isolated

TIMEOUT_S: Final = 120.0
"""What one try may take."""
DELEGATE: Final = "delegate"
"""The role of a row, and the name of the text that names the delegate."""


def try_delegates(
    model: ModelFile,
    graph: Graph,
    not_opened: str,
    opener: Open = open_session,
    asked: Configuration | None = None,
) -> list[Row]:
    """Open a model with each delegate of ``asked``, with XNNPACK in each installed runtime, and with the GPU.

    ``graph`` is the model's main one. With a reason in ``not_opened`` nothing is opened. A delegate that cannot be
    tried is ``not tested``, with the reason. Each is created in a process of its own.
    """
    runtimes = one_runtime_per_package() or ["auto"]
    tries = [("XNNPACK", [f"--runtime={name}", "--use_xnnpack=true"]) for name in runtimes]
    tries.append(("GPU", ["--use_gpu=true"]))
    if asked is not None:
        tries = [(delegate.name, asked.to_flags()) for delegate in asked.delegates.requested] + tries
    rows = [Row(f"{name} ({' '.join(flags)})", DELEGATE, flags=flags, texts={DELEGATE: name}) for name, flags in tries]
    return [not_taken(row, NOT_TESTED, not_opened) if not_opened else _tried(model, graph, row, opener) for row in rows]


def _tried(model: ModelFile, graph: Graph, untried: Row, opener: Open) -> Row:
    try:
        configuration = Configuration.from_text("inspect", shlex.join(untried.flags))
        session = open_isolated(model, configuration, TIMEOUT_S, opener)
    except EvaltoolsError as error:
        return not_taken(untried, NOT_TESTED, first_line(str(error)))
    try:
        return _taken(session, graph, untried)
    finally:
        session.close()


def _taken(session: Session, graph: Graph, untried: Row) -> Row:
    facts, proof, name = session.facts, session.delegation, untried.texts[DELEGATE]
    found = next((entry for entry in proof.delegates if entry.delegate == name), None)
    used = DelegateUsed(name, True, {}, 0, 0)
    if found is not None:
        used = DelegateUsed(name, True, {}, found.nodes, found.partitions, found.device, found.is_cpu)
    shown = DelegationProof(proof.total_nodes, proof.delegated_nodes, dict(proof.cpu_operators))
    row = taken(untried, TESTED, used, shown, graph, proof.refused, proof.warnings)
    row.texts["runtime"] = f"{facts.package} {facts.version}"
    return row
