"""A result is compared with an earlier one: what is not the same is said, what was not measured twice shows nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.gates.check import GateDecisions, hold_all
from evaltools.gates.compare import hold_against_old, slowdown
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision, decide
from evaltools.gates.evidence import Allowed, Baseline, Evidence
from evaltools.gates.gate_file import Gate
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio, summarise_latency
from evaltools.result.facts import Load, Model, Tensor
from evaltools.result.result import SHARD, Result, Row
from evaltools.result.verdict import worst_verdict
from tests.results import configuration, of_ranks, part, result, result_with, row_with

NOBODY = 0.0
"""Cores that other programs use."""


def entry(name: str, us: float = 1000.0, role: str = "test") -> Row:
    latency = summarise_latency([us] * 30)
    return row_with(configuration(name, role), latency=latency, examples=200, failed_examples=0)


def measured(
    ranks: Sequence[int | None], us: float = 1000.0, others: float | None = NOBODY, recorded: bool = True
) -> Result:
    """Of 200 examples; ``ranks`` are those of the right label for the configuration ``fast``."""
    both = entry("reference", role="reference"), entry("fast", us)
    answered = {"reference": of_ranks([0] * len(ranks), 2, recorded), "fast": of_ranks(ranks, 2, recorded)}
    made = result(*both, answered=answered)
    load = None if others is None else Load(made.environment.cpu_count, others, others)
    return replace(
        made,
        examples_done=len(ranks),
        example_count=len(ranks),
        given=made.given | {"pictures": "pictures"},
        environment=replace(made.environment, load=load),
        rows=[row_with(each, examples=len(ranks), load=load) for each in made.rows],
        failed=[],
    )


GOOD = [0] * 180 + [None] * 20


def compared(new: Result, old: Result, other_examples: bool = False) -> GateDecisions:
    return hold_against_old("new", part(new), Baseline("old.json", part(old), other_examples))


def of_accuracy(report: GateDecisions) -> Decision:
    (found,) = [each for each in report.decisions if each.limit.startswith(("top1", "no worse"))]
    return found


def of_latency(report: GateDecisions) -> Decision:
    (found,) = [each for each in report.decisions if "slowdown" in each.limit]
    return found


def test_the_same_answers_again_pass_however_few_examples_there_are() -> None:
    made = measured(GOOD)
    report = compared(result_with(made, warnings=["later"]), made)
    assert {each.verdict for each in report.decisions} == {"pass"}
    assert {each.examples for each in report.decisions} == {200}
    assert not [warning for warning in report.warnings if warning.startswith("since")]


@pytest.mark.parametrize("lost", [0, 1])
def test_answers_that_were_not_recorded_are_not_taken_for_the_same(lost: int) -> None:
    """One lost and one gained of 69 is as many right as before."""
    old = [0] * 60 + [None] * 9
    new = [None] * lost + [0] * (60 - lost) + [0] * lost + [None] * (9 - lost)
    found = of_accuracy(compared(measured(new, recorded=False), measured(old, recorded=False)))
    assert found.found is not None
    assert (found.found.value, found.verdict) == (0.0, "inconclusive")
    assert of_accuracy(compared(measured(new), measured(old))).verdict == ("inconclusive" if lost else "pass")


def test_no_decision_passes_with_an_interval_beyond_its_limit() -> None:
    unchanged = of_accuracy(compared(result_with(measured(GOOD), warnings=["later"]), measured(GOOD)))
    assert unchanged.found is not None
    assert (unchanged.verdict, unchanged.found.low, unchanged.found.high) == ("pass", None, None)
    for us in (1000.0, 2500.0, 4126.0):
        for others in (0.0, 1.5):
            for before in (0.0, 1.9):
                found = of_latency(compared(measured(GOOD, us, others), measured(GOOD, others=before)))
                assert found.found is not None
                assert found.found.high is not None
                assert found.verdict != "pass" or found.found.high <= 4


def test_another_model_with_the_same_answers_is_decided_by_their_number() -> None:
    made = measured(GOOD)
    other = replace(made, models=[replace(made.model, sha256="ff")])
    assert of_accuracy(compared(other, made)).verdict == "inconclusive"


def test_a_result_without_configurations_or_times_is_said() -> None:
    made = measured(GOOD)
    (nothing,) = compared(replace(made, rows=[]), made).decisions
    assert nothing.verdict == "not measured"
    untimed = [row_with(each, latency=None) for each in made.rows]
    report = compared(replace(made, rows=untimed), made)
    assert "not compared: times of fast, as not both have them" in report.warnings
    unknown = [replace(each, delegation=None) for each in made.rows]
    assert (
        worst_verdict(each.verdict for each in compared(replace(made, rows=unknown), made).decisions) == "not measured"
    )


@pytest.mark.parametrize(
    ("lost", "verdict"), [(0, "pass"), (1, "inconclusive"), (4, "inconclusive"), (20, "fail"), (180, "fail")]
)
def test_lost_pictures_are_told_from_chance(lost: int, verdict: str) -> None:
    worse = [None] * lost + GOOD[lost:]
    assert of_accuracy(compared(measured(worse), measured(GOOD))).verdict == verdict


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pictures": "others"}, "pictures: pictures then, others now"),
        ({"ground truth": "ff"}, "ground truth: 00 then, ff now"),
        ({"labels of the model": "ff"}, "labels of the model: 00 then, ff now"),
        ({"normalization": "symmetric"}, "normalization: native then, symmetric now"),
        ({"examples_done": 3}, "examples: 200 then, 3 now"),
    ],
)
def test_other_inputs_are_not_measured_unless_that_is_allowed(change: dict[str, str], said: str) -> None:
    old, new = measured(GOOD), measured(GOOD)
    new = replace(new, **change) if "examples_done" in change else replace(new, given={**new.given, **change})
    report = compared(new, old)
    assert {each.verdict for each in report.decisions} == {"not measured"}
    assert said in report.decisions[0].reason
    assert f"since old.json: {said}" in report.warnings
    allowed = compared(new, old, other_examples=True)
    assert of_accuracy(allowed).verdict == "inconclusive"
    assert f"since old.json: {said}" in allowed.warnings


def test_three_pictures_against_two_hundred_decide_nothing_and_many_do() -> None:
    three, many, few = measured([0, 0, 0]), measured(GOOD), measured([0] * 60 + [None] * 140)
    assert of_accuracy(compared(three, many, other_examples=True)).verdict == "inconclusive"
    assert (
        of_accuracy(compared(replace(few, given=few.given | {"pictures": "x"}), many, other_examples=True)).verdict
        == "fail"
    )


def test_a_configuration_that_one_of_the_two_lacks_is_not_measured() -> None:
    made = measured(GOOD)
    renamed = replace(made, rows=[made.rows[0], replace(made.rows[1], name="other")])
    report = compared(renamed, made)
    assert [(each.configuration, each.verdict) for each in report.decisions] == [
        ("other", "not measured"),
        ("fast", "not measured"),
    ]
    assert "it has reference, fast" in report.decisions[0].reason
    assert "measure it too" in report.decisions[1].reason


def shard(made: Result) -> Result:
    return replace(made, given=made.given | {SHARD: "1/20"})


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (shard(measured(GOOD)), "only shard 1/20"),
        (replace(measured(GOOD), complete=False, stopped="interrupted"), "interrupted"),
    ],
)
def test_an_earlier_result_that_is_not_whole_is_no_baseline(broken: Result, why: str) -> None:
    (decision,) = compared(measured(GOOD), broken).decisions
    assert decision.verdict == "not measured"
    assert decision.reason.startswith("the earlier result: ")
    assert why in decision.reason


def test_another_model_of_the_same_name_is_said_first_with_what_changed_in_it() -> None:
    tensor = Tensor("scores", "int8", [1, 4], 0.5, 3)
    before, now = (replace(tensor, scale=scale) for scale in (0.5, 0.25))
    models = [
        Model("m.tflite", "00", 900, 10, [], [before], {"CONV_2D": 4, "ADD": 1}),
        Model("m.tflite", "ff", 950, 12, [], [now], {"CONV_2D": 6}),
    ]
    old, new = (replace(measured(GOOD), models=[model]) for model in models)
    report = compared(new, old)
    assert report.warnings[0].startswith("since old.json: another model: the content of m.tflite has changed")
    for said in ("900 bytes then, 950 now", "CONV_2D: 4 then, 6 now", "ADD: 1 then, 0 now", "scale 0.25"):
        assert said in report.warnings[0]
    assert not [each for each in report.decisions if "nodes" in each.limit]


@pytest.mark.parametrize(
    ("us", "others", "verdict"),
    [
        (1000.0, NOBODY, "pass"),
        (1300.0, NOBODY, "pass"),
        (1600.0, NOBODY, "pass"),
        (2000.0, NOBODY, "fail"),
        (16_000.0, NOBODY, "fail"),
        (16_000.0, 1.5, "fail"),
        (3_000.0, 1.5, "inconclusive"),
        (4_126.0, 1.8, "inconclusive"),
        (1000.0, 11.0, "not measured"),
        (1000.0, None, "not measured"),
    ],
)
def test_slower_is_what_neither_two_runs_nor_other_programs_explain(
    us: float, others: float | None, verdict: str
) -> None:
    new, old = measured(GOOD, us, others), measured(GOOD)
    found = of_latency(compared(new, old))
    assert found.verdict == verdict
    assert found.found is None or found.found.value == us / 1000
    stated = Gate("", "", "", "*", (parse_criterion("latency_ratio vs old <= 4"),))
    (explicit,) = hold_all([stated], {"new": part(new)}, {"new": Baseline("old.json", part(old))})
    by_hand = explicit.decisions[0].verdict
    assert verdict != "pass" or by_hand == "pass"
    assert (verdict == "not measured") == (by_hand == "not measured")


def test_an_earlier_result_of_a_busy_machine_shows_no_slowdown_unless_that_is_allowed() -> None:
    new, old = measured(GOOD, 4_126.0), measured(GOOD, others=11.0)
    found = of_latency(compared(new, old))
    assert found.verdict == "not measured"
    assert found.reason.startswith("the earlier result: the machine was busy, 11 other processes on 2 cores")
    allowed = Baseline("old.json", part(old), allowed=Allowed(load=math.inf))
    assert of_latency(hold_against_old("new", part(new), allowed)).verdict == "fail"


@pytest.mark.parametrize(("tests", "verdict"), [(1, "fail"), (5, "fail"), (6, "pass"), (20, "pass")])
def test_of_several_that_are_compared_each_is_slower_only_with_more_confidence(tests: int, verdict: str) -> None:
    """1.3 times as long, with a deviation of the logarithm that leaves 1 of 110 such ratios below 1.1."""
    reach = stats.norm.ppf(0.975) * math.log(1.3 / 1.1) / stats.norm.isf(1 / 110)
    times = LatencyRatio(30, 1.3, Interval(1.3 * math.exp(-reach), 1.3 * math.exp(reach)))
    since = Evidence("fast", old=Evidence("fast", ratio=times))
    assert decide(slowdown(), since, tests).verdict == verdict


def test_a_reference_that_became_slower_is_the_machine() -> None:
    old = measured(GOOD)
    slow = [row_with(old.rows[0], latency=summarise_latency([90_000.0] * 30))]
    report = compared(replace(old, rows=[*slow, old.rows[1]]), old)
    assert worst_verdict(each.verdict for each in report.decisions) == "pass"


@pytest.mark.parametrize(
    ("limit", "verdict"),
    [
        ("latency_ratio vs old <= 1.1", "inconclusive"),
        ("latency_ratio vs old <= 2", "pass"),
        ("latency_ratio vs old <= 0.5", "fail"),
        ("top1 drop vs old <= 10 points at 95 %", "pass"),
        ("top1 drop vs old <= 0.5 points", "fail"),
    ],
)
def test_limits_may_be_against_the_earlier_result(limit: str, verdict: str) -> None:
    gate = Gate("", "", "", "*", (parse_criterion(limit),))
    new, old = measured([None] * 2 + GOOD[2:]), measured(GOOD)
    (report,) = hold_all([gate], {"new": part(new)}, {"new": Baseline("old.json", part(old))})
    assert [each.verdict for each in report.decisions] == [verdict]
    (alone,) = hold_all([gate], {"new": part(new)})
    assert [each.verdict for each in alone.decisions] == ["not measured"]
    assert "--against=OLD.json" in alone.decisions[0].reason


def test_a_reference_that_became_worse_is_never_green() -> None:
    """Against it every drop looks smaller."""
    made, bad = measured(GOOD), measured([0] * 100 + [None] * 100)
    worse = replace(bad.rows[1], name="reference", role="reference")
    report = compared(replace(made, rows=[worse, made.rows[1]]), made)
    assert [each.configuration for each in report.decisions if each.verdict == "fail"] == ["reference"]
    assert "reference" not in {each.configuration for each in compared(made, made).decisions}


@pytest.mark.parametrize(("limit", "found"), [("1.1", "inconclusive"), ("1.5", "inconclusive"), ("1.6", "pass")])
def test_a_limit_that_two_runs_do_not_decide_says_which_they_do(limit: str, found: str) -> None:
    made = measured(GOOD)
    earlier = {"run": Baseline("old.json", part(made))}
    gate = Gate("", "", "", "fast", (parse_criterion(f"latency_ratio vs old <= {limit}"),))
    [report] = hold_all([gate], {"run": part(made)}, earlier)
    [decision] = report.decisions
    assert decision.verdict == found
    assert found == "pass" or "decide limits from 1.53 on if both are as fast" in decision.reason
