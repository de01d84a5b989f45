"""Did the delegate run: nodes delegated, partitions, operators left, versions, device, the model's hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.content import merged, sentences, some_of
from evaltools.report.words.facts import counted, delegate_name, describe_configuration, left_on_cpu
from evaltools.report.words.numbers import megabytes
from evaltools.result.facts import Model, Tensor
from evaltools.result.result import Row
from evaltools.result.section import Axis, Block, Cell, Chart, Lines, Mark, Note, Number, Section, Table, Tone
from evaltools.text import shortened

_MOST_OPERATORS: Final = 12
_MOST_TENSORS: Final = 8
_MOST_BARS: Final = 24
_LONGEST_MESSAGE: Final = 240
_CPU: Final = "CPU"


def proof(opened: Sequence[Row], names: Sequence[str], paths: Sequence[str], models: Sequence[Model]) -> Section:
    """``paths`` lead to the configurations in the JSON result, ``names`` are theirs on the page."""
    rows = [_row(*each) for each in zip(opened, names, paths, strict=True)]
    columns = ("configuration", "delegate", "nodes", "partitions", "left on the CPU", "runtime", "evidence")
    blocks: list[Block] = [Table("What ran each configuration", columns, rows, ranks=(0, 1, 0, 4, 2, 3, 5))]
    drawn = _nodes(opened, names)
    messages = _messages(opened, names)
    return Section(
        "Did it run?",
        [*blocks, *([drawn] if drawn else []), *([Lines(messages)] if messages else []), *_models(models)],
        place="run",
        intro="A delegate that did not run is never a pass. Nodes are those of the model's main graph.",
    )


def opened_lines(configurations: Sequence[Row]) -> Lines:
    """What each configuration runs on, or why it cannot; those with the same text share a line."""
    notes = []
    for entry in configurations:
        tone: Tone = "bad" if entry.fallback else "missing" if entry.status != "measured" else ""
        notes.append(Note(entry.name, describe_configuration(entry), tone))
    return Lines(merged(notes))


def _row(entry: Row, name: str, path: str) -> Sequence[Cell]:
    runtime = entry.runtime
    if runtime is None:
        return name, "", "not opened", "", "", "", ""
    proof = entry.delegation
    threads = "" if entry.num_threads == -1 else f", {counted(entry.num_threads, 'thread')}"
    nodes: Cell = "not stated"
    if proof is not None:
        text = f"{proof.delegated_nodes} of {proof.total_nodes}"
        nodes = Number(text, proof.delegated_nodes, f"{path}/delegation/delegated_nodes")
    partitions = [str(each.partitions) for each in entry.delegates if each.partitions is not None]
    evidence = [each.evidence for each in entry.delegates if each.evidence]
    reasons = [f"not measured: {entry.reason}"] if entry.reason else []
    reasons += [f"fell back to the CPU: {entry.fallback}"] if entry.fallback else []
    return (
        name,
        ", ".join(map(delegate_name, entry.delegates)) or "none",
        nodes,
        ", ".join(partitions) or "-",
        _left(entry),
        f"{runtime.package} {runtime.version}, {runtime.kernels} kernels{threads}",
        "; ".join([*reasons, *evidence]),
    )


def _left(entry: Row) -> str:
    if entry.delegation is None:
        return ""
    if not entry.delegation.delegated_nodes:
        return "everything"
    return left_on_cpu(entry.delegation, _MOST_OPERATORS) or "nothing"


def _nodes(opened: Sequence[Row], names: Sequence[str]) -> Chart | None:
    """Who ran how many nodes, of the configurations that have a delegate."""
    rows: dict[str, dict[str, float]] = {}
    for entry, name in zip(opened, names, strict=True):
        if entry.delegation is not None and any(each.nodes for each in entry.delegates):
            by = {each.name: float(each.nodes) for each in entry.delegates if each.nodes}
            rows[name] = {**by, _CPU: float(entry.delegation.total_nodes - entry.delegation.delegated_nodes)}
    if not rows:
        return None
    drawn = dict(list(rows.items())[:_MOST_BARS])
    marks = [
        Mark(size, name, part, "missing" if part == _CPU else "")
        for name, by in drawn.items()
        for part, size in by.items()
    ]
    texts = [f"{name}: {', '.join(f'{part} {size:.0f}' for part, size in by.items())}" for name, by in drawn.items()]
    text = sentences("; ".join(texts), some_of(len(drawn), len(rows), "configurations"))
    return Chart("Nodes by who ran them", "bars", marks, text, Axis("nodes"))


def _messages(opened: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Why some were not opened; what runtimes printed while they loaded the model, the beginnings of long texts."""
    named = list(zip(opened, names, strict=True))
    closed = [f"{name} was not opened: {entry.reason}" for entry, name in named if entry.runtime is None]
    found = [(name, entry.runtime.messages) for entry, name in named if entry.runtime is not None]
    messages = [f"{name}, messages: {shortened(text, _LONGEST_MESSAGE)}" for name, text in found if text]
    return closed + messages


def _models(models: Sequence[Model]) -> list[Table]:
    """All that is known of the only model; of several, a row each."""
    if len(models) == 1:
        return [_model(models[0])]
    rows = [(each.file, f"{megabytes(each.size_bytes)} MB", str(each.node_count), each.sha256) for each in models]
    return [Table("The models", ("file", "size", "nodes", "sha256"), rows)]


def _model(model: Model) -> Table:
    tensors = [("input", each) for each in model.inputs] + [("output", each) for each in model.outputs]
    rows: list[Sequence[Cell]] = [
        ("file", model.file),
        ("sha256", model.sha256),
        ("size", f"{megabytes(model.size_bytes)} MB, {model.node_count} nodes"),
        *((kind, _tensor(each)) for kind, each in tensors[:_MOST_TENSORS]),
    ]
    return Table("The model", (), rows, some_of(min(len(tensors), _MOST_TENSORS), len(tensors), "tensors"))


def _tensor(tensor: Tensor) -> str:
    scale = "" if tensor.scale is None else f", scale {tensor.scale:.4g}, zero point {tensor.zero_point}"
    return f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]{scale}"
