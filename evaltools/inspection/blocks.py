"""What there is to show of an inspection: facts, then claims, each with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.inspection.npu_chips import VENDOR, NpuCoverage
from evaltools.inspection.taken import BASIS, COMPILED, FROM_GRAPH, LEFT, TESTED, WARNING
from evaltools.inspection.tried import DELEGATE
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.contents import Graph, ModelContents, operator_counts
from evaltools.model.kind import SOURCE
from evaltools.report.content import first_lines, some_of
from evaltools.report.words.facts import counted, device_text
from evaltools.result.result import Row
from evaltools.result.section import Axis, Cell, Chart, Lines, Mark, Note, Number, Section, Sentence, Table

_COMPILED_SOURCE: Final = "its operators were compiled for other hardware"
_FROM_DOCUMENT: Final = "from the documentation"
_MOST_TENSORS: Final = 8
_MOST_CONSTANTS: Final = 8
_MOST_CONSUMERS: Final = 2
ANSWERS: Final = {True: "yes", False: "no", None: "not known"}


def sections(
    model: ModelFile, contents: ModelContents, described: Row, runs: Sequence[Row], npu: NpuCoverage | None
) -> list[Section]:
    """Everything that was found; ``described`` is the row of the model."""
    parts = {role: [row for row in described.rows if row.role == role] for role in _ROLES}
    compiled, texts = parts["compiled"], ("fits", "platforms", "remark")
    basis, source = (FROM_GRAPH, _COMPILED_SOURCE) if compiled else (_FROM_DOCUMENT, SOURCE)
    fits = [[row.name, *(row.texts[name] for name in texts)] for row in parts["support"]]
    not_known = "What NNAPI, Hexagon and Core ML leave on the CPU of this model is not known here."
    kind = f"kind: {described.texts['kind']} ({FROM_GRAPH}: {described.texts['why']})"
    return [
        Section(
            "",
            [
                Sentence(_answer(contents, described, runs)),
                Table("", (), _facts(model, contents, described)),
                Lines([kind, *map(_compiled_line, compiled)]),
            ],
            place="first",
        ),
        Section(
            f"Delegates made for this kind ({basis}: {source})",
            [
                Table("", ("delegate", "fits", "where", "remark"), fits, ranks=(0, 0, 0, 0)),
                *([] if compiled else [Lines([not_known])]),
            ],
        ),
        Section(
            "What delegates take of the main graph",
            [Lines([line for row in runs for line in _run_lines(row)]), *_nodes(runs)],
            place="glance",
        ),
        *([] if npu is None else [_npu(npu)]),
        _traps(parts["trap"]),
        _half(parts["constant"]),
    ]


_ROLES: Final = ("compiled", "support", "trap", "constant")


def _answer(contents: ModelContents, described: Row, runs: Sequence[Row]) -> str:
    """What kind of model it is, what delegates take of it here, and which are made for it."""
    most: dict[str, int] = {}
    for row in _tested(runs):
        most[row.texts[DELEGATE]] = max(most.get(row.texts[DELEGATE], 0), _taken(row))
    taken = [f"{name} takes {count} of them" for name, count in most.items()]
    fits = [row.name for row in described.rows if row.role == "support" and row.texts["fits"] == ANSWERS[True]]
    kind = described.texts["kind"]
    texts = [f"{kind[:1].upper()}{kind[1:]}, {counted(len(contents.main.nodes), 'node')}", *taken]
    texts += [f"made for {', '.join(fits)}"] if fits else []
    return f"{'; '.join(texts)}."


def _tested(runs: Sequence[Row]) -> list[Row]:
    return [row for row in runs if row.texts[BASIS] == TESTED and row.delegation is not None]


def _taken(row: Row) -> int:
    return row.delegation.delegated_nodes if row.delegation is not None else 0


def _nodes(runs: Sequence[Row]) -> list[Chart]:
    """How many nodes each delegate that was tried takes, and how many it leaves to the CPU."""
    marks, texts = [], []
    for row in _tested(runs):
        name, taken = f"{row.texts[DELEGATE]}, {row.texts['runtime']}", _taken(row)
        left = row.delegation.total_nodes - taken if row.delegation is not None else 0
        marks += [Mark(taken, name, row.texts[DELEGATE]), Mark(left, name, "CPU", "missing")]
        texts.append((left, f"{name}: {taken} of {taken + left}"))
    lines = first_lines([text for _, text in sorted(texts, key=lambda each: -each[0])])
    return [Chart("Nodes by who takes them", "bars", marks, "", Axis("nodes"), lines=lines)] if marks else []


def _facts(model: ModelFile, contents: ModelContents, described: Row) -> list[tuple[str, str]]:
    counts, texts = described.counts, described.texts
    free = f", {counts['dynamic_tensors']} with free sizes" if counts["dynamic_tensors"] else ""
    state = ", keeps state between runs" if model.stateful else ""
    operators = [f"{name} x{count}" for name, count in operator_counts(contents.graphs).items()]
    nodes = f"{counted(len(contents.main.nodes), 'node')} in the main one{state}"
    return [
        ("model", str(model.path)),
        ("size", f"{model.size_bytes} bytes, {counts['constant_bytes']} of them constants"),
        ("sha256", model.sha256),
        *([("written by", texts["description"])] if texts["description"] else []),
        ("graphs", f"{counts['graphs']}, {counts['tensors']} tensors{free}, {nodes}"),
        ("operators", ", ".join(operators) or "none"),
        ("signatures", texts["signatures"] or "none"),
        ("metadata", texts["metadata"] or "none"),
        *_tensors("input", contents.main, model.inputs),
        *_tensors("output", contents.main, model.outputs),
    ]


def _tensors(what: str, graph: Graph, tensors: Sequence[TensorInfo]) -> Iterator[tuple[str, str]]:
    for tensor in tensors[:_MOST_TENSORS]:
        key = f" ({tensor.signature_name} in its signature)" if tensor.signature_name else ""
        scales = graph.tensors[tensor.index].quantization
        sizes = ",".join(map(str, tensor.shape_signature))
        yield what, f"{tensor.name or 'unnamed'}{key}: {tensor.dtype}[{sizes}]{f', {scales}' if scales else ''}"
    if len(tensors) > _MOST_TENSORS:
        yield "", f"... and {len(tensors) - _MOST_TENSORS} more {what}s, listed in the JSON result"


def _compiled_line(row: Row) -> str:
    sdk = f" (by its SDK {row.texts['sdk']})" if row.texts["sdk"] else ""
    partitions = ", a partition each" if row.name == DISPATCH else ""
    return (
        f"compiled for {row.texts['hardware']}{sdk}: {row.name} x{row.counts['nodes']}{partitions}, which neither the "
        f"CPU nor another delegate can run ({FROM_GRAPH})"
    )


def _run_lines(row: Row) -> Iterator[str]:
    basis = row.texts[BASIS]
    if basis != TESTED or row.delegation is None:
        yield f"{row.name}: {basis}: {row.reason}"
        return
    used = next(each for each in row.delegates if each.name == row.texts[DELEGATE])
    partitions, device = counted(used.partitions or 0, "partition"), device_text(used.device, used.is_cpu)
    where = f"{basis}: {row.texts['runtime']}{device}"
    yield f"{row.name}: {used.nodes} of {row.delegation.total_nodes} nodes in {partitions} ({where})"
    yield from (f"  {line}" for line in _lines_of(row))


def _lines_of(row: Row, who: str = "delegate") -> Iterator[str]:
    """What the CPU keeps, those together that have one reason, then warnings."""
    kept: dict[str, list[str]] = {}
    for part in row.rows:
        if part.role == LEFT:
            types, reason = part.texts.get("types"), part.texts.get("reason")
            why = f"the {who}: {reason}" if reason else f"the {who} states no reason"
            why = f" ({FROM_GRAPH}); {why}" if types else f"; {why}"
            kept.setdefault(why, []).append(f"{part.name} x{part.counts['nodes']}{f', {types}' if types else ''}")
    yield from (f"CPU keeps {'; '.join(operators)}{why}" for why, operators in kept.items())
    yield from (f"warning: {part.name}" for part in row.rows if part.role == WARNING)


def _npu(npu: NpuCoverage) -> Section:
    title = f"What the NPUs of chips take of the main graph ({VENDOR})"
    if npu.reason:
        return Section(title, [Lines([f"not tested: {npu.reason}"])])
    said: dict[str, list[str]] = {}
    for row in npu.chips:  # most of them leave the same operators
        for line in _lines_of(row, "compiler"):
            said.setdefault(line, []).append(row.name)
    lines: list[str | Note] = [f"{COMPILED} by {npu.compiler}"]
    lines += [
        Note("all" if len(chips) == len(npu.chips) > 1 else ", ".join(chips), line) for line, chips in said.items()
    ]
    columns = ("chip", "NPU takes", "partitions", "compiled file")
    rows = [[row.name, *_chip_cells(row)] for row in npu.chips]
    return Section(title, [Table("", columns, rows, ranks=(0, 0, 0, 0)), Lines(lines)])


def _chip_cells(row: Row) -> list[str]:
    if row.delegation is None:
        return [f"{row.texts[BASIS]}: {row.reason}", "", ""]
    size = f"{row.counts['compiled_bytes']} bytes" if "compiled_bytes" in row.counts else "none"
    saved = f", {row.texts['saved_as']}" if "saved_as" in row.texts else ""
    nodes = f"{row.delegation.delegated_nodes} of {row.delegation.total_nodes} nodes"
    return [nodes, str(row.delegates[0].partitions), f"{size}{saved}"]


def _traps(traps: Sequence[Row]) -> Section:
    lines = [text for row in traps for text in (f"* {row.name} [{row.texts['source']}]", f"  {row.texts['found']}")]
    return Section(
        f"Known traps of GPUs in this graph ({FROM_GRAPH})", [Lines(lines or ["none of those that are known"])]
    )


def _half(constants: Sequence[Row]) -> Section:
    shown = sorted(constants, key=_concern)[:_MOST_CONSTANTS]
    counts = ("values", "too_large", "vanish", "subnormal")
    rows: list[Sequence[Cell]] = [
        [
            row.name,
            _consumers(row),
            *(Number(str(row.counts[name]), row.counts[name]) for name in counts),
            f"{row.value('smallest'):.3g} .. {row.value('largest'):.3g}",
        ]
        for row in shown
    ]
    columns = ("constant", "taken by", "values", "above 65504", "below 2^-24", "below 2^-14", "magnitudes")
    table = Table("", columns, rows, some_of(len(shown), len(constants), "constants"), 2, (0,) * len(columns))
    return Section(f"Float constants that fp16 does not hold ({FROM_GRAPH})", [table if rows else Lines(["none"])])


def _consumers(row: Row) -> str:
    names = row.texts["consumers"].split(", ") if row.texts["consumers"] else []
    more = len(names) - _MOST_CONSUMERS
    graph = f" of graph {row.counts['graph']}" if row.counts["graph"] else ""
    shown = ", ".join(names[:_MOST_CONSUMERS]) or "nothing"
    return f"{shown}{f' and {more} more' if more > 0 else ''}{graph}"


def _concern(row: Row) -> tuple[int, float, float]:
    counts = row.counts
    return -counts["too_large"], -counts["vanish"] / counts["values"], -counts["subnormal"] / counts["values"]
