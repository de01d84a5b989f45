"""Differences by run and channel, worked out by hand, and outputs that come again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import summarise_differences
from evaltools.metrics.patterns import Farthest, channel_sums, farthest_channels, farthest_run, run_sizes


def test_each_axis_has_channels() -> None:
    reference = np.ones((1, 2, 32, 4))
    test = reference.copy()
    test[..., 2] += 0.5
    test[0, 1, 31, 0] += 3
    sums = channel_sums(test.ravel(), reference.ravel(), reference.shape)
    assert sums.keys() == {1, 2, 3}
    assert sums[1].tolist() == [[8.0, 128.0, 128.0], [17.0, 128.0, 128.0]]
    assert sums[2].tolist() == [*[[0.5, 8.0, 8.0]] * 31, [9.5, 8.0, 8.0]]
    assert sums[3].tolist() == [[9.0, 64.0, 64.0], [0.0, 64.0, 64.0], [16.0, 64.0, 64.0], [0.0, 64.0, 64.0]]


def test_an_axis_of_too_many_has_none() -> None:
    many = np.ones(2 * 1025)
    assert channel_sums(many, many, (2, 1025)).keys() == {0}


def test_the_farthest_channel_over_all_runs() -> None:
    """Channel 1 has 0.5^2 of 1 in one of two runs: sqrt(0.25 / 2)."""
    reference = np.ones(3)
    runs = [channel_sums(np.array([1.0, given, 1.0]), reference, (3,)) for given in (1.0, 1.5)]
    found = farthest_channels(runs, quantum=0.0)
    assert found.keys() == {0}
    assert found[0].index == 1
    assert found[0].size == pytest.approx(math.sqrt(0.125))


@pytest.mark.parametrize(
    ("largest", "quantum", "size"),
    [(10.0, 0.0, 0.05 / 0.001), (0.01, 0.0, 0.05 / (0.01 * 0.01 / math.sqrt(2))), (10.0, 1.0, 0.05 / 4)],
)
def test_a_channel_near_zero_counts_as_a_thousandth_or_a_hundredth_of_all_and_as_four_quanta(
    largest: float, quantum: float, size: float
) -> None:
    reference, test = (np.repeat([largest, near], 8) for near in (1e-9, 0.05))
    found = farthest_channels([channel_sums(test, reference, (2, 8))], quantum)[0]
    assert found.index == 1
    assert found.size == pytest.approx(size)


def test_a_channel_counts_by_its_own_size() -> None:
    """Scores beside coordinates in pixels, a thousand times as large."""
    reference = np.array([[300.0] * 8, [0.3] * 8])
    test = np.array([[300.0] * 8, [0.0] * 8])
    found = farthest_channels([channel_sums(test.ravel(), reference.ravel(), (2, 8))], 0.0)[0]
    assert found.index == 1
    assert found.size == pytest.approx(1.0)


def test_the_farthest_run() -> None:
    """0.5 of run 0 and 1 of run 1, whose reference is larger."""
    assert farthest_run(run_sizes([1.0, 16.0], [4.0, 16.0], [4, 4], 0.0).tolist()) == Farthest(1, 1.0)


def test_one_element_has_no_channels() -> None:
    one = channel_sums(np.ones(1), np.ones(1), (1,))
    assert not one
    assert not farthest_channels([one], 0.0)


def test_runs_that_give_what_an_earlier_one_gave_are_counted() -> None:
    """Of either side, and only where more than seven numbers lie between the ends."""
    for count, expected in ((10, 1), (9, 0)):
        runs = [np.linspace(0, value, count, dtype=np.float32) for value in (1, 2, 3)]
        late = [runs[0], runs[0], runs[2]]
        found = [compare_tensors(test, reference) for test, reference in zip(late, runs, strict=True)]
        assert summarise_differences("y", "float32", found).repeated == expected
        other = [compare_tensors(test, reference) for test, reference in zip(runs, late, strict=True)]
        assert summarise_differences("y", "float32", other).repeated == expected


def test_the_farthest_run_of_whole_numbers_is_by_the_share_that_differs() -> None:
    """One of two, beside one that is not the most frequent."""
    parts = [compare_tensors(np.array([1, 2]), np.array([1, given])) for given in (2, 9)]
    assert summarise_differences("y", "int32", parts).farthest_run == Farthest(1, 1.0)


def test_quantised_outputs_are_relative_to_what_their_numbers_stand_for() -> None:
    """20 quanta of 0.5 off in channel 1, whose reference is 100 quanta: a fifth. It has eight elements."""
    scale = Scale(0.5, 0)
    test, reference = np.full((2, 8), 100, np.uint8), np.full((2, 8), 100, np.uint8)
    test[1] = 120
    found = summarise_differences("y", "uint8", [compare_tensors(test, reference, scale, scale)], dequantised=True)
    assert found.farthest_channels.keys() == {0}
    assert found.farthest_channels[0].index == 1
    assert found.farthest_channels[0].size == pytest.approx(0.2)
