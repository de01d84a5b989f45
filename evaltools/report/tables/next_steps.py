"""What to do next about a configuration: commands, or sentences about them, drawn from the facts of a result.

What did not run gets the same steps whatever measured it. For the rest a task has steps of its own
(:meth:`~evaltools.task_kind.TaskReport.next_steps`), as a benchmark has here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.report.tables.shown import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import kind_of

_DOCTOR: Final = "evaltools doctor says what runs on this machine, and what is missing for the rest"
SEARCH: Final = "evaltools locate "
"""How a step begins that looks for an operator."""
_ENOUGH_ROUNDS: Final = 8
_SETTLED: Final = ("equivalent", "better", "not measured")


def after_evaluation(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """What answers the question that a configuration leaves open; nothing where none is."""
    steps = list(_where_it_did_not_run(configuration, result.model.file))
    verdict = configuration.verdict
    if configuration.status == "measured" and verdict is not None and verdict.kind not in _SETTLED:
        steps += kind_of(result.task).report.next_steps(result, configuration)
    return steps


def after_benchmark(result: BenchmarkResult, row: BenchmarkRow) -> list[str]:
    """Of the fastest row how sure that is, and whether its outputs are right; of others only why they did not run."""
    model = result.models[row.model].file
    steps = list(_where_it_did_not_run(row, model))
    ranked = [each for each in rows_by_latency(result) if not each.fallback]
    if ranked and row is ranked[0]:
        steps += _whether_it_is_sure(ranked)
        if row.delegates and row.accuracy is None:
            steps.append(f"{diff_command(model, row.flags)} says whether its outputs are still those of the CPU")
    return steps


def rows_by_latency(result: BenchmarkResult) -> list[BenchmarkRow]:
    """The rows that have a time, the fastest first."""
    timed = [(shown_figures(row).latency_us, row) for row in result.rows if row.status == "measured"]
    known = [(latency_us, row) for latency_us, row in timed if latency_us is not None]
    return [row for _, row in sorted(known, key=lambda entry: entry[0])]


def diff_command(model_file: str, flags: Sequence[str]) -> str:
    """The command that compares a configuration's outputs with those of the CPU.

    >>> diff_command("my model.tflite", ["--use_gpu=true"])
    "evaltools diff 'my model.tflite' --use_gpu=true"
    """
    return shlex.join(["evaltools", "diff", model_file, *flags])


def _where_it_did_not_run(entry: ConfigurationResult | BenchmarkRow, model_file: str) -> Iterator[str]:
    if entry.status != "measured" and entry.runtime is None:
        yield _DOCTOR
    elif entry.fallback:
        yield f"{shlex.join(['evaltools', 'inspect', model_file])} says what delegates take of the model, and what not"


def _whether_it_is_sure(ranked: Sequence[BenchmarkRow]) -> Iterator[str]:
    """More rounds where the two fastest rows cannot be told apart, or the only one has no interval."""
    fastest, *others = (shown_figures(row) for row in ranked[:2])
    if fastest.is_logged or fastest.rounds >= _ENOUGH_ROUNDS:
        return
    more = f"the same command with --rounds={_ENOUGH_ROUNDS}"
    if fastest.interval is None:
        yield f"{more} says how sure the medians are"
    elif any(next_one.interval is None or next_one.interval.low <= fastest.interval.high for next_one in others):
        yield f"{more} may tell the two fastest apart, whose intervals overlap"
