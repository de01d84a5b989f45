"""Verdicts on limits, with bounds from statsmodels, by brute force, and from figures worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.errors import UsageError
from evaltools.gates.accuracy_verdict import RESTS_ON_TWO
from evaltools.gates.bounds import change_of_means
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import Decision, Found, decide
from evaltools.gates.evidence import BY_FLAG, IN_GATE, Allowed, Evidence
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio
from evaltools.metrics.means import MeanChange
from evaltools.metrics.proportions import PairedCounts, change_bound, change_scores
from evaltools.result.facts import Load
from evaltools.result.figure import Change, Figure, Part, Spread
from evaltools.result.verdict import GATE_VERDICTS, GateVerdict, worst_verdict
from tests.metrics.likelihood import likeliest_share_lost

QUANTILE_95 = 1.6448536269514722


def decided(limit: str, evidence: Evidence, together: int = 1) -> Decision:
    found = decide(parse_criterion(limit), evidence, together)
    assert (found.configuration, found.limit) == (evidence.configuration, limit)
    return found


def verdict(limit: str, evidence: Evidence) -> GateVerdict:
    return decided(limit, evidence).verdict


def share(successes: int, count: int) -> Evidence:
    return Evidence("x", figures={"top1": Figure(successes / count, count=count, is_share=True)})


def flips(count: int, lost: int, gained: int) -> Evidence:
    counts = PairedCounts(count, lost, gained)
    change = Change("reference", counts.change, count=count, lost=lost, gained=gained)
    return Evidence("x", figures={"top1": Figure(0.9, change=change)})


def share_with_flips() -> Evidence:
    figure = flips(10, 0, 0).figures["top1"]
    return Evidence("x", figures={"top1": replace(figure, count=10, is_share=True)})


def outputs(*values: tuple[str, dict[str, float | None]]) -> Evidence:
    parts = []
    for number, (name, given) in enumerate(values):
        figures = {
            key: Figure(None, better="higher", is_best=True) if value == math.inf else Figure(value)
            for key, value in given.items()
        }
        parts.append(Part(name, [str(number)], figures))
    return Evidence("x", outputs=parts)


def plain(**values: float | None) -> dict[str, Figure]:
    return {name: Figure(value) for name, value in values.items()}


def text_of(found: Decision) -> str:
    assert found.found is not None
    return found.found.text


def shown_interval(found: Decision) -> tuple[float, float]:
    assert found.found is not None
    assert found.found.low is not None
    assert found.found.high is not None
    return found.found.low, found.found.high


@pytest.mark.parametrize(
    ("load", "found"),
    [
        (None, "not measured"),
        (Load(2), "not measured"),
        (Load(2, 2.0, 1.1), "pass"),
        (Load(2, 2.1, 1.1), "not measured"),
        (Load(64, 20.0, 18.0), "pass"),
        (Load(2, None, 1.9), "pass"),
        (Load(2, 0.1, 0.1, steal=0.2), "not measured"),
    ],
)
def test_a_latency_of_a_busy_machine_is_not_measured(load: Load | None, found: GateVerdict) -> None:
    evidence = Evidence(
        "x", figures=plain(latency_ms=5.0, top1=0.9), ratio=LatencyRatio(30, 0.5, None), loads={"": load}
    )
    assert verdict("latency_ms <= 9", evidence) == verdict("latency_ratio <= 1", evidence) == found
    assert verdict("top1 >= 50 %", evidence) == "pass"
    for most in (4.0, math.inf):
        allowing = replace(evidence, allowed=Allowed(load=most))
        is_unknown = load is None or load.others is None
        still = (load is not None and load.steal) or (is_unknown and most < math.inf)
        assert verdict("latency_ms <= 9", allowing) == ("not measured" if still else "pass")


@pytest.mark.parametrize("more", ["", IN_GATE, BY_FLAG])
def test_a_busy_machine_is_told_with_what_is_allowed_and_how_to_allow_more(more: str) -> None:
    """By what counts where the limit stands: in a file of gates, or in the command."""
    load, allowed = Load(2, 11.2, 1.3), Allowed(any_load_by=more)
    evidence = Evidence("x", figures=plain(latency_ms=5.0), loads={"": load}, allowed=allowed)
    assert decided("latency_ms <= 9", evidence).reason == (
        "the machine was busy, 11 other processes on 2 cores, and latencies count up to 1 for each core; measure where "
        f"less runs{f', or {more}' if more else ''}"
    )


def test_a_figure_at_the_limit_keeps_it() -> None:
    evidence = Evidence("x", figures=plain(latency_ms=5.0, top1=0.9))
    assert [verdict(f"latency_ms <= {limit}", evidence) for limit in (4.99, 5, 5.01)] == ["fail", "pass", "pass"]
    assert [verdict(f"top1 >= {limit} %", evidence) for limit in (89, 90, 91)] == ["pass", "pass", "fail"]
    assert text_of(decided("latency_ms <= 4", evidence)) == "latency_ms 5 ms"


def test_a_figure_that_is_nan_breaks_limits_and_one_without_a_value_shows_nothing() -> None:
    damaged = decided("latency_ms <= 5", Evidence("x", figures=plain(latency_ms=math.nan)))
    assert (damaged.verdict, text_of(damaged)) == ("fail", "latency_ms nan")
    nothing = decided("ap_small >= 50 %", Evidence("x", figures=plain(ap_small=None)))
    assert nothing.verdict == "not measured"
    assert "ap_small has no value" in nothing.reason


def test_a_figure_that_the_result_lacks_is_not_measured() -> None:
    evidence = flips(10, 0, 0)
    for limit, figure in (
        ("top10 >= 50 %", "top10"),
        ("top5 drop <= 10 points at 95 %", "top5"),
        ("snr_db >= 1", "snr_db"),
    ):
        found = decided(limit, evidence)
        assert found.verdict == "not measured"
        assert figure in found.reason


@pytest.mark.parametrize("limit", ["top1 >= 10 %", "top1 drop <= 90 points", "latency_ratio <= 99", "snr_db >= 0"])
def test_what_was_not_measured_keeps_no_limit(limit: str) -> None:
    evidence = replace(
        share_with_flips(),
        not_measured="no NNAPI here",
        cannot_exist=True,
        ratio=LatencyRatio(1, 0.5, None),
        outputs=outputs(("y", {"snr_db": 99.0})).outputs,
    )
    reason = "no NNAPI here; allow_missing = true in the gate skips what cannot exist here"
    assert decided(limit, evidence) == Decision("x", limit, "not measured", reason=reason)
    allowed = decided(limit, replace(evidence, allowed=Allowed(missing=True)))
    assert allowed == Decision("x", limit, "skipped", reason="no NNAPI here")
    assert decided(limit, replace(evidence, not_measured=None)).verdict == "pass"


def test_without_a_reference_only_what_needs_none_is_decided() -> None:
    evidence = replace(
        share_with_flips(),
        reference_not_measured="the reference died",
        ratio=LatencyRatio(1, 0.5, None),
        outputs=outputs(("y", {"max_error": 0.0})).outputs,
    )
    assert verdict("top1 >= 90 %", evidence) == "pass"
    for limit in ("top1 drop <= 90 points", "latency_ratio <= 1", "max_error <= 1", "agreement >= 10 %"):
        found = decided(limit, evidence)
        assert (found.verdict, found.reason) == ("not measured", evidence.reference_not_measured)


@pytest.mark.parametrize(("successes", "count"), [(180, 200), (9, 10), (450, 500), (0, 20), (20, 20), (35_800, 50_000)])
@pytest.mark.parametrize("confidence", [90, 95, 99.5])
def test_the_bounds_of_a_share_are_those_of_statsmodels(successes: int, count: int, confidence: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    alpha = 2 * (1 - confidence / 100)
    low, high = proportion_confint(successes, count, alpha=alpha, method="beta")
    evidence = share(successes, count)
    for limit in np.linspace(0.01, 0.995, 67).round(4).tolist():
        at_least = "pass" if low >= limit else "fail" if high < limit else "inconclusive"
        assert verdict(f"top1 >= {100 * limit:.8g} % at {confidence} %", evidence) == at_least
    assert shown_interval(decided(f"top1 >= 50 % at {confidence} %", evidence)) == pytest.approx((low, high), rel=1e-3)


@pytest.mark.parametrize("limit", [0.88, 0.92])
@pytest.mark.parametrize("together", [1, 5])
def test_so_many_examples_with_the_same_share_decide_in_80_of_100_cases(limit: float, together: int) -> None:
    """By the bounds of statsmodels: kept with an error of 5 %, broken with one of 1 % for each of 5 limits."""
    from statsmodels.stats.proportion import proportion_confint

    found = decided(f"top1 >= {100 * limit:g} % at 95 %", share(180, 200), together)
    assert found.verdict == "inconclusive"
    needed = found.examples_needed
    assert needed is not None
    assert f"about {needed} would do in 80 % of cases" in found.reason
    counts = np.arange(needed + 1)
    broken = proportion_confint(counts, needed, alpha=2 * 0.05 / together, method="beta")[1] < limit
    kept = proportion_confint(counts, needed, alpha=2 * 0.05, method="beta")[0] >= limit
    assert 0.8 <= stats.binom.pmf(counts[kept | broken], needed, 0.9).sum() < 0.83


@pytest.mark.parametrize(("lost", "gained", "together"), [(22, 2, 1), (12, 2, 10)])
def test_so_many_examples_with_the_same_flips_decide_in_80_of_100_cases(lost: int, gained: int, together: int) -> None:
    """A drop of 1 point is kept, one of 2 points broken, where the limit is 1.5 points."""
    limit = "top1 drop <= 1.5 points at 95 %"
    found = decided(limit, flips(1000, lost, gained), together)
    needed = found.examples_needed
    assert needed is not None
    assert f"about {needed} would do" in found.reason
    drawn = np.random.default_rng(7).multinomial(needed, [lost / 1000, gained / 1000, 1 - (lost + gained) / 1000], 2000)
    cases, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
    counts = [PairedCounts(needed, int(a), int(b)) for a, b in cases]
    kept = [change_bound(each, 0.95, upper=False) >= -0.015 for each in counts]
    broken = [change_bound(each, 1 - 0.05 / together, upper=True) < -0.015 for each in counts]
    assert times[np.logical_or(kept, broken)].sum() / 2000 == pytest.approx(0.8, abs=0.03)


def test_rounds_that_are_too_few_say_how_many_would_do() -> None:
    """Five rounds differ by 10 %: 9 decide 1.1 of what is as fast, and none decide what is at the limit."""
    for ratio, more in ((1.0, "about 9 (--rounds=9) would do in 80 % of cases"), (1.1, "no number of rounds would")):
        around = Interval(ratio * 0.88, ratio * 1.136, 0.95)
        evidence = Evidence("fast", ratio=LatencyRatio(5, ratio, around, 5))
        decision = decided("latency_ratio <= 1.1 at 95 %", evidence)
        assert decision.verdict == "inconclusive"
        assert more in decision.reason


def test_a_share_at_the_limit_is_decided_by_no_number_of_examples() -> None:
    found = decided("top1 >= 90 % at 95 %", share(180, 200))
    assert (found.verdict, found.examples_needed) == ("inconclusive", None)


def test_a_share_without_examples_has_no_interval() -> None:
    evidence = Evidence("x", figures={"top1": Figure(0.0, count=0, is_share=True)})
    assert verdict("top1 >= 50 % at 95 %", evidence) == "not measured"


def likelihood_score(count: int, lost: int, gained: int) -> Callable[[float], float]:
    """Tango's score as a function of the true change."""

    def score(change: float) -> float:
        variance = count * (
            2 * likeliest_share_lost(PairedCounts(count, lost, gained), change) + change - change * change
        )
        return float((gained - lost - count * change) / math.sqrt(max(variance, 1e-30)))

    return score


@pytest.mark.parametrize("counts", [(5000, 41, 32), (300, 0, 31), (400, 20, 10)])
def test_the_bounds_of_a_drop_are_where_the_score_passes_the_quantile(counts: tuple[int, int, int]) -> None:
    score = likelihood_score(*counts)
    for drop in np.linspace(-0.1, 0.1, 41).round(4).tolist():
        found = score(-drop)
        expected = "pass" if found >= QUANTILE_95 else "fail" if found < -QUANTILE_95 else "inconclusive"
        assert verdict(f"top1 drop <= {100 * drop:.8g} points at 95 %", flips(*counts)) == expected, drop
    low, high = shown_interval(decided("top1 drop <= 0 at 95 %", flips(*counts)))
    assert score(-low) == pytest.approx(-QUANTILE_95, abs=0.01)
    assert score(-high) == pytest.approx(QUANTILE_95, abs=0.01)


@pytest.mark.parametrize("counts", [(200, 12, 3), (150, 0, 9), (60, 0, 0), (44, 1, 0)])
def test_few_flips_decide_where_as_clear_ones_are_less_probable_than_the_error(counts: tuple[int, int, int]) -> None:
    """By the sum over all numbers of flips that there could be, with the most likely rates if the drop is the limit."""
    count, lost, gained = counts
    losses, gains = (grid.ravel() for grid in np.mgrid[0 : count + 1, 0 : count + 1])
    losses, gains = losses[losses + gains <= count], gains[losses + gains <= count]
    points = np.stack([losses, gains, count - losses - gains], axis=1)
    for drop in (-0.05, -0.02, 0.0, 0.02, 0.045, 0.07, 0.11):
        share_lost = likeliest_share_lost(PairedCounts(*counts), -drop)
        shares = [share_lost, max(0.0, share_lost - drop), 1 - 2 * share_lost + drop]
        probabilities = stats.multinomial.pmf(points, count, shares)
        scores, own = change_scores(count, losses, gains, -drop), change_scores(count, lost, gained, -drop)
        if probabilities[scores >= own - 1e-9].sum() <= 0.05:
            expected = "pass"
        else:
            expected = "fail" if probabilities[scores <= own + 1e-9].sum() <= 0.05 else "inconclusive"
        assert verdict(f"top1 drop <= {100 * drop:.8g} points at 95 %", flips(*counts)) == expected, drop


def test_a_drop_without_a_confidence_is_the_one_that_was_found() -> None:
    evidence = flips(200, 3, 2)
    assert [verdict(f"top1 drop <= {limit}", evidence) for limit in ("0.4 points", "0.5 points")] == ["fail", "pass"]
    assert text_of(decided("top1 drop <= 0", evidence)) == "top1 drop 0.005"
    assert text_of(decided("top1 drop <= 0", flips(200, 0, 0))) == "top1 drop 0"


def resampled(differences: Sequence[float], change: float = -0.01, examples: int = 100) -> Evidence:
    figure = Figure(0.5, draws=[*differences], change=Change("reference", change, count=examples))
    return Evidence("x", figures={"ap": figure}, base={"ap": Figure(0.5 - change, draws=[0.0] * len(differences))})


def test_the_bounds_of_a_resampled_drop_are_those_of_its_draws() -> None:
    """Normal ones around 0.05 with a deviation of 0.01: 5 % lie beyond 0.05 -+ 0.0164."""
    draws = -0.05 + 0.01 * stats.norm.ppf((np.arange(999) + 1) / 1000)
    evidence = resampled(draws.tolist(), change=-0.05)
    assert verdict("mAP drop <= 6.8 points at 95 %", evidence) == "pass"
    assert verdict("mAP drop <= 6.5 points at 95 %", evidence) == "inconclusive"
    assert verdict("mAP drop <= 3.5 points at 95 %", evidence) == "inconclusive"
    assert verdict("mAP drop <= 3.2 points at 95 %", evidence) == "fail"


@pytest.mark.parametrize("evidence", [resampled([0.0, 0.0], examples=1), resampled([math.nan] * 9)])
def test_what_cannot_be_resampled_has_no_interval(evidence: Evidence) -> None:
    found = decided("ap drop <= 10 points at 95 %", evidence)
    assert (found.verdict, found.reason) == ("not measured", "ap has no interval in this result")


def test_a_ratio_is_compared_with_its_interval() -> None:
    evidence = Evidence("x", ratio=LatencyRatio(9, 0.5, Interval(0.45, 0.6)))
    limits = (0.44, 0.45, 0.5, 0.59, 0.6)
    at_most = [verdict(f"latency_ratio <= {limit} at 95 %", evidence) for limit in limits]
    assert at_most == ["fail", "inconclusive", "inconclusive", "inconclusive", "pass"]
    assert verdict("latency_ratio <= 0.5", evidence) == "pass"
    assert verdict("latency_ratio <= 0.49", evidence) == "fail"
    undecided = decided("latency_ratio <= 0.5 at 95 %", evidence)
    assert text_of(undecided).endswith("0.5 (0.45 to 0.6) of these processes while this was measured")


def test_a_ratio_of_one_pair_or_of_none() -> None:
    single = Evidence("x", ratio=LatencyRatio(1, 0.5, None))
    assert verdict("latency_ratio <= 0.5", single) == "pass"
    assert verdict("latency_ratio <= 0.5 at 95 %", single) == "not measured"
    assert verdict("latency_ratio <= 0.5", Evidence("x")) == "not measured"


def test_the_worst_output_decides_and_is_named() -> None:
    evidence = outputs(("a", {"max_quanta": 2.0}), ("b", {"max_error": 9.0}), ("c", {"max_quanta": 5.0}))
    assert text_of(decided("max_quanta <= 1", evidence)) == "max_quanta 5 quanta in c"
    assert verdict("max_quanta <= 5", evidence) == "pass"
    snr = outputs(("a", {"snr_db": 60.0}), ("b", {"snr_db": 30.0}), ("c", {"snr_db": math.inf}))
    worst = Found("snr_db", 30.0, output="b", unit="dB")
    assert decided("snr_db >= 40", snr) == Decision("x", "snr_db >= 40", "fail", worst)
    assert verdict("snr_db >= 30", snr) == "pass"


def test_a_figure_of_one_output_is_judged_as_it_was_found() -> None:
    limit = replace(parse_criterion("max_error <= 1"), confidence=0.95)
    values = (0.5, 1.5)
    found = [decide(limit, outputs(("a", {"max_error": value}))) for value in values]
    assert [each.verdict for each in found] == ["pass", "fail"]


@pytest.mark.parametrize("broken", [None, math.nan])
def test_an_output_without_a_number_breaks_every_limit(broken: float | None) -> None:
    found = decided("max_error <= 999", outputs(("a", {"max_error": 0.0}), ("b", {"max_error": broken})))
    assert found.verdict == "fail"
    assert text_of(found) in ("max_error no number in b", "max_error nan in b")


def test_one_output_by_name_or_number_leaves_the_others_alone() -> None:
    evidence = outputs(("a", {"max_error": 9.0}), ("b", {"max_error": 0.5}))
    assert [verdict(f"max_error[{name}] <= 1", evidence) for name in ("a", "0", "b", "1")] == [
        "fail", "fail", "pass", "pass",
    ]  # fmt: skip


def test_an_output_that_is_not_there_is_not_measured() -> None:
    evidence = outputs(("a", {"max_error": 9.0}), ("b", {}))
    assert verdict("max_error[b] <= 1", evidence) == "not measured"
    for given, names in ((evidence, "a, b"), (Evidence("x", figures=plain(top1=0.5)), "none")):
        missing = decided("max_error[c] <= 1", given)
        assert missing.verdict == "not measured"
        assert missing.reason.endswith(names)


def test_not_measured_is_worse_than_fail_and_that_than_inconclusive() -> None:
    assert GATE_VERDICTS == ("skipped", "pass", "inconclusive", "fail", "not measured")
    for place, name in enumerate(GATE_VERDICTS):
        assert worst_verdict(GATE_VERDICTS[each] for each in range(place, -1, -1)) == name
    assert worst_verdict([]) == "not measured"


def mean_evidence(change: MeanChange) -> Evidence:
    """A metric of one's own that changed so."""
    figure = Figure(0.8, better="higher", spread=Spread(0.1, 50), change=change_of_means(change, "reference"))
    return Evidence("x", figures={"iou": figure})


def own_limit(limit: str, change: MeanChange) -> Decision:
    return decide(parse_criterion(limit, of_own_task="yes"), mean_evidence(change))


def test_a_drop_of_a_mean_that_is_kept_says_what_its_examples_cannot_show() -> None:
    kept = own_limit("iou drop <= 0.01 at 95 %", MeanChange(50, -0.001, 0.005, 50))
    assert (kept.verdict, kept.reason) == ("pass", "losses that hit fewer than 1 in 17 examples may be unseen")
    broken = own_limit("iou drop <= 0.01 at 95 %", MeanChange(50, -0.1, 0.005, 50))
    assert (broken.verdict, broken.reason) == ("fail", "")


def test_a_drop_of_which_two_examples_make_most_is_open() -> None:
    found = own_limit("iou drop <= 0.01 at 95 %", MeanChange(50, -0.001, 0.005, 50, by_two=0.6))
    assert (found.verdict, found.reason) == ("inconclusive", RESTS_ON_TWO)
    rounding = own_limit("iou drop <= 0.01 at 95 %", MeanChange(50, -1e-7, 1e-6, 50, by_two=0.6))
    assert rounding.verdict == "pass"


def test_a_guaranteed_drop_needs_stated_bounds_and_is_by_them() -> None:
    change = MeanChange(400, -0.001, 0.005, 400)
    found = own_limit("iou drop <= 0.01 guaranteed at 95 %", change)
    assert found.verdict == "inconclusive"
    assert "no bounds of single examples are known" in found.reason
    bounded = replace(change, span=1.0)
    assert own_limit("iou drop <= 0.01 guaranteed at 95 %", bounded).verdict == "inconclusive"
    kept = own_limit("iou drop <= 0.05 guaranteed at 95 %", bounded)
    assert (kept.verdict, kept.reason) == ("pass", "")
    assert shown_interval(kept)[1] == pytest.approx(-bounded.guaranteed(0.95, upper=False))


def test_a_guarantee_of_a_share_is_refused() -> None:
    with pytest.raises(UsageError, match="only means of tasks have stated bounds"):
        parse_criterion("top1 drop <= 1 points guaranteed at 95 %")


def against_reference(right: float, classes: int = 1000, figure: str = "top1") -> Evidence:
    """A configuration that has as many right as its reference, all of them the same."""
    change = Change("reference", 0.0, count=200, lost=0, gained=0)
    figures = {figure: Figure(right, change=change, count=200, is_share=True)}
    return Evidence("x", figures=figures, base={figure: Figure(right)}, examples=200, classes=classes)


@pytest.mark.parametrize(
    ("right", "classes", "figure", "found"),
    [
        (0.015, 1000, "top1", "not measured"),
        (0.015, 0, "top1", "not measured"),
        (0.0, 1000, "top1", "not measured"),
        (0.54, 2, "top1", "not measured"),
        (0.5, 12, "top5", "pass"),
        (0.45, 12, "top5", "not measured"),
        (0.12, 1000, "top1", "pass"),
        (0.56, 2, "top1", "pass"),
    ],
)
def test_a_ruined_reference_shows_nothing(right: float, classes: int, figure: str, found: GateVerdict) -> None:
    """A model with 1.5 % Top-1 lost nothing against itself, which was green."""
    evidence = against_reference(right, classes, figure)
    for limit in (f"{figure} drop <= 0.5 points", f"{figure} drop <= 2 points at 95 %"):
        decision = decided(limit, evidence)
        assert decision.verdict == found
        assert found == "pass" or "the reference itself has" in decision.reason


def test_a_limit_on_the_figure_beside_it_says_what_is_enough() -> None:
    evidence = replace(against_reference(0.05), limited=frozenset(["top1"]))
    assert verdict("top1 drop <= 0.5 points", evidence) == "pass"


def test_a_drop_that_no_model_can_have_is_no_limit() -> None:
    found = decided("top1 drop <= 99 points", against_reference(0.91))
    assert found.verdict == "not measured"
    assert "the reference itself has top1 91 %, so nothing drops by more than 99 points" in found.reason


def test_a_worse_one_than_a_ruined_reference_is_broken() -> None:
    change = Change("reference", -0.04, count=200, lost=8, gained=0)
    evidence = replace(against_reference(0.05), figures={"top1": Figure(0.01, change=change, count=200, is_share=True)})
    assert verdict("top1 drop <= 0.5 points", evidence) == "fail"
