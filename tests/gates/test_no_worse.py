"""Parts of results are compared: what was measured in neither is said, and what the new one lacks is not measured."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from evaltools.gates.check import GateDecisions, earlier_parts, hold_all
from evaltools.gates.compare import compare_results, is_slower
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision
from evaltools.gates.evidence import Baseline, parts_of
from evaltools.gates.gate_file import Gate
from evaltools.metrics.interval import Interval
from evaltools.result.facts import DelegationProof, Load, Model
from evaltools.result.figure import Figure
from evaltools.result.result import ALL, Result, Row, standing_alone
from evaltools.result.verdict import GateVerdict, worst_verdict
from evaltools.suite.conclude import conclude
from tests.gates.test_compare import GOOD, NOBODY, measured
from tests.report.benchmark_samples import benchmark, row
from tests.results import earlier

MADE = measured(GOOD)


SuiteJob = tuple[Model, list[Row]]


def entry(model: str, made: Result | None = MADE, *rows: Row, reason: str = "") -> SuiteJob:
    found = list(rows) or ([] if made is None else standing_alone(made))
    failed = [Row(ALL, status="not measured", reason=reason)] if reason else []
    return replace(MADE.model, file=f"{model}.tflite"), found + failed


def suite(*entries: SuiteJob) -> Result:
    rows = [replace(row, model=place, job="job") for place, (_, rows) in enumerate(entries) for row in rows]
    return conclude(MADE.environment, [model for model, _ in entries], rows)


class Compared(NamedTuple):
    """The verdicts on a result since an earlier one."""

    reports: list[GateDecisions]

    @property
    def decisions(self) -> list[Decision]:
        return [decision for report in self.reports for decision in report.decisions]

    @property
    def verdict(self) -> GateVerdict:
        return worst_verdict(decision.verdict for decision in self.decisions)


def compared(now: Result, before: Result) -> Compared:
    then = replace(before, environment=replace(before.environment, started_at="earlier"))
    return Compared(compare_results("night", now, Baseline("old.json", then)))


def timed(us: float, name: str = "fast") -> Row:
    time = Figure(us / 1000, interval=Interval(0.99 * us / 1000, 1.01 * us / 1000))
    return Row(name, figures={"latency_ms": time}, load=Load(2, NOBODY, NOBODY))


def test_the_same_suite_again_passes() -> None:
    both = suite(entry("a"), entry("b"))
    assert compared(both, both).verdict == "pass"


def test_each_run_is_judged_by_itself() -> None:
    outcome = compared(suite(entry("a"), entry("b", measured([None] * 60 + GOOD[60:]))), suite(entry("a"), entry("b")))
    failed = {report.run for report in outcome.reports for each in report.decisions if each.verdict == "fail"}
    assert (outcome.verdict, failed) == ("fail", {"night/b/job"})


def test_what_is_not_there_any_more_is_not_measured() -> None:
    before = suite(entry("a"), entry("b"))
    for now in (suite(entry("a")), suite(entry("a"), entry("b", None, reason="no such model"))):
        outcome = compared(now, before)
        assert outcome.verdict == "not measured"
        assert {report.run for report in outcome.reports if report.decisions} == {"night/a/job", "night/b/job"}


def test_what_neither_has_measured_is_a_warning_and_nothing_else_to_compare_shows_nothing() -> None:
    broken = replace(MADE.rows[1], status="not measured", reason="no GPU")
    lost = replace(MADE, rows=[MADE.rows[0], broken])
    never = suite(entry("a", lost))
    outcome = compared(never, never)
    assert outcome.verdict == "not measured"
    (decision,) = outcome.decisions
    assert "nothing was measured in both" in decision.reason
    beside = suite(entry("a", lost), entry("b"))
    outcome = compared(beside, beside)
    assert outcome.verdict == "pass"
    assert "fast was measured in neither suite" in [text for report in outcome.reports for text in report.warnings]


def test_a_new_entry_is_a_warning() -> None:
    outcome = compared(suite(entry("a"), entry("b")), suite(entry("a")))
    assert outcome.verdict == "pass"
    assert {report.run: report.warnings for report in outcome.reports}["night/b/job"] == ("new since old.json",)


def test_benchmarks_are_slower_by_what_their_intervals_and_two_runs_do_not_explain() -> None:
    before = suite(entry("a", None, timed(1000.0)), entry("b", None, timed(1000.0)))
    for us, verdict in ((1000.0, "pass"), (1300.0, "pass"), (16_000.0, "fail")):
        outcome = compared(suite(entry("a", None, timed(us)), entry("b", None, timed(1000.0))), before)
        assert outcome.verdict == verdict
        assert is_slower(outcome.reports) == (verdict == "fail")
    for load in (None, Load(2), Load(2, 11.0, 2.0)):
        busy = suite(entry("a", None, replace(timed(1000.0), load=load)), entry("b", None, timed(1000.0)))
        assert compared(busy, before).verdict == compared(before, busy).verdict == "not measured"


def test_benchmarks_of_another_model_or_with_fewer_nodes_say_so() -> None:
    found = replace(timed(1000.0), delegation=DelegationProof(19, 19, {}))
    before = suite(entry("a", None, found))
    fewer = compared(suite(entry("a", None, replace(found, delegation=DelegationProof(19, 1, {})))), before)
    assert fewer.verdict == "fail"
    model, rows = entry("a", None, found)
    other = replace(model, sha256="ff"), rows
    warnings = [text for report in compared(suite(other), before).reports for text in report.warnings]
    assert "another model: the content of a.tflite has changed" in warnings[0]
    flags = compared(suite(entry("a", None, replace(found, flags=["--num_threads=2"]))), before)
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

    assert (verdict(0), verdict(20)) == ("fail", "inconclusive")


def test_what_gave_no_result_before_is_new() -> None:
    outcome = compared(suite(entry("a"), entry("b")), suite(entry("a"), entry("b", None, reason="no such model")))
    assert outcome.verdict == "pass"
    assert {report.run: report.warnings for report in outcome.reports}["night/b/job"] == ("new since old.json",)


def test_a_model_may_be_added_to_a_benchmark_of_one() -> None:
    one, two = benchmark(row("x", 1000)), benchmark(row("x", 1000), row("x", 3000, model=1), sizes=(1, 1))
    old, new = (replace(each, environment=replace(each.environment, load=Load(2, 0.0, 0.0))) for each in (one, two))
    old = replace(old, environment=replace(old.environment, started_at="earlier"))
    same, added = compare_results("fast", new, Baseline("old.json", old))
    assert (same.run, {each.verdict for each in same.decisions}) == ("fast/a", {"pass"})
    assert (added.run, added.warnings, added.decisions) == ("fast/b", ("new since old.json",), ())
    reports = compare_results("fast", old, Baseline("old.json", new))
    assert {report.run: report.decisions[0].verdict for report in reports} == {
        "fast/a": "pass",
        "fast/b": "not measured",
    }


def test_limits_may_be_against_the_earlier_suite() -> None:
    gate = Gate("", "", "", "*", (parse_criterion("top1 drop vs old <= 1 points"),))
    now, before = suite(entry("a"), entry("b", measured([None] * 60 + GOOD[60:]))), suite(entry("a"), entry("b"))
    reports = hold_all([gate], parts_of("night", now), earlier_parts("night", Baseline("old.json", before)))
    assert [each.decisions[0].verdict for each in reports] == ["pass", "fail"]


def test_results_of_one_kind_alone_are_compared() -> None:
    (report,) = compare_results("new", MADE, Baseline("old.json", earlier(MADE)))
    assert {each.verdict for each in report.decisions} == {"pass"}
