"""Limits on what changed since a baseline."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.gates.baseline import Baseline, make_baseline
from evaltools.gates.baseline_limits import hold_limits
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision
from evaltools.report.words.gates import decision_in_words, found_in_words
from evaltools.stats.latency import latency_ratio
from tests.results import configuration, result

NOW = result(configuration("reference", "reference"), configuration("test"))


def changed(**facts: object) -> Baseline:
    """The baseline of the same result with other facts of both configurations."""
    made = make_baseline(NOW)
    entries = [
        replace(entry, **{k: entry.figures | v if k == "figures" else v for k, v in facts.items()})  # type: ignore
        for entry in made.configurations
    ]
    return replace(made, configurations=entries)


def held(text: str, before: Baseline, now: Baseline | None = None) -> Decision:
    (decision,) = hold_limits([parse_criterion(text, against_baseline=True)], before, now or make_baseline(NOW), NOW)
    return decision


def test_a_ratio_of_times_on_the_same_examples_has_its_interval() -> None:
    chance = np.random.default_rng(4)
    then = (100 + chance.random(50)).tolist()
    later = (125 + chance.random(50)).tolist()
    found = latency_ratio(then, later)
    assert found is not None
    assert found.interval is not None
    for text, verdict in (("latency ratio <= 1.2", "fail"), ("latency ratio <= 1.3 at 95 %", "pass")):
        decision = held(text, changed(times_us=then), changed(times_us=later))
        assert (decision.configuration, decision.verdict) == ("test", verdict)
        assert found_in_words(decision.found) == (
            f"latency ratio of these processes {found.ratio:.4g} [{found.interval.low:.4g}, {found.interval.high:.4g}]"
        )


def test_without_single_times_the_ratio_is_that_of_medians_and_says_so() -> None:
    before = changed(figures={"latency_ms": 4.0})
    now = changed(figures={"latency_ms": 5.0})
    assert decision_in_words(held("latency ratio <= 1.2", before, now)) == (
        "test: latency ratio <= 1.2: fail: latency ratio of medians 1.25"
    )
    unknown = held("latency ratio <= 1.5 at 95 %", before, now)
    assert unknown.verdict == "not measured"
    assert "only the medians of both are known" in decision_in_words(unknown)
    other_examples = replace(changed(times_us=[1.0] * 9, figures={"latency_ms": 4.0}), examples_sha256="other")
    later = changed(times_us=[2.0] * 9, figures={"latency_ms": 5.0})
    assert found_in_words(held("latency ratio <= 2", other_examples, later).found) == "latency ratio of medians 1.25"


def test_a_drop_is_against_the_baseline_by_flips_where_examples_are_known() -> None:
    before = changed(figures={"top1": 0.9}, ranks="0" * 180 + "-" * 20)
    now = changed(figures={"top1": 0.8}, ranks="0" * 160 + "-" * 40)
    decision = held("top1 drop <= 1 point at 95 %", before, now)
    assert decision.verdict == "fail"
    assert found_in_words(decision.found).startswith("top1 drop 10 points [")
    plain = held("top1 drop <= 1 point", changed(figures={"top1": 0.9}), changed(figures={"top1": 0.8}))
    assert (plain.verdict, found_in_words(plain.found)) == ("fail", "top1 drop 10 points")
    assert held("top1 drop <= 1 point at 95 %", changed(figures={"top1": 0.9})).verdict == "not measured"


def test_agreement_may_be_limited_by_itself_and_by_its_drop() -> None:
    before, now = changed(figures={"agreement": 0.99}), changed(figures={"agreement": 0.97})
    decision = held("agreement drop <= 1 point", before, now)
    assert (decision.verdict, found_in_words(decision.found)) == ("fail", "agreement drop 2 points")
    with pytest.raises(UsageError, match=r"only .*top1.* can drop"):
        parse_criterion("agreement drop <= 1 point")
    with pytest.raises(UsageError, match="latency_ms"):
        parse_criterion("latency_ms drop <= 1", against_baseline=True)


def test_the_reference_is_judged_only_where_there_is_no_other() -> None:
    alone = replace(NOW, configurations=NOW.configurations[:1])
    limit = [parse_criterion("latency_ms <= 1000")]
    made = make_baseline(alone)
    assert [decision.configuration for decision in hold_limits(limit, made, made, alone)] == ["reference"]
    assert [each.configuration for each in hold_limits(limit, make_baseline(NOW), make_baseline(NOW), NOW)] == ["test"]
