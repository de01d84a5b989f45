"""How an evaluation was carried out, in words: how its time was spent, and what would make it faster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evaltools.report.words.facts import load_in_words
from evaltools.result.execution import ExecutionUsed
from evaltools.result.result import Result

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
        return "; intervals of speeds are about these processes, others can differ by some percent"
    return f"; intervals of speeds allow for what {min(counts)} processes of each differ by"


def _latency(execution: ExecutionUsed) -> str:
    if execution.quiet_latency_examples is not None:
        return f"latency was taken apart from the pass, over {execution.quiet_latency_examples} examples"
    if execution.workers > 1:
        return "latency is that of the pass, with all workers at once: no quiet phase was reached"
    return "latency is that of all examples, one at a time"
