"""An inspection, for a person: facts, then claims, each with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools.model.compiled_for import DISPATCH, CompiledFor
from evaltools.model.half_precision import OutsideHalf
from evaltools.report.words.facts import device_text
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
    SupportOfKind,
    TensorFacts,
)
from evaltools.text import printable

_MOST_TENSORS: Final = 8
_MOST_CONSTANTS: Final = 8
_MOST_CONSUMERS: Final = 2
_ANSWERS: Final = {True: "yes", False: "no", None: "not known"}


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Everything that was found, in the order of the questions in docs/inspect.md."""
    _print_model(inspection.model, console)
    kind = inspection.kind
    console.print(f"\nkind        {kind.kind} ({FROM_GRAPH}: {printable(kind.reason)})")
    if kind.training:
        console.print(f"quantisation-aware training: {kind.training} ({FROM_GRAPH})")
    for compiled in inspection.compiled_for:
        console.print(_compiled_line(compiled))
    _print_support(inspection.support, bool(inspection.compiled_for), console)
    console.print("\nWhat delegates take of the main graph")
    for run in inspection.runs:
        _print_run(run, console)
    if inspection.npu is not None:
        _print_npu(inspection.npu, console)
    _print_traps(inspection, console)
    _print_half(inspection.outside_fp16, console)


def _print_model(model: ModelFacts, console: Console) -> None:
    console.print(f"model       {printable(model.path)}")
    console.print(f"size        {model.size_bytes} bytes, {model.constant_bytes} of them constants")
    console.print(f"sha256      {model.sha256}")
    if model.description:
        console.print(f"written by  {printable(model.description)}")
    free = f", {model.dynamic_tensors} with free sizes" if model.dynamic_tensors else ""
    state = ", keeps state between runs" if model.stateful else ""
    nodes = f"{model.nodes} node{'' if model.nodes == 1 else 's'} in the main one"
    console.print(f"graphs      {model.graphs}, {model.tensors} tensors{free}, {nodes}{state}")
    console.print(f"operators   {_listed([f'{printable(name)} x{count}' for name, count in model.operators.items()])}")
    console.print(f"signatures  {_listed([printable(key) for key in model.signatures])}")
    console.print(f"metadata    {_listed([printable(name) for name in model.metadata])}")
    _print_tensors("input", model.inputs, console)
    _print_tensors("output", model.outputs, console)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _print_tensors(what: str, tensors: Sequence[TensorFacts], console: Console) -> None:
    for tensor in tensors[:_MOST_TENSORS]:
        name = printable(tensor.name) or "unnamed"
        key = f" ({printable(tensor.signature_name)} in its signature)" if tensor.signature_name else ""
        quantization = f", {tensor.quantization}" if tensor.quantization else ""
        sizes = ",".join(map(str, tensor.shape))
        console.print(f"{what:<11} {name}{key}: {tensor.dtype}[{sizes}]{quantization}")
    if len(tensors) > _MOST_TENSORS:
        console.print(f"{'':<11} ... and {len(tensors) - _MOST_TENSORS} more {what}s, listed in the JSON result")


def _compiled_line(compiled: CompiledFor) -> str:
    sdk = f" (by its SDK {printable(compiled.sdk)})" if compiled.sdk else ""
    partitions = ", a partition each" if compiled.operator == DISPATCH else ""
    return (
        f"compiled    for {printable(compiled.hardware)}{sdk}: {compiled.operator} x{compiled.count}{partitions}, "
        f"which neither the CPU nor another delegate can run ({FROM_GRAPH})"
    )


def _print_support(support: SupportOfKind, is_compiled: bool, console: Console) -> None:
    console.print(f"\nDelegates made for this kind ({support.basis}: {support.source})")
    table = _table("delegate", "fits", "where", "remark")
    for entry in support.delegates:
        table.add_row(entry.delegate, _ANSWERS[entry.supported], entry.platforms, entry.remark)
    console.print(table)
    if not is_compiled:
        console.print("What NNAPI, Hexagon and Core ML leave on the CPU of this model is not known here.")


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _print_run(run: DelegateRun, console: Console) -> None:
    who = f"{run.delegate} ({' '.join(run.flags)})"
    if run.basis != TESTED:
        console.print(f"{who}: {run.basis}: {printable(run.reason)}")
        return
    device = device_text(run.device, run.is_cpu)
    partitions = f"{run.partitions} partition{'' if run.partitions == 1 else 's'}"
    console.print(f"{who}: {run.nodes} of {run.total_nodes} nodes in {partitions} ({run.basis}: {run.runtime}{device})")
    for left in run.left_on_cpu:
        console.print(f"  CPU keeps {_kept(left)}")
    for warning in run.warnings:
        console.print(f"  warning: {printable(warning)}")


def _print_npu(npu: NpuCoverage, console: Console) -> None:
    console.print(f"\nWhat the NPUs of chips take of the main graph ({npu.vendor})")
    if npu.reason:
        console.print(f"not tested: {printable(npu.reason)}")
        return
    table = _table("chip", "NPU takes", "partitions", "compiled file")
    for chip in npu.chips:
        table.add_row(chip.chip, *_chip_cells(chip))
    console.print(table)
    console.print(f"{COMPILED} by {npu.compiler}")
    for line, chips in _lines_of_chips(npu.chips).items():
        console.print(f"{'all' if len(chips) == len(npu.chips) > 1 else ', '.join(chips)}: {line}")


def _chip_cells(chip: ChipCoverage) -> list[str]:
    if chip.basis != COMPILED:
        return [f"{chip.basis}: {printable(chip.reason)}", "", ""]
    size = "none" if chip.compiled_bytes is None else f"{chip.compiled_bytes} bytes"
    saved = f", {printable(chip.saved_as)}" if chip.saved_as else ""
    return [f"{chip.nodes} of {chip.total_nodes} nodes", str(chip.partitions), f"{size}{saved}"]


def _lines_of_chips(chips: Sequence[ChipCoverage]) -> dict[str, list[str]]:
    """What is to be said of chips below the table, and of which: most of them leave the same operators."""
    found: dict[str, list[str]] = {}
    for chip in chips:
        kept = [f"CPU keeps {_kept(left, 'compiler')}" for left in chip.left_on_cpu]
        for line in (*kept, *(f"warning: {printable(text)}" for text in chip.warnings)):
            found.setdefault(line, []).append(chip.chip)
    return found


def _kept(left: OperatorLeft, who: str = "delegate") -> str:
    types = f", {left.types} ({FROM_GRAPH})" if left.types else ""
    reason = f"; the {who}: {printable(left.reason)}" if left.reason else f"; the {who} states no reason"
    return f"{printable(left.operator)} x{left.count}{types}{reason}"


def _print_traps(inspection: Inspection, console: Console) -> None:
    console.print(f"\nKnown traps of GPUs in this graph ({FROM_GRAPH})")
    for trap in inspection.gpu_traps:
        console.print(f"* {printable(trap.trap)} [{trap.source}]\n  {printable(trap.found)}")
    if not inspection.gpu_traps:
        console.print("none of those that are known")


def _print_half(constants: Sequence[OutsideHalf], console: Console) -> None:
    console.print(f"\nFloat constants that fp16 does not hold ({FROM_GRAPH})")
    if not constants:
        console.print("none")
        return
    table = _table("constant", "taken by", "values", "above 65504", "below 2^-24", "below 2^-14", "magnitudes")
    for found in sorted(constants, key=_concern)[:_MOST_CONSTANTS]:
        count = found.count
        table.add_row(
            printable(found.tensor) or "unnamed",
            _consumers(found),
            *map(str, (count.values, count.too_large, count.vanish, count.subnormal)),
            f"{count.smallest:.3g} .. {count.largest:.3g}",
        )
    console.print(table)
    if len(constants) > _MOST_CONSTANTS:
        console.print(f"... and {len(constants) - _MOST_CONSTANTS} more constants, listed in the JSON result")


def _consumers(found: OutsideHalf) -> str:
    shown = ", ".join(printable(name) for name in found.consumers[:_MOST_CONSUMERS])
    more = len(found.consumers) - _MOST_CONSUMERS
    graph = f" of graph {found.graph}" if found.graph else ""
    return f"{shown or 'nothing'}{f' and {more} more' if more > 0 else ''}{graph}"


def _concern(found: OutsideHalf) -> tuple[int, float, float]:
    count = found.count
    return -count.too_large, -count.vanish / count.values, -count.subnormal / count.values
