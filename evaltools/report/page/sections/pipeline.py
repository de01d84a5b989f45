"""Where the time of an evaluation went, which flags would save some of it, and the memory of its processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.page.charts.shares import colours_of, shares_chart
from evaltools.report.page.charts.times import bars_chart, over_time_chart
from evaltools.report.page.content.page import first_few, sentences, some_of
from evaltools.report.tables.execution import advice_in_words, shares_in_words
from evaltools.result.evaluation import EvaluationResult, ExecutionUsed, ProcessMemory
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table, path_to

_MOST_WORKERS: Final = 32
_MOST_PROCESSES: Final = 8


def pipeline(result: EvaluationResult) -> Section | None:
    """Stages, workers, parts of inference, memory over time; None where the result does not say where time went."""
    execution = result.execution
    if execution is None or not any(execution.stage_seconds.values()):
        return None
    found = (
        _stages(execution),
        _workers(execution),
        _inference(execution),
        _memory(execution.memory),
    )
    blocks: list[Block] = [block for block in found if block is not None]
    advice = advice_in_words(result, execution)
    return Section("Where the time goes", blocks, lead=f"{advice}." if advice else "")


def _stages(execution: ExecutionUsed) -> Chart:
    seconds = ", ".join(f"{name} {spent:.3g} s" for name, spent in execution.stage_seconds.items())
    spec = bars_chart(execution.stage_seconds, "seconds of all workers")
    return Chart("Time by stage of the run", spec, f"{seconds}: {shares_in_words(execution)}.")


def _workers(execution: ExecutionUsed) -> Chart | None:
    """How the workers spent their time, side by side; None of one worker."""
    workers = {f"worker {place}": seconds for place, seconds in enumerate(execution.worker_seconds) if seconds}
    if len(workers) < 2:
        return None
    stages = list(dict.fromkeys(stage for seconds in workers.values() for stage in seconds))
    shown = dict(list(workers.items())[:_MOST_WORKERS])
    spec = shares_chart(shown, colours_of(stages), "seconds")
    told = [f"{name} {sum(seconds.values()):.3g} s" for name, seconds in workers.items()]
    said = sentences(first_few(told), some_of(len(shown), len(workers), "workers"))
    return Chart("Time of each worker", spec, said)


def _inference(execution: ExecutionUsed) -> Table | None:
    if not execution.inference_seconds:
        return None
    rows: list[Sequence[Cell]] = [
        [
            name,
            *(
                Number(f"{spent:.3g} s", spent, path_to("execution", "inference_seconds", name, part))
                for part, spent in (("copy", each.copy), ("run", each.run), ("read_back", each.read_back))
            ),
        ]
        for name, each in execution.inference_seconds.items()
    ]
    below = "Copy: inputs and outputs between processes and into the model, waiting, and opening by further workers."
    return Table("Time of inference, of all workers", ("configuration", "copy", "run", "read back"), rows, below)


def _memory(processes: Sequence[ProcessMemory]) -> Chart | None:
    """The processes with the most memory over the time of the pass; None where it was looked at once."""
    largest = sorted((each for each in processes if len(each.mb) > 1), key=lambda each: -max(each.mb))
    if not largest:
        return None
    lines = {each.name: list(zip(each.seconds, each.mb, strict=True)) for each in largest[:_MOST_PROCESSES]}
    told = [f"{each.name}: {max(each.mb):.0f} MB at most, {each.mb[-1]:.0f} at the end" for each in largest]
    said = sentences(first_few(told), some_of(len(lines), len(largest), "processes"))
    return Chart("Memory of each process", over_time_chart(lines, "s of the pass", "MB"), said)
