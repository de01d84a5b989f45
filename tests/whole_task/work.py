"""What the task does, imported when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.engine.describe import comparison_pairs
from evaltools.engine.run_folder import RunIdentity
from evaltools.engine.task import Example, Prepared
from evaltools.metrics.metric import Metric
from evaltools.metrics.power import Share
from evaltools.model import ModelFile, read_model
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.result.section import Section, no_sections
from evaltools.runtime.session import Array
from evaltools.tasks.shared.evaluation import Evaluation, Findings
from evaltools.tasks.shared.figures import MeasuredPass, judge_records, sum_up
from evaltools.tasks.shared.request import TaskRequest


class FirstsOptions(Struct, frozen=True):
    count: int


class FirstsPart(Struct, frozen=True):
    count: int
    firsts: dict[str, int]


class Seen(Struct, frozen=True):
    is_first: bool


class _Task:
    observation_type: Final = Seen
    in_order: Final = False
    keeps_state: Final = False

    def __init__(self, model: ModelFile, count: int) -> None:
        self.examples = tuple(Example(index, f"input {index}") for index in range(count))
        self._model = model

    def prepare(self, example: Example) -> Prepared:
        random = np.random.default_rng(example.index)
        return Prepared(tuple(random.normal(size=each.shape).astype(each.dtype) for each in self._model.inputs))

    def observe(self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None) -> Seen:
        return Seen(int(outputs[0].argmax()) == 0)


class _Counted:
    def __init__(self) -> None:
        self.firsts = 0

    def add(self, example: Example, observation: Seen) -> None:
        self.firsts += observation.is_first


class Firsts(Evaluation[Seen]):
    name = "firsts_of"
    options_type = FirstsOptions

    def __init__(self, request: TaskRequest) -> None:
        self.request = request
        self.model = read_model(request.model_file)
        self.task = _Task(self.model, request.options.count)

    def identity(self) -> RunIdentity:
        return self.identity_with({})

    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
        judged = [judge_records(entry, measured.outcome) for entry in described]
        counted = {entry.name: _Counted() for entry in judged if entry.status == "measured"}
        sums = sum_up(measured, comparison_pairs(judged), {name: [each] for name, each in counted.items()})
        part = FirstsPart(self.example_count, {name: each.firsts for name, each in counted.items()})
        return Findings([sums.with_figures(entry) for entry in judged], sums, part)

    @classmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        count: int = result.part.count
        return count


def _share(result: EvaluationResult, configuration: ConfigurationResult) -> Share:
    return Share(result.part.firsts[configuration.name], result.part.count)


def _firsts(result: EvaluationResult, configuration: ConfigurationResult) -> float:
    share = _share(result, configuration)
    return share.successes / share.count


METRICS: Final = (
    Metric("firsts", "share of inputs whose first output is largest", _firsts, is_share=True, share=_share),
)


class _Report:
    def lines(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        return [f"firsts of {configuration.name}: {result.part.firsts[configuration.name]}"]

    def fill(self, message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None: ...

    def sections(self, result: EvaluationResult) -> list[Section]:
        return no_sections(result)

    def next_steps(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        return []


class _Evidence:
    METRICS = METRICS

    def subject(self, result: EvaluationResult) -> str:
        return result.task

    def inputs(self, result: EvaluationResult) -> dict[str, str]:
        return {"count": str(result.part.count)}

    def nan_outputs(self, result: EvaluationResult, configuration: ConfigurationResult) -> int:
        return 0

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        return {"firsts": _firsts(result, configuration)}

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        return Judged(shares={"firsts": _share(result, configuration)})


REPORT: Final = _Report()
EVIDENCE: Final = _Evidence()
