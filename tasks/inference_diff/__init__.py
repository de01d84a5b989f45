"""The same inputs through a reference and other configurations, then how far apart the outputs are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.errors import OutputError, UsageError
from evaltools.task_kind import TaskEvidence, TaskReport
from evaltools.tasks.inference_diff.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.configuration import Configuration
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.tasks.inference_diff.evaluation import DiffEvaluation
    from evaltools.tasks.inference_diff.request import DiffRequest
    from evaltools.tasks.shared.kind import HostNames


class _InferenceDiff(EvaluationKind):
    name = "inference_diff"
    alias = "diff"
    place = 3
    summary = "How far a delegate's outputs are from the CPU's, any model"
    description = DESCRIPTION
    options = OPTIONS
    one_worker = True
    modules_on_devices = ("evaltools.tasks.inference_diff.evaluation", "scipy.special")
    whole_run_option = "noise_floor_runs"
    has_limits = True
    kernels_of_native_reference = "default"

    @property
    def part_type(self) -> type:
        from evaltools.tasks.inference_diff.result import InferenceDiff

        return InferenceDiff

    @property
    def report(self) -> TaskReport:
        from evaltools.tasks.inference_diff import report

        return report

    @property
    def evidence(self) -> TaskEvidence:
        from evaltools.tasks.inference_diff import metrics

        return metrics

    def reference(self, options: Options, text: str | None, native_tool: bool = False) -> Configuration | None:
        """The reference; None where its outputs are loaded.

        The native tool's has the runtime's default kernels, ours builtin ones.
        """
        if text is None and "load_reference" in options:
            return None
        return super().reference(options, text, native_tool or options.text("compat") == "native")

    def read(self, request: Request) -> DiffRequest:
        from evaltools.tasks.inference_diff.request import read_request

        return read_request(request)

    def prepare(self, asked: DiffRequest) -> DiffEvaluation:
        from evaltools.tasks.inference_diff.evaluation import prepare_diff

        return prepare_diff(asked)

    def files_read(self, asked: DiffRequest) -> Iterable[Path | None]:
        """The model and the files of inputs, which may be given as ``NAME=PATH``, or lie in a folder."""
        files: list[Path | None] = [asked.model_file, asked.reference_model_file]
        for text in asked.inputs.files:
            words = text.split("=")
            named = [Path("=".join(words[start:])) for start in range(len(words))]
            files += [file for path in named for file in (path.iterdir() if path.is_dir() else [path])]
        if asked.load_reference is not None:
            files += asked.load_reference.rglob("*")
        return files

    def more_files(self, request: Request, asked: DiffRequest, outputs: Iterable[Path]) -> Any:
        for path in outputs:
            if asked.save_outputs is not None and path.resolve().is_relative_to(asked.save_outputs.resolve()):
                raise UsageError(f"--output_file_path={path} is in the folder of --save_outputs; put it elsewhere")

    def write_more(
        self, result: EvaluationResult, files: Any, asked: DiffRequest, console: Console
    ) -> list[OutputError]:
        """Say where outputs could not be saved, which are written while they are measured."""
        not_saved = result.part.not_saved
        return [] if not_saved is None else [OutputError(not_saved)]

    @property
    def metrics(self) -> Sequence[Metric]:
        from evaltools.tasks.inference_diff.metrics import METRICS

        return METRICS

    def example_count(self, result: EvaluationResult) -> int:
        count: int = result.part.num_runs
        return count

    def breaks_limits(self, result: EvaluationResult) -> bool:
        return any(comparison.within_limits is False for comparison in result.part.comparisons)

    def exit_code(self, result: EvaluationResult) -> int:
        lost = any(entry.status == "not measured" for entry in result.configurations)
        return exit_codes.NOT_MEASURED if lost and result.stopped != "interrupted" else super().exit_code(result)

    def parts(self, asked: DiffRequest) -> PartsOfTask:
        material = self.prepare(asked).material
        pictures = {"input_images": material.plan.pictures} if material.plan and material.plan.pictures else {}
        return PartsOfTask(len(material.task.examples), pictures, shared=1, in_one_part=material.stateful)

    def saving_reference(self, request: Request, folder: Path) -> Request | None:
        from evaltools.tasks.inference_diff.saved_outputs import saving_reference

        return saving_reference(request, folder)

    def against_saved(self, request: Request, folder: Path) -> Request:
        from evaltools.tasks.inference_diff.saved_outputs import against_saved

        return against_saved(request, folder)

    def with_host_names(self, result: EvaluationResult, names: HostNames) -> EvaluationResult:
        from evaltools.tasks.inference_diff.saved_outputs import with_host_names

        return replace(result, part=with_host_names(result.part, names))


KIND: Final = _InferenceDiff()
