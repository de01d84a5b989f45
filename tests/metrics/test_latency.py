"""Latency figures against values worked out by hand."""

from __future__ import annotations

from evaltools.metrics.latency import summarise_latency


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
