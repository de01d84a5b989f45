"""A whole kind of task, as a folder of the tree or another package brings it: how often the first output is largest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.parameter import Parameter
from evaltools.tasks.shared.kind import EvaluationKind, PartsOfTask
from evaltools.tasks.shared.options import MAX_FAILED_EXAMPLES, MODEL_FILE, OUTPUT_FILE_PATH

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.request import Request
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.task_kind import TaskEvidence, TaskReport


_OPTIONS: Final = {
    "evaluation": (
        MODEL_FILE,
        OUTPUT_FILE_PATH,
        MAX_FAILED_EXAMPLES,
        Parameter("count", "Number of random inputs.", default=20),
    )
}


class _Firsts(EvaluationKind):
    name = "firsts_of"
    summary = "How often the first output is the largest"
    description = summary
    options = _OPTIONS

    @property
    def part_type(self) -> type:
        from .work import FirstsPart

        return FirstsPart

    @property
    def report(self) -> TaskReport:
        from .work import Report

        return Report()

    @property
    def evidence(self) -> TaskEvidence:
        from .work import Evidence

        return Evidence()

    @property
    def metrics(self) -> Sequence[Metric]:
        from .work import METRICS

        return METRICS

    def read(self, request: Request) -> Any:
        from .work import FirstsRequest, shared_fields

        return FirstsRequest(**shared_fields(request), count=request.options.number("count"))

    def prepare(self, asked: Any) -> Any:
        from .work import Firsts

        return Firsts(asked)

    def files_read(self, asked: Any) -> Iterable[Path | None]:
        return (asked.model_file,)

    def example_count(self, result: EvaluationResult) -> int:
        count: int = result.part.count
        return count

    def is_damaged(self, result: EvaluationResult) -> bool:
        return False

    def parts(self, asked: Any) -> PartsOfTask:
        return PartsOfTask(asked.count)


KIND: Final = _Firsts()
