"""An inspection: facts, then claims, each with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.model.compiled_for import DISPATCH, CompiledFor
from evaltools.model.half_precision import OutsideHalf
from evaltools.report.content import some_of
from evaltools.report.words.facts import counted, device_text
from evaltools.result.inspection import (
    COMPILED,
    FROM_GRAPH,
    TESTED,
    ChipCoverage,
    DelegateRun,
    Inspection,
    ModelFacts,
    NpuCoverage,
    OperatorLeft,
    TensorFacts,
)
from evaltools.result.section import Lines, Note, Section, Table

_MOST_TENSORS: Final = 8
_MOST_CONSTANTS: Final = 8
_MOST_CONSUMERS: Final = 2
_ANSWERS: Final = {True: "yes", False: "no", None: "not known"}


def inspected(inspection: Inspection) -> list[Section]:
    """Everything that was found."""
    support = inspection.support
    fits = [[each.delegate, _ANSWERS[each.supported], each.platforms, each.remark] for each in support.delegates]
    not_known = "What NNAPI, Hexagon and Core ML leave on the CPU of this model is not known here."
    runs = [line for run in inspection.runs for line in _run_lines(run)]
    return [
        Section("", [Table("", (), _facts(inspection.model)), Lines(_kind_lines(inspection))]),
        Section(
            f"Delegates made for this kind ({support.basis}: {support.source})",
            [
                Table("", ("delegate", "fits", "where", "remark"), fits, ranks=(0, 0, 0, 0)),
                *([] if inspection.compiled_for else [Lines([not_known])]),
            ],
        ),
        Section("What delegates take of the main graph", [Lines(runs)]),
        *([] if inspection.npu is None else [_npu(inspection.npu)]),
        _traps(inspection),
        _half(inspection.outside_fp16),
    ]


def _facts(model: ModelFacts) -> list[tuple[str, str]]:
    free = f", {model.dynamic_tensors} with free sizes" if model.dynamic_tensors else ""
    state = ", keeps state between runs" if model.stateful else ""
    operators = [f"{name} x{count}" for name, count in model.operators.items()]
    graphs = f"{model.graphs}, {model.tensors} tensors{free}, {counted(model.nodes, 'node')} in the main one{state}"
    return [
        ("model", model.path),
        ("size", f"{model.size_bytes} bytes, {model.constant_bytes} of them constants"),
        ("sha256", model.sha256),
        *([("written by", model.description)] if model.description else []),
        ("graphs", graphs),
        ("operators", _listed(operators)),
        ("signatures", _listed(model.signatures)),
        ("metadata", _listed(model.metadata)),
        *_tensors("input", model.inputs),
        *_tensors("output", model.outputs),
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _tensors(what: str, tensors: Sequence[TensorFacts]) -> Iterator[tuple[str, str]]:
    for tensor in tensors[:_MOST_TENSORS]:
        key = f" ({tensor.signature_name} in its signature)" if tensor.signature_name else ""
        quantization = f", {tensor.quantization}" if tensor.quantization else ""
        sizes = ",".join(map(str, tensor.shape))
        yield what, f"{tensor.name or 'unnamed'}{key}: {tensor.dtype}[{sizes}]{quantization}"
    if len(tensors) > _MOST_TENSORS:
        yield "", f"... and {len(tensors) - _MOST_TENSORS} more {what}s, listed in the JSON result"


def _kind_lines(inspection: Inspection) -> list[str]:
    kind = f"kind: {inspection.kind.kind} ({FROM_GRAPH}: {inspection.kind.reason})"
    return [kind, *map(_compiled_line, inspection.compiled_for)]


def _compiled_line(compiled: CompiledFor) -> str:
    sdk = f" (by its SDK {compiled.sdk})" if compiled.sdk else ""
    partitions = ", a partition each" if compiled.operator == DISPATCH else ""
    return (
        f"compiled for {compiled.hardware}{sdk}: {compiled.operator} x{compiled.count}{partitions}, which neither the "
        f"CPU nor another delegate can run ({FROM_GRAPH})"
    )


def _run_lines(run: DelegateRun) -> Iterator[str]:
    who = f"{run.delegate} ({' '.join(run.flags)})"
    if run.basis != TESTED:
        yield f"{who}: {run.basis}: {run.reason}"
        return
    partitions, device = counted(run.partitions or 0, "partition"), device_text(run.device, run.is_cpu)
    yield f"{who}: {run.nodes} of {run.total_nodes} nodes in {partitions} ({run.basis}: {run.runtime}{device})"
    yield from (f"  CPU keeps {_kept(left)}" for left in run.left_on_cpu)
    yield from (f"  warning: {warning}" for warning in run.warnings)


def _npu(npu: NpuCoverage) -> Section:
    title = f"What the NPUs of chips take of the main graph ({npu.vendor})"
    if npu.reason:
        return Section(title, [Lines([f"not tested: {npu.reason}"])])
    rows = [[chip.chip, *_chip_cells(chip)] for chip in npu.chips]
    lines: list[str | Note] = [f"{COMPILED} by {npu.compiler}"]
    lines += [
        Note("all" if len(chips) == len(npu.chips) > 1 else ", ".join(chips), line)
        for line, chips in _lines_of_chips(npu.chips).items()
    ]
    columns = ("chip", "NPU takes", "partitions", "compiled file")
    return Section(title, [Table("", columns, rows, ranks=(0, 0, 0, 0)), Lines(lines)])


def _chip_cells(chip: ChipCoverage) -> list[str]:
    if chip.basis != COMPILED:
        return [f"{chip.basis}: {chip.reason}", "", ""]
    size = "none" if chip.compiled_bytes is None else f"{chip.compiled_bytes} bytes"
    saved = f", {chip.saved_as}" if chip.saved_as else ""
    return [f"{chip.nodes} of {chip.total_nodes} nodes", str(chip.partitions), f"{size}{saved}"]


def _lines_of_chips(chips: Sequence[ChipCoverage]) -> dict[str, list[str]]:
    """The lines about chips below the table, with their names: most of them leave the same operators."""
    found: dict[str, list[str]] = {}
    for chip in chips:
        kept = [f"CPU keeps {_kept(left, 'compiler')}" for left in chip.left_on_cpu]
        for line in (*kept, *(f"warning: {text}" for text in chip.warnings)):
            found.setdefault(line, []).append(chip.chip)
    return found


def _kept(left: OperatorLeft, who: str = "delegate") -> str:
    types = f", {left.types} ({FROM_GRAPH})" if left.types else ""
    reason = f"; the {who}: {left.reason}" if left.reason else f"; the {who} states no reason"
    return f"{left.operator} x{left.count}{types}{reason}"


def _traps(inspection: Inspection) -> Section:
    lines = [text for trap in inspection.gpu_traps for text in (f"* {trap.trap} [{trap.source}]", f"  {trap.found}")]
    return Section(
        f"Known traps of GPUs in this graph ({FROM_GRAPH})", [Lines(lines or ["none of those that are known"])]
    )


def _half(constants: Sequence[OutsideHalf]) -> Section:
    shown = sorted(constants, key=_concern)[:_MOST_CONSTANTS]
    rows = [
        [
            found.tensor or "unnamed",
            _consumers(found),
            *map(str, (found.count.values, found.count.too_large, found.count.vanish, found.count.subnormal)),
            f"{found.count.smallest:.3g} .. {found.count.largest:.3g}",
        ]
        for found in shown
    ]
    columns = ("constant", "taken by", "values", "above 65504", "below 2^-24", "below 2^-14", "magnitudes")
    table = Table("", columns, rows, some_of(len(shown), len(constants), "constants"), 2, (0,) * len(columns))
    return Section(f"Float constants that fp16 does not hold ({FROM_GRAPH})", [table if rows else Lines(["none"])])


def _consumers(found: OutsideHalf) -> str:
    shown = ", ".join(name for name in found.consumers[:_MOST_CONSUMERS])
    more = len(found.consumers) - _MOST_CONSUMERS
    graph = f" of graph {found.graph}" if found.graph else ""
    return f"{shown or 'nothing'}{f' and {more} more' if more > 0 else ''}{graph}"


def _concern(found: OutsideHalf) -> tuple[int, float, float]:
    count = found.count
    return -count.too_large, -count.vanish / count.values, -count.subnormal / count.values
