"""A suite is compared with an earlier one: what was measured in neither is said, and what one lacks is not measured."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from evaltools.gates.compare_suites import OldFile, compare_results, compare_suites, slower_runs
from evaltools.gates.outcome import GateOutcome
from evaltools.gates.suite_result import SUITE_VERSION, SuiteEntry, SuiteResult, SuiteRow
from evaltools.gates.suite_rows import rows_of_evaluation
from evaltools.metrics.interval import Interval
from evaltools.report.words.gates import reason_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.load import Load
from tests.gates.test_compare import GOOD, NOBODY, measured
from tests.results import earlier

MADE = measured(GOOD)


def entry(model: str, made: EvaluationResult | None = MADE, *rows: SuiteRow, reason: str = "") -> SuiteEntry:
    state: Literal["done", "failed"] = "failed" if reason else "done"
    found = list(rows) or ([] if made is None else rows_of_evaluation(made))
    return SuiteEntry(model, f"{model}.tflite", "00", "job", [], state, reason, rows=found, evaluation=made)


def suite(*entries: SuiteEntry) -> SuiteResult:
    return SuiteResult(SUITE_VERSION, MADE.environment, "", list(entries))


def compared(now: SuiteResult, before: SuiteResult) -> GateOutcome:
    return compare_suites(before, now, "old.json")


def timed(us: float, name: str = "fast") -> SuiteRow:
    interval, quiet = Interval(0.99 * us, 1.01 * us), Load(2, NOBODY, NOBODY)
    return SuiteRow(name, "test", [], "measured", p50_us=us, p50_interval=interval, load=quiet)


def test_the_same_suite_again_passes() -> None:
    both = suite(entry("a"), entry("b"))
    assert compared(both, both).verdict == "pass"


def test_each_run_is_judged_by_itself() -> None:
    outcome = compared(suite(entry("a"), entry("b", measured([None] * 60 + GOOD[60:]))), suite(entry("a"), entry("b")))
    failed = {report.run for report in outcome.reports for each in report.decisions if each.verdict == "fail"}
    assert (outcome.verdict, failed) == ("fail", {"b, job"})


def test_what_is_not_there_any_more_is_not_measured() -> None:
    before = suite(entry("a"), entry("b"))
    for now in (suite(entry("a")), suite(entry("a"), entry("b", None, reason="no such model"))):
        outcome = compared(now, before)
        assert outcome.verdict == "not measured"
        assert {report.run for report in outcome.reports if report.decisions} == {"a, job", "b, job"}


def test_what_neither_has_measured_is_a_warning_and_nothing_else_to_compare_shows_nothing() -> None:
    broken = replace(MADE.configurations[1], status="not measured", reason="no GPU")
    lost = replace(MADE, configurations=[MADE.configurations[0], broken])
    never = suite(entry("a", lost))
    outcome = compared(never, never)
    assert outcome.verdict == "not measured"
    (decision,) = outcome.decisions
    assert "nothing was measured in both" in reason_in_words(decision)
    beside = suite(entry("a", lost), entry("b"))
    outcome = compared(beside, beside)
    assert outcome.verdict == "pass"
    assert "fast was measured in neither suite" in [text for report in outcome.reports for text in report.warnings]


def test_a_new_entry_is_a_warning() -> None:
    outcome = compared(suite(entry("a"), entry("b")), suite(entry("a")))
    assert outcome.verdict == "pass"
    assert "b, job: new since old.json" in [text for report in outcome.reports for text in report.warnings]


def test_benchmarks_are_slower_by_what_their_intervals_and_two_runs_do_not_explain() -> None:
    before = suite(entry("a", None, timed(1000.0)), entry("b", None, timed(1000.0)))
    for us, verdict in ((1000.0, "pass"), (1300.0, "pass"), (16_000.0, "fail")):
        outcome = compared(suite(entry("a", None, timed(us)), entry("b", None, timed(1000.0))), before)
        assert outcome.verdict == verdict
        assert slower_runs(outcome.reports) == (["a, job"] if verdict == "fail" else [])
    for load in (None, Load(2), Load(2, 11.0, 2.0)):
        busy = suite(entry("a", None, replace(timed(1000.0), load=load)), entry("b", None, timed(1000.0)))
        assert compared(busy, before).verdict == compared(before, busy).verdict == "not measured"


def test_benchmarks_of_another_model_or_with_fewer_nodes_say_so() -> None:
    row = replace(timed(1000.0), delegated_nodes=19, total_nodes=19)
    before = suite(entry("a", None, row))
    fewer = compared(suite(entry("a", None, replace(row, delegated_nodes=1))), before)
    assert fewer.verdict == "fail"
    other = replace(entry("a", None, row), model_sha256="ff")
    warnings = [text for report in compared(suite(other), before).reports for text in report.warnings]
    assert warnings == ["another model: the content of a.tflite has changed"]
    flags = compared(suite(entry("a", None, replace(row, flags=["--num_threads=2"]))), before)
    assert "--num_threads=2 now" in flags.reports[0].warnings[0]


def test_what_failed_in_both_is_a_warning() -> None:
    broken = entry("b", None, reason="no such model")
    outcome = compared(suite(entry("a"), broken), suite(entry("a"), broken))
    assert outcome.verdict == "pass"
    assert "it was measured in neither: no such model" in [w for report in outcome.reports for w in report.warnings]


def test_the_more_is_compared_the_more_a_single_one_must_show() -> None:
    def verdict(others: int) -> str:
        before = suite(*(entry(str(place)) for place in range(others + 1)))
        worse = entry("0", measured([None] * 8 + GOOD[8:]))
        return compared(suite(worse, *(entry(str(place)) for place in range(1, others + 1))), before).verdict

    assert (verdict(0), verdict(40)) == ("fail", "inconclusive")


def test_results_of_one_kind_alone_are_compared() -> None:
    (report,) = compare_results("new", MADE, OldFile("old.json", earlier(MADE)))
    assert {each.verdict for each in report.decisions} == {"pass"}
