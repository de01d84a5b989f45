"""The files that ``evaltools benchmark`` writes, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.request import BenchmarkRequest
from evaltools.cli.benchmark.lines import NativeLines
from evaltools.errors import OutputError, UsageError
from evaltools.native.lines.benchmark import native_benchmark_proto, saved_lines
from evaltools.native.lines.profile_report import CSV, profile_file
from evaltools.report.files.benchmark_trace import trace_json
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.files.plot import plot_benchmark, require_plot
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import measured_page, require_page_file
from evaltools.request import Request, require_apart
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.json_file import encode_json
from evaltools.runtime.session import Array

_PROTOS: Final = "result_file_path"
_OUTPUTS: Final = "output_filepath"
_PROFILES: Final = "op_profiling_output_file"
_CSV_PROFILES: Final = "profiling_output_csv_file"
Outputs = Sequence[tuple[Array, ...] | None]


class PlannedFiles(Struct, frozen=True):
    """The paths of output files by flag: one for the whole result, or one per row.

    ``input_bytes`` is the size of each model's inputs.
    """

    whole: Mapping[str, Path]
    of_rows: Mapping[str, Sequence[Path]]
    input_bytes: Sequence[int]
    profile_mode: str

    def write(self, result: BenchmarkResult, outputs: Outputs, lines: NativeLines) -> list[OutputError]:
        """Write what was measured; returns what could not be written."""
        makers: dict[str, Callable[[], bytes]] = {
            "output_file_path": lambda: encode_json(result),
            "trace": lambda: trace_json(result),
            "plot": lambda: plot_benchmark(result, self.whole["plot"]),
            "report": lambda: measured_page(Sources(benchmarks={"benchmark": result}), self.whole["report"]),
        }
        errors = [_written(path, makers[flag]()) for flag, path in self.whole.items() if flag in makers]
        for flag, paths in self.of_rows.items():
            for path, row, values in zip(paths, result.rows, outputs, strict=True):
                content = self._content(flag, result, row, values)
                if content is None:
                    continue
                errors.append(_written(path, content))
                if flag == _PROTOS and errors[-1] is None:
                    lines.text(saved_lines(path))
        if "native_lines" in self.whole:
            errors.append(_written(self.whole["native_lines"], lines.content))
        return [error for error in errors if error is not None]

    def _content(
        self, flag: str, result: BenchmarkResult, row: BenchmarkRow, values: tuple[Array, ...] | None
    ) -> bytes | None:
        """The content of a row's file; None where there is nothing to write."""
        if flag == _OUTPUTS:
            return None if values is None else b"".join(array.tobytes() for array in values)
        if row.status == "failed":
            return None
        if flag == _PROTOS:
            size = result.models[row.model].size_bytes
            return native_benchmark_proto(row, size, self.input_bytes[row.model])
        if row.profile is None:
            return None
        return profile_file(row.profile, row.rounds[-1].opening, self.profile_mode)


def written_whole() -> list[str]:
    """The flags of files that hold all rows together."""
    return [parameter.name for parameter in benchmark_flags.BEYOND if parameter.role == "output_file"]


def planned_files(asked: Request, request: BenchmarkRequest) -> PlannedFiles:
    """Check every file that is to be written; raises :class:`UsageError`."""
    flags = asked.options
    whole = {name: path for name in written_whole() if (path := flags.path(name)) is not None}
    is_stated = flags.text("output_format") == "json"
    if "output_file_path" in whole and not is_stated and whole["output_file_path"].suffix.lower() != ".json":
        path = whole["output_file_path"]
        raise UsageError(
            f"--output_file_path={path}: the result is JSON; give a name that ends in .json, or --output_format=json"
        )
    if "plot" in whole:
        require_plot(whole["plot"])
    if "report" in whole:
        require_page_file(whole["report"], "--report")
    if _PROFILES in flags and _CSV_PROFILES in flags:
        raise UsageError(f"--{_PROFILES} and --{_CSV_PROFILES} both name a file for the operators' times; keep one")
    labels = _labels(request)
    of_rows = {
        each.name: list(file_per_configuration(path, labels).values())
        for each in benchmark_flags.PARAMETERS
        if each.role == "output_file" and (path := flags.path(each.name)) is not None
    }
    read = asked.files_read
    written = [*whole.items(), *((name, path) for name, paths in of_rows.items() for path in paths)]
    require_apart((f"--{name}", path) for name, path in written)
    for name, path in written:
        require_output_file(path, f"--{name}", read)
    input_bytes = [sum(array.nbytes for array in values) for values in request.inputs]
    mode = CSV if _CSV_PROFILES in flags else flags.text("op_profiling_output_mode")
    return PlannedFiles(whole, of_rows, input_bytes, mode)


def _labels(request: BenchmarkRequest) -> list[str]:
    """A label for each row, to be put into a file's name; no two are alike."""
    several = len(request.models) > 1
    return [
        f"{candidate.model_number} {candidate.model.path.stem} {candidate.configuration.name}"
        if several
        else candidate.configuration.name
        for candidate in request.candidates
    ]


def _written(path: Path, content: bytes) -> OutputError | None:
    try:
        write_file(path, content)
    except OutputError as error:
        return error
    return None
