"""Latency figures, ratios, medians of times and ratios of rounds by hand, drift against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaltools.metrics.latency import drift, latency_ratio, median_interval, rounds_ratio, summarise_latency
from evaltools.metrics.series import has_jumped


def test_std_truncates_the_variance_and_the_root() -> None:
    """Mean 2.5, mean square 7.5, variance 1.25 -> 1 -> 1."""
    latency = summarise_latency([1, 2, 3, 4])
    assert (latency.avg_us, latency.std_us) == (2.5, 1)


def test_equal_values_have_no_deviation() -> None:
    latency = summarise_latency([123456789] * 7)
    assert (latency.std_us, latency.min_us, latency.max_us, latency.sum_us) == (0, 123456789, 123456789, 864197523)


def test_first_last_and_percentiles() -> None:
    latency = summarise_latency([40, 10, 20, 30])
    assert (latency.first_us, latency.last_us, latency.count) == (40, 30, 4)
    assert (latency.p50_us, latency.p90_us) == (25.0, 37.0)


def test_nanoseconds_are_in_the_percentiles_and_rounded_in_what_native_tools_print() -> None:
    """Rounded to 6, 7 and 9: cut off, or rounded after summing up, the average would be 6.67 or 7.2."""
    latency = summarise_latency([6.4, 6.6, 8.5])
    assert (latency.p50_us, latency.sum_us, latency.avg_us, latency.std_us) == (6.6, 22, 22 / 3, 1)
    assert (latency.first_us, latency.last_us, latency.min_us, latency.max_us) == (6, 9, 6, 9)


def test_the_ratio_is_that_of_the_medians() -> None:
    found = latency_ratio([10, 20, 1000], [5, 11, 30])
    assert found is not None
    assert (found.pairs, found.ratio) == (3, 0.55)
    assert (found.interval, found.withheld) == (None, "few")


def test_few_and_short_times() -> None:
    assert latency_ratio([], []) is None
    short = latency_ratio([0, 0], [1, 2])
    assert short is not None
    assert short.ratio == 3.0, "0 us are half of one"
    single = latency_ratio([4], [2])
    assert single is not None
    assert (single.ratio, single.interval) == (0.5, None)


def test_whole_microseconds_make_no_interval_of_no_width() -> None:
    """6.4 and 6.6 us, of which a clock of whole microseconds shows 6 and 7, one of nanoseconds all."""
    found = latency_ratio([6] * 200, [7] * 200)
    assert found is not None
    assert found.interval is not None
    assert found.interval.low < 6.6 / 6.4 < found.interval.high
    finer = latency_ratio([6.4, 6.401, 6.402, 6.403] * 50, [6.6, 6.602, 6.603, 6.601] * 50)
    assert finer is not None
    assert finer.interval is not None
    assert finer.ratio == pytest.approx(6.6 / 6.4, abs=1e-3)
    assert 1.029 < finer.interval.low < finer.interval.high < 1.033


def test_pairs_that_share_slow_moments_make_a_narrow_interval() -> None:
    generator = np.random.default_rng(6)
    moment = generator.lognormal(0, 0.5, 300)
    first, second = (10_000 * moment).astype(int), (5_000 * moment).astype(int)
    paired = latency_ratio(first.tolist(), second.tolist())
    unpaired = latency_ratio(first.tolist(), generator.permutation(second).tolist())
    assert paired is not None
    assert unpaired is not None
    assert paired.interval is not None
    assert unpaired.interval is not None
    assert paired.interval.high - paired.interval.low < 0.01 * (unpaired.interval.high - unpaired.interval.low)


def test_the_interval_holds_the_ratio_where_half_of_one_side_is_slow() -> None:
    """Nearly as many runs are slow as not, and all slow ones are more than ten times as slow."""
    chance = np.random.default_rng(5)
    for share in (0.3, 0.4, 0.45):
        slow = np.where(chance.random(60) < share, chance.uniform(10, 15, 60), 1.0)
        found = latency_ratio((1000 * slow).tolist(), chance.uniform(99, 101, 60).tolist())
        assert found is not None
        assert found.interval is not None
        assert found.interval.low <= found.ratio <= found.interval.high


def test_a_clock_that_stepped_under_one_side_gives_no_interval_and_says_why() -> None:
    chance = np.random.default_rng(9)
    steady, other = chance.normal(1000, 5, 50), chance.normal(900, 5, 50)
    stepped = np.where(np.arange(50) < 30, steady, 1.3 * steady)
    found = latency_ratio(stepped.tolist(), other.tolist())
    assert found is not None
    assert (found.interval, found.withheld) == (None, "jumped")
    under_both = latency_ratio(stepped.tolist(), np.where(np.arange(50) < 30, other, 1.3 * other).tolist())
    assert under_both is not None
    assert under_both.interval is not None
    assert under_both.withheld is None


def test_slow_moments_at_random_are_no_jump() -> None:
    chance = np.random.default_rng(10)
    times = chance.normal(0, 0.01, 100) + 0.5 * (chance.random(100) < 0.4)
    assert not has_jumped(times)
    assert has_jumped(np.sort(times))


def test_drift_as_kendall_and_as_thirds() -> None:
    times = [100 + place // 10 + place % 7 for place in range(120)]
    found = drift(times)
    assert found is not None
    assert found.p_value == pytest.approx(stats.kendalltau(range(120), times, method="asymptotic").pvalue, rel=1e-12)
    assert found.change == np.median(times[80:]) / np.median(times[:40]) - 1


def test_no_drift_in_noise_nor_in_what_stands_still() -> None:
    noise = drift(np.random.default_rng(8).integers(1000, 1100, 20_000).tolist())
    assert noise is not None
    assert noise.p_value > 0.01
    still = drift([7] * 50)
    assert still is not None
    assert (still.change, still.p_value) == (0.0, 1.0)
    assert drift(range(9)) is None


def test_of_three_processes_of_each_every_pair_counts_once() -> None:
    """Medians of the ratios 2, 2.2 and 2.1; where a configuration has one process alone, the series decides."""
    first, second = [100.0] * 30, [200.0] * 10 + [220.0] * 10 + [210.0] * 10
    numbers = [place // 10 for place in range(30)]
    found = latency_ratio(first, second, [(number, number) for number in numbers])
    assert found is not None
    assert found.interval is not None
    low, high = stats.t.interval(0.95, 2, np.mean(np.log([2, 2.2, 2.1])), stats.sem(np.log([2, 2.2, 2.1])))
    assert (found.processes, found.ratio) == (3, 2.1)
    assert found.interval.low == pytest.approx(np.exp(low), rel=0.01)
    assert found.interval.high == pytest.approx(np.exp(high), rel=0.01)
    alone = latency_ratio(first, second, [(number, 0) for number in numbers])
    assert alone == latency_ratio(first, second)
    assert alone is not None
    assert alone.processes == 1


def test_of_one_process_it_lies_between_the_order_statistics_of_the_binomial_interval() -> None:
    """Of independent times the exact interval of a median has its ends in the order; ours is a little wider."""
    times = np.sort(np.random.default_rng(3).lognormal(7, 0.5, 200))
    found = median_interval([np.random.default_rng(4).permutation(times).tolist()])
    assert found is not None
    place = int(stats.binom.ppf(0.025, 200, 0.5))
    low, high = times[place - 1], times[200 - place]
    assert times[place - 10] < found.low < low
    assert high < found.high < times[209 - place]


def test_times_that_only_rise_have_none() -> None:
    assert median_interval([list(range(1000, 1200))]) is None


def test_of_three_processes_by_hand() -> None:
    found = median_interval([[100] * 30, [110] * 30, [103] * 30])
    assert found is not None
    logarithms = np.log([100, 110, 103])
    middle, half = logarithms.mean(), 4.30265273 * logarithms.std(ddof=1) / np.sqrt(3)
    assert found.low == pytest.approx(np.exp(middle - half) - 0.5)
    assert found.high == pytest.approx(np.exp(middle + half) + 0.5)


def test_outliers_at_the_end_and_times_that_stand_still_have_an_interval() -> None:
    found = median_interval([[75] * 27 + [50_000] * 3])
    assert found is not None
    assert 0 < found.low < 75 < found.high
    steady = median_interval([[53] * 50])
    assert steady is not None
    assert steady.high - steady.low == pytest.approx(1)


def test_too_few_times_have_none() -> None:
    assert median_interval([list(range(19))]) is None
    assert median_interval([]) is None
    assert median_interval([[], []]) is None


def test_two_rounds_are_too_few() -> None:
    assert median_interval([[100] * 30, [110] * 30]) is None
    found = rounds_ratio([[100], [200]], [[202], [398]])
    assert found is not None
    assert (found.pairs, found.interval) == (2, None)


def test_a_ratio_of_rounds_does_not_feel_how_fast_a_round_was() -> None:
    found = rounds_ratio([[100], [200], [50]], [[202], [398], [101]])
    assert found is not None
    logarithms = np.log([2.02, 1.99, 2.02])
    half = stats.t.ppf(0.975, 2) * logarithms.std(ddof=1) / np.sqrt(3)
    assert found.interval is not None
    assert found.pairs == 3
    assert found.ratio == pytest.approx(np.exp(logarithms.mean()))
    assert found.interval.low == pytest.approx(np.exp(logarithms.mean() - half))
    assert found.interval.high == pytest.approx(np.exp(logarithms.mean() + half))


def test_pairs_whose_neighbours_resemble_each_other_have_no_interval() -> None:
    """Of 50 pairs whose noise is correlated by 0.9, 82 % of the intervals once held the ratio."""
    chance = np.random.default_rng(4)
    given = 0
    for _ in range(200):
        noise = np.zeros((2, 80))
        for place in range(1, 80):
            noise[:, place] = 0.9 * noise[:, place - 1] + np.sqrt(1 - 0.81) * chance.normal(0, 1, 2)
        first, second = np.exp(0.1 * noise[:, 30:])
        found = latency_ratio((1e5 * first).tolist(), (1.2e5 * second).tolist())
        assert found is not None
        assert (found.interval is None) == (found.withheld is not None)
        given += found.interval is not None
    assert given <= 0.15 * 200
