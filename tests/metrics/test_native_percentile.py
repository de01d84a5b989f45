"""The native benchmark's percentile against values worked out by hand and against recorded ones."""

from __future__ import annotations

import pytest

from evaltools.metrics.native_numbers import native_percentile


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([30, 50, 10, 40, 20], {0: 10, 5: 10, 19: 10, 20: 20, 50: 30, 95: 50, 99: 50}),
        ([10, 20, 30, 40], {50: 30}),
        ([761], {5: 761, 50: 761, 95: 761, 100: 761}),
        ([1, 3, 2], {100: 3}),
        ([], {50: 0}),
    ],
    ids=["5 * percent // 100", "the upper middle", "as printed for one run", "the largest, not the last", "none"],
)
def test_the_sample_at_a_truncated_index(values: list[float], expected: dict[int, float]) -> None:
    given = list(values)
    assert {percent: native_percentile(given, percent) for percent in expected} == expected
    assert given == values


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_percentage_outside_the_range_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match=rf"{percent} is no percentage; use 0 to 100"):
        native_percentile([1], percent)
