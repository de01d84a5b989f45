"""What changed from one suite to the next."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.gates.baseline import Baseline, BaselineConfiguration
from evaltools.gates.suite_diff import compare_suites
from evaltools.gates.suite_result import SuiteChange, SuiteEntry, SuiteResult, SuiteRow, read_suite
from evaltools.result.evaluation import Environment
from evaltools.result.json_file import encode_json
from evaltools.result.verdict import VerdictKind
from evaltools.stats.interval import Interval

ENVIRONMENT = Environment("0", "3", "p", "m", "c", 2, {}, "then", 1.0, [])
QUIET = [100.0, 102.0, 101.0, 99.0, 100.0, 103.0, 98.0, 100.0]


def row(verdict: VerdictKind | None = "equivalent", **facts: object) -> SuiteRow:
    base = SuiteRow("fast", "test", ["--use_xnnpack=true"], "measured", verdict=verdict, runtime="ai-edge-litert 2.3.0")
    return replace(base, **facts)


NOT_MEASURED = row(None, status="not measured", reason="it crashed")


def suite(*rows: SuiteRow, model: str = "m", **facts: object) -> SuiteResult:
    entry = SuiteEntry(model, "m.tflite", "00", "diff", [], "done", rows=list(rows))
    return SuiteResult("1", ENVIRONMENT, 1, "", [replace(entry, **facts)])


def changes(before: SuiteResult, now: SuiteResult) -> list[SuiteChange]:
    return compare_suites(before, now, "old.json").changes


def kinds(before: SuiteResult, now: SuiteResult) -> list[tuple[str, str, str]]:
    return [(change.kind, change.before, change.now) for change in changes(before, now)]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (row(), row(), []),
        (row(), row("worse"), [("worse", "equivalent", "worse")]),
        (row(), row("fp16"), [("worse", "equivalent", "fp16")]),
        (row("diverged"), row("not decided"), [("better", "diverged", "not decided")]),
        (row("fp16"), row("bf16"), [("changed", "fp16", "bf16")]),
        (row("worse"), NOT_MEASURED, [("worse", "worse", "not measured")]),
        (NOT_MEASURED, NOT_MEASURED, []),
        (NOT_MEASURED, row("worse"), [("better", "not measured", "worse")]),
        (row(), row(fallback="no GPU here"), [("worse", "equivalent", "not measured")]),
        (row(None), row(None), []),
    ],
)
def test_a_verdict_becomes_worse_or_better(
    before: SuiteRow, now: SuiteRow, expected: list[tuple[str, str, str]]
) -> None:
    assert kinds(suite(before), suite(now)) == expected


def test_a_model_that_gives_no_result_any_more_is_worse_in_each_of_its_configurations() -> None:
    now = suite(state="failed", reason="it is no model")
    assert kinds(suite(row(), row(configuration="slow")), now) == [("worse", "equivalent", "not measured")] * 2
    assert changes(suite(row()), now)[0].reason == "it is no model"
    assert kinds(now, suite(row())) == [("better", "not measured", "equivalent")]


def test_what_is_on_one_side_alone_is_new_or_lost() -> None:
    assert kinds(suite(row()), suite(row(), model="other")) == [("lost", "equivalent", ""), ("new", "", "equivalent")]
    skipped = suite(state="skipped", reason="the suite ended before it was done")
    assert kinds(suite(row()), skipped) == [("lost", "equivalent", "")]


def timed(times_us: list[float], verdict: VerdictKind = "equivalent", **facts: object) -> SuiteResult:
    configuration = BaselineConfiguration("fast", [], "litert", {"latency_ms": 0.1}, times_us=times_us)
    baseline = Baseline("1", "inference_diff", "m.tflite", "00", "0", "then", len(times_us), "same", [configuration])
    return suite(row(verdict, **{"p50_us": 100.0, **facts}), baseline=baseline)


def test_slower_is_what_takes_longer_with_all_of_its_interval() -> None:
    twice, little = [2 * time for time in QUIET], [1.05 * time for time in QUIET]
    assert [change.kind for change in changes(timed(QUIET), timed(twice))] == ["slower"]
    assert [change.kind for change in changes(timed(twice), timed(QUIET))] == ["faster"]
    assert changes(timed(QUIET), timed(little)) == []
    assert [change.kind for change in compare_suites(timed(QUIET), timed(little), "", slower=1.0).changes] == ["slower"]
    noisy = [time * (2.0 if place % 3 else 0.5) for place, time in enumerate(QUIET)]
    assert changes(timed(QUIET), timed(noisy)) == []


def test_times_of_several_runs_at_once_are_compared_with_nothing() -> None:
    busy = timed([5 * time for time in QUIET], p50_us=None)
    assert compare_suites(timed(QUIET), busy, "").timed == 0
    assert changes(timed(QUIET), busy) == []


def test_benchmarks_are_slower_where_the_intervals_are_apart() -> None:
    quick = suite(row(None, p50_us=100.0, p50_interval=Interval(95, 105)))
    slow = suite(row(None, p50_us=150.0, p50_interval=Interval(140, 160)))
    unsure = suite(row(None, p50_us=150.0, p50_interval=Interval(100, 200)))
    (change,) = changes(quick, slow)
    assert (change.kind, change.ratio) == ("slower", 1.5)
    assert change.low == pytest.approx(140 / 105)
    assert changes(quick, unsure) == []
    assert compare_suites(quick, suite(row(None, p50_us=900.0)), "").timed == 0


def accurate(top1: float, ranks: str) -> SuiteResult:
    configuration = BaselineConfiguration("fast", [], "litert", {"top1": top1}, ranks=ranks, answered=len(ranks))
    baseline = Baseline("1", "imagenet", "m.tflite", "00", "0", "then", len(ranks), "same", [configuration])
    return suite(row(accuracy=top1), baseline=baseline)


def test_accuracy_is_worse_by_the_statistics_of_baselines() -> None:
    before, lost, chance = accurate(1.0, "0" * 40), accurate(0.5, "0" * 20 + "-" * 20), accurate(0.975, "0" * 39 + "-")
    (change,) = changes(before, lost)
    assert (change.kind, change.figure, change.before, change.now) == ("worse", "top1", "1", "0.5")
    assert changes(before, chance) == []


def test_what_was_set_up_in_another_way_is_said() -> None:
    now = suite(row(flags=["--use_xnnpack=false"], runtime="ai-edge-litert 2.1.3"), model_sha256="11")
    assert compare_suites(suite(row()), now, "old.json").setup == [
        "m: another model file, with other content",
        "fast: --use_xnnpack=true then, --use_xnnpack=false now",
        "fast: ai-edge-litert 2.3.0 then, ai-edge-litert 2.1.3 now",
    ]


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    made = replace(timed(QUIET), changes=compare_suites(timed(QUIET), suite(NOT_MEASURED), "old.json"))
    (tmp_path / "s.json").write_bytes(encode_json(made))
    assert read_suite(tmp_path / "s.json") == made
    (tmp_path / "s.json").write_text('{"suite_version": "1", "entries": []}')
    with pytest.raises(DataError, match="no result of evaltools suite"):
        read_suite(tmp_path / "s.json")
