"""How a result came about: command, machine and software, what failed, where the time went."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.words.execution import advice_in_words, conditions_in_words, shares_in_words
from evaltools.result.execution import ExecutionUsed, ProcessMemory
from evaltools.result.facts import Environment, FailedExample
from evaltools.result.result import DRIFT, Result
from evaltools.result.section import (
    Axis,
    Block,
    Cell,
    Chart,
    Files,
    Lines,
    Linked,
    Mark,
    Note,
    Section,
    Table,
    number_cell,
)

_MOST_FAILED: Final = 10
_WRITTEN: Final = (
    "--output",
    "--plot=",
    "--bundle=",
    "--run_dir=",
    "--save_outputs=",
)
"""The beginnings of flags that name files with more."""
_OPENED_BY: Final = "ui.perfetto.dev (open trace file) and chrome://tracing show it"
_MOST_WORKERS: Final = 32
_MOST_PROCESSES: Final = 8
_MOST_MOMENTS: Final = 160


def origin(environment: Environment, failed: Sequence[FailedExample] | None = None) -> Section:
    """The command as typed, the trace, and the first few examples that failed; None where there are no examples."""
    packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    rows: list[Sequence[Cell]] = [
        ("command", shlex.join(environment.command) if environment.command else "from Python"),
        ("evaltools", environment.evaltools),
        ("Python", environment.python),
        ("packages", packages),
        ("system", environment.platform),
        ("processor", f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"),
        ("started", environment.started_at),
        ("took", f"{environment.elapsed_s:.1f} s"),
    ]
    written = [word for word in environment.command if word.startswith(_WRITTEN)]
    if written:
        rows.insert(1, ("files", ", ".join(written)))
    shows = "every read, decode, run and write" if failed is not None else "loading, runs, memory, operators"
    blocks: list[Block] = [Table("As it was run", (), rows), *_traces(environment.trace, shows)]
    if failed:
        shown = [(each.example, each.configuration or "all", each.stage, each.reason) for each in failed[:_MOST_FAILED]]
        below = some_of(len(shown), len(failed), "examples")
        blocks.append(
            Table("Examples without an answer", ("example", "configuration", "stage", "reason"), shown, below)
        )
    return Section("Command and environment", blocks, place="run")


def _traces(name: str, shows: str) -> list[Block]:
    """A link to the trace of a run; nothing where none was written."""
    return [Files("Trace", [Linked(name, f"{shows}; {_OPENED_BY}")])] if name else []


def conditions(result: Result, execution: ExecutionUsed) -> Section | None:
    """The conditions of the latencies, what rose or fell while they were taken: a part of what is said of speed."""
    lines: list[str | Note] = [*filter(None, [conditions_in_words(result, execution)])]
    if execution.startup_seconds:
        phases = ", ".join(f"{name} {spent:.2g} s" for name, spent in execution.startup_seconds.items())
        lines.append(f"until the first example was finished: {phases}")
    lines += [Note(row.name, row.texts[DRIFT], "open") for row in result.rows if DRIFT in row.texts]
    return Section("", [Lines(lines)], "speed") if lines else None


def pipeline(result: Result, execution: ExecutionUsed) -> Section | None:
    """Stages, workers, parts of inference, memory over time; None where it is not known where time went."""
    if not any(execution.stage_seconds.values()):
        return None
    found = (
        shares(execution),
        _workers(execution),
        _inference(execution),
        _memory(execution.memory),
    )
    blocks: list[Block] = [block for block in found if block is not None]
    advice = advice_in_words(result, execution)
    return Section("Where the time goes", blocks, "speed", f"{advice}." if advice else "")


def shares(execution: ExecutionUsed) -> Chart:
    """What the work of the whole run was."""
    marks = [Mark(spent, "", name) for name, spent in execution.stage_seconds.items() if spent > 0]
    spent = ", ".join(f"{name} {stage_seconds:.3g} s" for name, stage_seconds in execution.stage_seconds.items())
    text = sentences(shares_in_words(execution), f"All workers together: {spent}")
    return Chart("What took the time", "shares", marks, text, Axis("share of the work of all workers"))


def _workers(execution: ExecutionUsed) -> Chart | None:
    """How the workers spent their time, side by side; None of one worker."""
    workers = {f"worker {place}": seconds for place, seconds in enumerate(execution.worker_seconds) if seconds}
    if len(workers) < 2:
        return None
    shown = dict(list(workers.items())[:_MOST_WORKERS])
    marks = [Mark(spent, name, stage) for name, seconds in shown.items() for stage, spent in seconds.items()]
    texts = [f"{name} {sum(seconds.values()):.3g} s" for name, seconds in workers.items()]
    text = sentences(first_few(texts), some_of(len(shown), len(workers), "workers"))
    return Chart("Time of each worker", "bars", marks, text, Axis("seconds"))


def _inference(execution: ExecutionUsed) -> Table | None:
    if not execution.inference_seconds:
        return None
    rows: list[Sequence[Cell]] = [
        [
            name,
            *(number_cell(spent, "{:.3g} s".format) for spent in (each.copy, each.run, each.read_back)),
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
    shown = largest[:_MOST_PROCESSES]
    step = -(-max(len(each.mb) for each in shown) // _MOST_MOMENTS)
    marks = [
        Mark(second, mb, each.name)
        for each in shown
        for second, mb in list(zip(each.seconds, each.mb, strict=True))[::step]
    ]
    texts = [f"{each.name}: {max(each.mb):.0f} MB at most, {each.mb[-1]:.0f} at the end" for each in largest]
    text = sentences(first_few(texts), some_of(len(shown), len(largest), "processes"))
    return Chart("Memory of each process", "lines", marks, text, Axis("s of the pass"), Axis("MB"))
