"""Differences by run and channel, worked out by hand, and outputs that come again."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import summarise_differences
from evaltools.metrics.patterns import Farthest, channel_sums, farthest_channel, farthest_run, run_sizes


def test_channels_are_those_of_the_last_axis() -> None:
    reference = np.ones((64, 4))
    test = reference.copy()
    test[:, 2] += 0.5
    test[63, 0] += 3
    sums = channel_sums(test.ravel(), reference.ravel(), reference.shape)
    assert sums.tolist() == [[9.0, 64.0, 64.0], [0.0, 64.0, 64.0], [16.0, 64.0, 64.0], [0.0, 64.0, 64.0]]


def test_the_farthest_channel_over_all_runs() -> None:
    """Channel 1 has 0.5^2 of 1 in one of two runs: sqrt(0.25 / 2)."""
    reference = np.ones(3)
    runs = [channel_sums(np.array([1.0, given, 1.0]), reference, (3,)) for given in (1.0, 1.5)]
    found = farthest_channel(runs, quantum=0.0)
    assert found is not None
    assert found.index == 1
    assert found.size == pytest.approx(math.sqrt(0.125))


def test_a_channel_near_zero_counts_as_a_hundredth_of_all_and_as_four_quanta() -> None:
    reference, test = np.array([10.0, 1e-9]), np.array([10.0, 0.05])
    sums = channel_sums(test, reference, (2,))
    overall = math.sqrt(50)
    by_share, by_quanta = farthest_channel([sums], quantum=0.0), farthest_channel([sums], quantum=1.0)
    assert by_share is not None
    assert by_quanta is not None
    assert (by_share.index, by_quanta.index) == (1, 1)
    assert [by_share.size, by_quanta.size] == pytest.approx([5 / overall, 0.05 / 4])


def test_the_farthest_run() -> None:
    """0.5 of run 0 and 1 of run 1, whose reference is larger."""
    assert farthest_run(run_sizes([1.0, 16.0], [4.0, 16.0], [4, 4], 0.0).tolist()) == Farthest(1, 1.0)


def test_one_element_has_no_channels() -> None:
    one = channel_sums(np.ones(1), np.ones(1), (1,))
    assert len(one) == 0
    assert farthest_channel([one], 0.0) is None


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
    """20 quanta of 0.5 off in channel 1, whose reference is 100 quanta: a fifth."""
    scale = Scale(0.5, 0)
    test, reference = np.array([100, 120], np.uint8), np.array([100, 100], np.uint8)
    found = summarise_differences("y", "uint8", [compare_tensors(test, reference, scale, scale)], dequantised=True)
    assert found.farthest_channel is not None
    assert found.farthest_channel.index == 1
    assert found.farthest_channel.size == pytest.approx(0.2)
