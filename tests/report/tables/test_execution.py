"""What a person is told about where the time went."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.report.tables.execution import print_execution, shares_in_words, verdict
from evaltools.result.evaluation import ExecutionUsed, LatencyComparison
from evaltools.stats.interval import Interval
from tests.results import configuration, result


def used(bound: str | None = "input", workers: int = 2, quiet: int | None = 12, **seconds: Any) -> ExecutionUsed:
    facts: dict[str, Any] = {"bound": bound, "stage_seconds": seconds}
    return ExecutionUsed(workers, 9, None, 0, quiet, {}, **facts)


def printed(
    execution: ExecutionUsed | None, elapsed_s: float = 2.0, comparisons: Sequence[LatencyComparison] = ()
) -> list[str]:
    text = io.StringIO()
    found = result(configuration("a"))
    environment = replace(found.environment, elapsed_s=elapsed_s)
    whole = replace(
        found, execution=execution, environment=environment, examples_done=9, latency_comparisons=[*comparisons]
    )
    print_execution(whole, make_console(text))
    return text.getvalue().splitlines()


def test_conditions_and_shares_are_two_lines() -> None:
    assert printed(used(decode=3, inference=1)) == [
        "2 workers, 4.5 examples/s; latency was taken apart, in quiet, over 12 examples",
        "time: input 75 % (decode 75 %), inference 25 %: input-bound; more cores and workers help, and so do smaller "
        "pictures; a faster delegate would not",
    ]


@pytest.mark.parametrize(
    ("workers", "quiet", "words"),
    [
        (1, None, "1 worker, 4.5 examples/s; latency is that of all examples, one at a time"),
        (1, 3, "1 worker, 4.5 examples/s; latency was taken apart, in quiet, over 3 examples"),
        (2, None, "2 workers, 4.5 examples/s; latency is that of the pass, with all workers at once: no quiet phase"),
    ],
)
def test_it_is_said_what_the_latencies_are_of(workers: int, quiet: int | None, words: str) -> None:
    assert printed(used("inference", workers, quiet, inference=1))[0].startswith(words)


def test_nothing_is_said_where_nothing_was_run() -> None:
    assert printed(None) == []
    assert printed(used(None, quiet=None)) == []
    assert printed(used(None, quiet=None, decode=0.0, inference=0.0)) == []


def test_a_finished_run_that_is_resumed_tells_what_its_latencies_are_of() -> None:
    again = replace(used(None, quiet=5), examples_run=0)
    assert printed(again) == ["latency was taken apart, in quiet, over 5 examples"]


def test_a_lost_trace_is_warned_of() -> None:
    lines = printed(replace(used(None, quiet=None), not_traced="--trace=[t] cannot be written"))
    assert lines == ["warning: --trace=[t] cannot be written"]


def test_a_pass_that_took_no_time_has_a_rate() -> None:
    assert " examples/s" in printed(used("inference", inference=1), elapsed_s=0.0)[0]


def test_shares_stand_largest_first_and_tiny_ones_are_left_out() -> None:
    seconds: dict[str, Any] = {
        "read": 0.4,
        "decode": 30,
        "resize": 10,
        "prepare": 10,
        "inference": 45.2,
        "metrics": 4,
        "journal": 0.4,
    }
    assert shares_in_words(used(**seconds)) == (
        "input 50 % (decode 30 %, resize 10 %, prepare 10 %), inference 45 %, metrics 4 %"
    )
    assert shares_in_words(used(inference=1)) == "inference 100 %"
    assert shares_in_words(used(metrics=3, journal=1)) == "metrics 75 %, journal 25 %"


@pytest.mark.parametrize(
    ("stage", "advice"),
    [
        ("read", "the files come slowly: put them on a disk of this machine"),
        ("decode", "more cores and workers help, and so do smaller pictures"),
        ("resize", "more cores and workers help, and so do pictures stored in the size of the model's input"),
        ("prepare", "making the inputs takes longest: fewer or smaller ones help"),
    ],
)
def test_the_largest_step_of_the_input_gives_the_advice(stage: str, advice: str) -> None:
    seconds: dict[str, Any] = {
        **dict.fromkeys(("read", "decode", "resize", "prepare"), 2.0),
        "inference": 5.0,
        stage: 3.0,
    }
    assert verdict(used(**seconds)) == f"input-bound; {advice}; a faster delegate would not"


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("inference", "inference-bound; more cores and workers help"),
        ("metrics", "metrics-bound; comparing outputs takes longest"),
        ("journal", "journal-bound; writing records takes longest: put --run_dir on a faster disk"),
    ],
)
def test_every_other_bound_has_its_advice(bound: str, words: str) -> None:
    seconds: dict[str, Any] = {bound: 1.0}
    found = verdict(used(bound, decode=9.0, **seconds))
    assert found.startswith(words)
    assert "a faster delegate" not in found


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (LatencyComparison("a", "b", 9, 0.5, None), "over 12 examples"),
        (LatencyComparison("a", "b", 9, 0.5, Interval(0.4, 0.6)), "these processes, others can differ by some percent"),
        (LatencyComparison("a", "b", 9, 0.5, Interval(0.4, 0.6), 4), "for what 4 processes of each differ by"),
    ],
)
def test_it_is_said_what_the_intervals_of_speeds_are_about(comparison: LatencyComparison, words: str) -> None:
    assert printed(used("inference", inference=1), comparisons=[comparison])[0].endswith(words)
