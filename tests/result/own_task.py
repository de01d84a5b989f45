"""A task as one from outside is: an object with a part of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from evaltools.metrics.power import Share
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.result.section import Lines, Section


@dataclass(frozen=True)
class Part:
    """Of each configuration, how many of ``pixels`` are right."""

    pixels: int
    right: dict[str, int]


class _Report:
    def lines(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        return []

    def fill(self, message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
        message.num_runs = result.part.pixels

    def sections(self, result: EvaluationResult) -> list[Section]:
        return [Section("Pixels", [Lines([f"right: {result.part.right}"])], "first")]

    def next_steps(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        return []


class _Evidence:
    def subject(self, result: EvaluationResult) -> str:
        return result.task

    def inputs(self, result: EvaluationResult) -> dict[str, str]:
        return {"pixels": str(result.part.pixels)}

    def nan_outputs(self, result: EvaluationResult, configuration: ConfigurationResult) -> int:
        return 0

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        return {"top1": result.part.right[configuration.name] / result.part.pixels}

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        return Judged(shares={"top1": Share(result.part.right[configuration.name], result.part.pixels)})


class OwnTask:
    name: Final = "own"
    command: Final = "own"
    parameters: Final[dict[str, object]] = {}
    accuracy: Final = None
    metrics: Final = ()
    part_type: Final = Part
    report: Final = _Report()
    evidence: Final = _Evidence()


KIND: Final = OwnTask()
