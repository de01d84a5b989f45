"""How an evaluation was carried out: how its time was spent, and what would make it faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evaltools.report.content import first_lines, sentences, some_of
from evaltools.report.words.facts import load_in_words
from evaltools.report.words.numbers import in_seconds
from evaltools.result.execution import ExecutionUsed, ProcessMemory
from evaltools.result.result import DRIFT, Result
from evaltools.result.section import (
    Axis,
    Block,
    Cell,
    Chart,
    Lines,
    Mark,
    Note,
    Section,
    Table,
    number_cell,
)

_MOST_WORKERS: Final = 32
_MOST_PROCESSES: Final = 8
_MOST_MOMENTS: Final = 160
_SMALLEST_SHARE: Final = 0.005
_INPUT_ADVICE: Final = {
    "read": "the files come slowly: put them on a disk of this machine",
    "decode": "more cores and workers help, and so do smaller pictures",
    "resize": "more cores and workers help, and so do pictures stored in the size of the model's input",
    "prepare": "making the inputs takes longest: fewer or smaller ones help",
}
_ADVICE: Final = {
    "inference": "more cores and workers help, and so does leaving slow configurations out",
    "metrics": "comparing outputs takes longest: fewer configurations help",
    "journal": "writing records takes longest: put --run_dir on a faster disk",
}


def shares_in_words(execution: ExecutionUsed) -> str:
    """The share of each kind of work, the largest first; that of the input with its steps."""
    seconds = execution.stage_seconds
    total = sum(seconds.values())
    steps = {name: seconds.get(name, 0.0) / total for name in _INPUT_ADVICE}
    kinds = {"input": sum(steps.values()), **{name: seconds.get(name, 0.0) / total for name in _ADVICE}}
    words = []
    for kind, share in _ranked(kinds):
        of_what = ", ".join(f"{name} {100 * part:.0f} %" for name, part in _ranked(steps)) if kind == "input" else ""
        words.append(f"{kind} {100 * share:.0f} %" + (f" ({of_what})" if of_what else ""))
    return ", ".join(words)


def _ranked(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """The kinds of work by their time, the largest first; tiny ones are left out."""
    return sorted(((name, share) for name, share in shares.items() if share >= _SMALLEST_SHARE), key=lambda s: -s[1])


def _verdict(execution: ExecutionUsed) -> str:
    """The kind of work that takes most of the time, and what would make it faster; empty where none is known."""
    if execution.bound is None:
        return ""
    if execution.bound == "input":
        stage = max(_INPUT_ADVICE, key=lambda name: execution.stage_seconds.get(name, 0.0))
        return f"input-bound; {_INPUT_ADVICE[stage]}; a faster delegate would not"
    return f"{execution.bound}-bound; {_ADVICE[execution.bound]}"


def advice_in_words(result: Result, execution: ExecutionUsed) -> str:
    """What bounds the run, and which flags would make it faster."""
    return "; ".join(filter(None, (_verdict(execution), *_flags_in_words(result, execution))))


def _flags_in_words(result: Result, execution: ExecutionUsed) -> Iterator[str]:
    """Flags that would use more cores, unless others used them.

    Inputs and inference have processes of their own by worker; metrics and the journal are only this process's. More
    workers than examples have nothing to do, and runs that depend on those before them must have one. -1 thread lets
    the runtime take all cores.
    """
    cores, workers = result.environment.cpu_count, execution.workers
    asked = [row.num_threads for row in result.rows if row.status == "measured"]
    threads = max([1, *(cores if each < 0 else each for each in asked)])
    more_workers = 1 if execution.one_worker else min(cores // threads, execution.examples_run)
    can_help = any(execution.stage_seconds.values()) and not load_in_words(result.environment.load)
    if not workers or not can_help or execution.bound not in ("input", "inference"):
        return
    flags = [f"--workers={more_workers}"] if more_workers > workers else []
    if execution.bound == "inference" and cores // workers > threads:
        flags.append(f"--num_threads={cores // workers}")
    if flags:
        used = min(cores, workers * threads)
        yield f"it asked for {used} of {cores} cores: {' or '.join(flags)} asks for more"


def conditions_in_words(result: Result, execution: ExecutionUsed) -> str:
    """How many workers there were and how fast, as far as this process ran examples, and what the latencies are of.

    Empty where nothing was run.
    """
    if execution.quiet_latency_examples is None and not any(execution.stage_seconds.values()):
        return ""
    workers = f"{execution.workers} worker{'s' * (execution.workers != 1)}"
    rate = f"{execution.examples_run / max(result.environment.elapsed_s, 1e-9):.1f} examples/s"
    conditions = f"{_latency(execution)}{_processes(result)}"
    return f"{workers}, {rate}; {conditions}" if execution.examples_run else conditions


def _processes(result: Result) -> str:
    """What the intervals of speeds are about, where there are some."""
    timed = [row for row in result.rows if "latency_ratio" in row.figures and row.figures["latency_ratio"].interval]
    counts = [row.counts.get("processes", 1) for row in timed]
    if not counts:
        return ""
    if min(counts) == 1:
        return (
            "; intervals of speeds are about these processes while this was measured, others can differ by some percent"
        )
    return f"; intervals of speeds allow for what {min(counts)} processes of each differ by"


def _latency(execution: ExecutionUsed) -> str:
    if execution.quiet_latency_examples is not None:
        return f"latency was taken apart from the pass, over {execution.quiet_latency_examples} examples"
    if execution.workers > 1:
        return "latency is that of the pass, with all workers at once: no quiet phase was reached"
    return "latency is that of all examples, one at a time"


def conditions(result: Result, execution: ExecutionUsed) -> Section | None:
    """The conditions of the latencies, what rose or fell while they were taken: a part of what is said of speed."""
    lines: list[str | Note] = [*filter(None, [conditions_in_words(result, execution)])]
    if execution.startup_seconds:
        phases = ", ".join(f"{name} {in_seconds(spent)}" for name, spent in execution.startup_seconds.items())
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
    return Section("Where the time goes", blocks, "run", f"{advice}." if advice else "")


def shares(execution: ExecutionUsed) -> Chart:
    """What the work of the whole run was."""
    marks = [Mark(spent, "", name) for name, spent in execution.stage_seconds.items() if spent > 0]
    spent = ", ".join(f"{name} {in_seconds(stage_seconds)}" for name, stage_seconds in execution.stage_seconds.items())
    text = sentences(shares_in_words(execution), f"All workers together: {spent}")
    return Chart("What took the time", "shares", marks, text, Axis("share of the work of all workers"))


def _workers(execution: ExecutionUsed) -> Chart | None:
    """How the workers spent their time, side by side; None of one worker."""
    workers = {f"worker {place}": seconds for place, seconds in enumerate(execution.worker_seconds) if seconds}
    if len(workers) < 2:
        return None
    shown = dict(list(workers.items())[:_MOST_WORKERS])
    marks = [Mark(spent, name, stage) for name, seconds in shown.items() for stage, spent in seconds.items()]
    texts = [f"{name} {in_seconds(sum(seconds.values()))}" for name, seconds in workers.items()]
    text = sentences(some_of(len(shown), len(workers), "workers"))
    return Chart("Time of each worker", "bars", marks, text, Axis("seconds"), lines=first_lines(texts))


def _inference(execution: ExecutionUsed) -> Table | None:
    if not execution.inference_seconds:
        return None
    rows: list[Sequence[Cell]] = [
        [
            name,
            *(number_cell(spent, in_seconds) for spent in (each.copy, each.run, each.read_back)),
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
    text = sentences(some_of(len(shown), len(largest), "processes"))
    axes = Axis("s of the pass"), Axis("MB")
    return Chart("Memory of each process", "lines", marks, text, *axes, first_lines(texts))
