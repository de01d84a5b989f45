"""Seconds and memory that it takes to sum up a finished ImageNet run from its journal.

``python -m benchmarks summarise [--examples=50000 --configurations=3 --rounds=3]``

A journal with made-up records, as a run of so many pictures and configurations leaves it. In a process of its own: what
was finished (``settle``), then all figures of the result. Memory is the largest that the process had.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution
from evaltools.engine.facts import PassFacts
from evaltools.engine.journal import open_journal, read_journal
from evaltools.engine.ledger import PassOutcome, settle
from evaltools.engine.opening import NotMeasured, Role, comparison_pairs, describe_entry
from evaltools.engine.records import Records
from evaltools.engine.steps import Record, Steps
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.result.result import Row
from evaltools.runs.conclude import latency_ratios, sum_up, with_sums
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun
from evaltools.tasks.framework.definition import Example, topk
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.topk import conclude

PARAMETERS = (
    Parameter("examples", "Pictures of the run.", default=50_000),
    Parameter("configurations", "Configurations of the run, the first of them the reference.", default=3),
    Parameter("rounds", "Rounds.", default=3),
    Parameter("journal", "For the benchmark's own process: the folder of the journal to sum up."),
)
CLASSES: Final = 1000
TOP_K: Final = 10
_ANSWER: Final = ObservedScores[np.ndarray[Any, Any]]


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("summarise", "", "", {"flags": PARAMETERS}, arguments)
    examples = flags.number("examples")
    names = ["reference", *(f"test {number}" for number in range(1, flags.number("configurations")))]
    folder = flags.path("journal")
    if folder is not None:
        print(*measured(folder, examples, names))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        write_journal(Path(temporary), examples, names)
        command = [sys.executable, "-m", "benchmarks", "summarise", *arguments, f"--journal={temporary}"]
        found = []
        for _ in range(flags.number("rounds")):
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found.append([float(text) for text in done.stdout.split()])
    settling, summing, before, peak = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"{examples} examples, {len(names)} configurations, median of {flags.number('rounds')} rounds")
    print(f"what was finished {settling:6.2f} s   figures {summing:6.2f} s")
    print(f"memory before {before:6.1f} MB   largest {peak:6.1f} MB")
    return 0


def write_journal(folder: Path, examples: int, names: list[str]) -> None:
    """Records as real classifiers give them: about 70 % right, tests that mostly answer like the reference."""
    chance = np.random.default_rng(0)
    journal = open_journal(folder)
    for example in range(examples):
        observation = observed(chance)
        records = []
        for name in names:
            if chance.random() < 0.05:
                observation = observed(chance)
            invoke_us = 4000 + int(chance.integers(2000))
            records.append(Record(example, name, (invoke_us,), observation, None, 5, 2000))
        journal.add(records)
    journal.flush()
    journal.close()


def observed(chance: np.random.Generator) -> ObservedScores[Any]:
    """The answer to one picture."""
    rank = int(chance.geometric(0.7)) - 1
    scores = np.sort(chance.random(TOP_K))[::-1].tolist()
    classes = chance.choice(CLASSES, TOP_K, replace=False).tolist()
    return ObservedScores(whole=np.array([rank if rank < TOP_K else -1, 0, scores[0], *classes, *scores]))


def measured(folder: Path, examples: int, names: list[str]) -> tuple[float, float, float, float]:
    """Seconds of settling and of the figures; MB that the process had before, and at most."""
    before = peak_memory_mb()
    start = time.perf_counter()
    outcome = settled(folder, examples, names)
    then = time.perf_counter()
    configurations, run, _ = figures(outcome, names)
    latency_ratios(run.times, run.pairs)
    end = time.perf_counter()
    assert [entry.finished_examples for entry in configurations] == [examples] * len(names)
    return then - start, end - then, before, peak_memory_mb()


def settled(folder: Path, examples: int, names: list[str]) -> PassOutcome[ObservedScores[Any]]:
    """What the journal of a finished run holds."""
    steps = recorded_steps(examples)
    records = Records([(read_journal(folder), "")], examples, steps.observation_type)
    return settle(steps, names, records, names[0], Execution())


def figures(
    outcome: PassOutcome[ObservedScores[Any]], names: list[str], keeps_examples: bool = False, pictures: str = ""
) -> tuple[list[Row], RecordsOfRun, Concluded]:
    """The configurations with their counts, all records, and what the answers say."""
    described = [
        replace(describe_entry(NotMeasured(Configuration(name), ""), role_of(name)), status="measured", reason="")
        for name in names
    ]
    sums = sum_up(outcome)
    run = RecordsOfRun(
        examples=[Example(name, None, "0") for name in outcome.names],
        outcome=outcome,
        measured=names,
        pairs=comparison_pairs(described),
        times={name: own.times for name, own in sums.items()},
        keeps_examples=keeps_examples,
        pictures=pictures,
    )
    configurations = with_sums(described, sums, outcome, PassFacts())
    metric = topk([str(number) for number in range(CLASSES)], TOP_K)
    return configurations, run, conclude(metric, run, configurations)


def role_of(name: str) -> Role:
    """The first configuration is the reference."""
    return "reference" if name == "reference" else "test"


def peak_memory_mb() -> float:
    """The largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def recorded_steps(examples: int) -> Steps[ObservedScores[Any]]:
    """The steps of a run whose examples are all in the journal."""
    names = [f"ILSVRC2012_val_{index:08d}.JPEG" for index in range(examples)]
    return Steps(names, _not_run, _not_run, _ANSWER)


def _not_run(*_given: Any) -> Any:
    raise NotImplementedError
