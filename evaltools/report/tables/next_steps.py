"""What to do next about a configuration: commands, or sentences about them, drawn from the facts of a result.

What did not run gets the same steps whatever measured it. For the rest a task has steps of its own
(:meth:`~evaltools.task_kind.TaskReport.next_steps`), as a benchmark has in
:mod:`~evaltools.report.tables.benchmark`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import kind_of

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

_DOCTOR: Final = "evaltools doctor says what runs on this machine, and what is missing for the rest"
SEARCH: Final = "evaltools locate "
"""How a step begins that looks for an operator."""
_SETTLED: Final = ("equivalent", "better", "not measured")


def after_evaluation(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """What answers the question that a configuration leaves open; nothing where none is."""
    steps = list(where_it_did_not_run(configuration, result.model.file))
    verdict = configuration.verdict
    if configuration.status == "measured" and verdict is not None and verdict.kind not in _SETTLED:
        steps += kind_of(result.task).report.next_steps(result, configuration)
    return steps


def diff_command(model_file: str, flags: Sequence[str]) -> str:
    """The command that compares a configuration's outputs with those of the CPU.

    >>> diff_command("my model.tflite", ["--use_gpu=true"])
    "evaltools diff 'my model.tflite' --use_gpu=true"
    """
    return shlex.join(["evaltools", "diff", model_file, *flags])


def where_it_did_not_run(entry: ConfigurationResult | BenchmarkRow, model_file: str) -> Iterator[str]:
    """What says why it did not run, or not all of it."""
    if entry.status != "measured" and entry.runtime is None:
        yield _DOCTOR
    elif entry.fallback:
        yield f"{shlex.join(['evaltools', 'inspect', model_file])} says what delegates take of the model, and what not"
