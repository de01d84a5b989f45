"""What the NPUs of phones' chips take of a model: it is compiled for each of them by Qualcomm's compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.inspection.tried import TIMEOUT_S, first_line, types_of_left
from evaltools.model import ModelFile, model_in_memory
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.contents import Graph, read_contents
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.result.inspection import COMPILED, NOT_TESTED, REFUSED, ChipCoverage, NpuCoverage, OperatorLeft
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
_VENDOR: Final = "qualcomm"
MANY_PARTITIONS: Final = 5
"""From here on there is a warning.

Each partition is a call of the driver, with tensors handed to the NPU and back; only the phone can show what that
costs. Of 32 public models of which SM8650's NPU takes anything, 30 become one partition. The others became 5 and 8:
there an operator that the NPU leaves comes back all along the graph, and another form of it is worth a try.
"""


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
        return NpuCoverage(_VENDOR, "", (), first_line(str(error)))
    found, sdks = [], set()
    for number, chip in enumerate(chips, 1):
        report(f"compiling for {chip} ({number} of {len(chips)})")
        try:
            compiled = compile_for(model, chip, timeout_s=TIMEOUT_S)
        except CompilerRefused as error:
            found.append(ChipCoverage(chip, REFUSED, error.reason))
            continue
        except ConfigurationUnavailable as error:
            found.append(ChipCoverage(chip, NOT_TESTED, first_line(str(error))))
            continue
        sdks.add(f"SDK {compiled.report.sdk}" if compiled.report.sdk else "")
        found.append(_coverage(model, graph, chip, compiled, files.get(chip)))
    compiler = [f"ai-edge-litert {version('ai-edge-litert')}", backend.version, *sorted(sdks)]
    return NpuCoverage(_VENDOR, ", ".join(filter(None, compiler)), tuple(found))


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


def _coverage(model: ModelFile, graph: Graph, chip: str, compiled: Compiled, file: Path | None) -> ChipCoverage:
    report = compiled.report
    after = read_contents(model_in_memory(compiled.content, model.path)).main if compiled.content else graph
    left = Counter(node.operator for node in after.nodes if node.operator != DISPATCH)
    reasons = reasons_by_operator(model, report)
    saved = file if compiled.content else None
    if saved is not None:
        write_file(saved, compiled.content)
    return ChipCoverage(
        chip,
        COMPILED,
        nodes=report.taken,
        total_nodes=report.total_nodes,
        partitions=report.partitions,
        compiled_bytes=len(compiled.content) or None,
        saved_as=str(saved or ""),
        left_on_cpu=tuple(
            OperatorLeft(operator, count, types_of_left(graph, operator, count), reasons.get(operator, ""))
            for operator, count in left.most_common()
        ),
        warnings=(*_many(report.partitions), *warnings_of(report)),
    )


def _many(partitions: int) -> tuple[str, ...]:
    if partitions < MANY_PARTITIONS:
        return ()
    return (
        f"{partitions} partitions: values go to the NPU and back as often, which costs time; change the operators that "
        "the CPU keeps, or measure on the phone whether the NPU is worth it",
    )
