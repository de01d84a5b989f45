"""What the NPUs of phones' chips take of a model: it is compiled for each of them by Qualcomm's compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.extensions import package_version
from evaltools.inspection.taken import COMPILED, NOT_TESTED, REFUSED, first_line, not_taken, taken
from evaltools.inspection.tried import TIMEOUT_S
from evaltools.model import ModelFile, model_in_memory
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.contents import Graph, read_contents
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.result import Row
from evaltools.runtime.emulated import warnings_of
from evaltools.runtime.emulated.compiler import (
    Compiled,
    CompilerRefused,
    backend_here,
    compile_for,
    known_chips,
    reasons_by_operator,
    require_chip,
)

ALL: Final = "all"
CHIP: Final = "chip"
"""The role of a row."""
VENDOR: Final = "qualcomm"
MANY_PARTITIONS: Final = 5
"""From here on there is a warning.

Each partition is a call of the driver, with tensors handed to the NPU and back; only the phone can show what that
costs. Of 32 public models of which SM8650's NPU takes anything, 30 become one partition. The others became 5 and 8:
there an operator that the NPU leaves comes back all along the graph, and another form of it is worth a try.
"""


class NpuCoverage(Struct, frozen=True):
    """What the NPUs of a vendor's chips take, a row each; without a ``compiler`` there are none, and a ``reason``."""

    compiler: str = ""
    chips: list[Row] = field(default_factory=list)
    reason: str = ""


class ChipsAsked(Struct, frozen=True):
    """The chips that a model is to be compiled for, or ``all``; ``folder`` is for the compiled files."""

    chips: tuple[str, ...]
    folder: Path | None = None


def npu_coverage(model: ModelFile, graph: Graph, asked: ChipsAsked, report: Callable[[str], None]) -> NpuCoverage:
    """Compile a model, whose main graph is ``graph``, for one chip after the other; ``report`` gets a line before each.

    Raises :class:`UsageError` for a chip that is not known, and for files that cannot be written, before it compiles.
    """
    if any(node.operator == DISPATCH for node in graph.nodes):
        raise UsageError(f"{model.path} is compiled for an NPU already; give the model that it was made from")
    try:
        chips = _known(asked.chips)
        files = _files(model, chips, asked.folder)
        backend = backend_here()
    except ConfigurationUnavailable as error:
        return NpuCoverage(reason=first_line(str(error)))
    found: list[Row] = []
    sdks = set()
    for number, chip in enumerate(chips, 1):
        row = Row(chip, CHIP)
        report(f"compiling for {chip} ({number} of {len(chips)})")
        try:
            compiled = compile_for(model, chip, timeout_s=TIMEOUT_S)
        except CompilerRefused as error:
            found.append(not_taken(row, REFUSED, error.reason))
            continue
        except ConfigurationUnavailable as error:
            found.append(not_taken(row, NOT_TESTED, first_line(str(error))))
            continue
        sdks.add(f"SDK {compiled.report.sdk}" if compiled.report.sdk else "")
        found.append(_coverage(model, graph, row, compiled, files.get(chip)))
    compiler = [f"ai-edge-litert {package_version('ai-edge-litert')}", backend.version, *sorted(sdks)]
    return NpuCoverage(", ".join(filter(None, compiler)), found)


def _known(asked: tuple[str, ...]) -> list[str]:
    if asked == (ALL,):
        return known_chips()
    for chip in asked:
        require_chip(chip)
    return list(dict.fromkeys(asked))


def _files(model: ModelFile, chips: list[str], folder: Path | None) -> dict[str, Path]:
    """Where the compiled file of each chip goes, if they are kept; the folder is made."""
    if folder is None:
        return {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--save_compiled={folder}: cannot be made a folder: {error.strerror}") from error
    files = {chip: folder / f"{model.path.stem}_{chip}.tflite" for chip in chips}
    for file in files.values():
        require_output_file(file, "--save_compiled", [model.path])
    return files


def _coverage(model: ModelFile, graph: Graph, row: Row, compiled: Compiled, file: Path | None) -> Row:
    report = compiled.report
    after = read_contents(model_in_memory(compiled.content, model.path)).main if compiled.content else graph
    left = Counter(node.operator for node in after.nodes if node.operator != DISPATCH)
    found = taken(
        row,
        COMPILED,
        DelegateUsed("NPU", True, {}, report.taken, report.partitions),
        DelegationProof(report.total_nodes, report.taken, dict(left.most_common())),
        graph,
        reasons_by_operator(model, report),
        (*_many(report.partitions), *warnings_of(report)),
    )
    if compiled.content:
        found.counts["compiled_bytes"] = len(compiled.content)
        if file is not None:
            write_file(file, compiled.content)
            found.texts["saved_as"] = str(file)
    return found


def _many(partitions: int) -> tuple[str, ...]:
    if partitions < MANY_PARTITIONS:
        return ()
    return (
        f"{partitions} partitions: values go to the NPU and back as often, which costs time; change the operators that "
        "the CPU keeps, or measure on the phone whether the NPU is worth it",
    )
