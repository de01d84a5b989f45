"""What rounding does not do: differences by run, channel and block, worked out by hand; tensors moved or mirrored."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import summarise_differences
from evaltools.metrics.patterns import BLOCKS, Farthest, displacement, farthest_region, farthest_run, region_sums


def test_channels_are_those_of_the_last_axis_and_blocks_are_equal_parts() -> None:
    """Two blocks of 64 elements each would be 128: of 256 elements every block has four."""
    reference = np.ones((64, 4))
    test = reference.copy()
    test[:, 2] += 0.5
    test[63, 0] += 3
    sums = region_sums(test.ravel(), reference.ravel(), reference.shape)
    assert sums.channels.tolist() == [[9.0, 64.0, 64.0], [0.0, 64.0, 64.0], [16.0, 64.0, 64.0], [0.0, 64.0, 64.0]]
    assert sums.blocks.shape == (BLOCKS, 3)
    assert sums.blocks[0].tolist() == [0.25, 4.0, 4.0]
    assert sums.blocks[-1].tolist() == [9.25, 4.0, 4.0]


def test_the_farthest_region_over_all_runs() -> None:
    """Channel 1 has 0.5^2 of 1 in one of two runs: sqrt(0.25 / 2)."""
    reference = np.ones(3)
    runs = [region_sums(np.array([1.0, given, 1.0]), reference, (3,)).channels for given in (1.0, 1.5)]
    found = farthest_region(runs, quantum=0.0)
    assert found is not None
    assert found.index == 1
    assert found.size == pytest.approx(math.sqrt(0.125))


def test_a_region_near_zero_counts_as_a_hundredth_of_all_and_as_four_quanta() -> None:
    reference, test = np.array([10.0, 1e-9]), np.array([10.0, 0.05])
    sums = region_sums(test, reference, (2,)).channels
    overall = math.sqrt(50)
    by_share, by_quanta = farthest_region([sums], quantum=0.0), farthest_region([sums], quantum=1.0)
    assert by_share is not None
    assert by_quanta is not None
    assert (by_share.index, by_quanta.index) == (1, 1)
    assert [by_share.size, by_quanta.size] == pytest.approx([5 / overall, 0.05 / 4])


def test_the_farthest_run() -> None:
    """0.5 of run 0 and 1 of run 1, whose reference is larger."""
    assert farthest_run([1.0, 16.0], [4.0, 16.0], [4, 4], 0.0) == Farthest(1, 1.0)
    assert farthest_run([0.0], [0.0], [0], 0.0) is None


def test_too_few_elements_have_no_regions() -> None:
    one = region_sums(np.ones(1), np.ones(1), (1,))
    assert (len(one.channels), len(one.blocks)) == (0, 0)
    assert farthest_region([one.channels], 0.0) is None


def test_runs_that_give_what_an_earlier_one_gave_are_counted_on_either_side() -> None:
    runs = [np.full(4, value, np.float32) for value in (1, 2, 3)]
    stale = [runs[0], runs[0], runs[2]]
    for pairs in (zip(stale, runs, strict=True), zip(runs, stale, strict=True)):
        assert summarise_differences("y", "float32", [compare_tensors(*pair) for pair in pairs]).repeated == 1
    same = [compare_tensors(run, run) for run in stale]
    assert summarise_differences("y", "float32", same).repeated == 0


def test_the_farthest_run_of_whole_numbers_is_by_the_share_that_differs() -> None:
    parts = [compare_tensors(np.array([1, 2]), np.array([1, given])) for given in (2, 9)]
    assert summarise_differences("y", "int32", parts).farthest_run == Farthest(1, 0.5)


def test_quantised_outputs_are_relative_to_what_their_numbers_stand_for() -> None:
    """20 quanta of 0.5 off in channel 1, whose reference is 100 quanta: a fifth."""
    scale = Scale(0.5, 0)
    test, reference = np.array([100, 120], np.uint8), np.array([100, 100], np.uint8)
    found = summarise_differences("y", "uint8", [compare_tensors(test, reference, scale, scale)], dequantised=True)
    assert found.farthest_channel is not None
    assert found.farthest_channel.index == 1
    assert found.farthest_channel.size == pytest.approx(0.2)


PICTURE = np.random.default_rng(5).integers(0, 20, (1, 12, 9, 4)).astype(np.float64)


def moved(values: Any) -> str:
    return displacement(np.asarray(values).ravel(), PICTURE.ravel(), PICTURE.shape)


@pytest.mark.parametrize("axis", [None, 1, 2, 3])
@pytest.mark.parametrize("step", [1, -1])
def test_one_place_further_in_any_axis_is_found(axis: int | None, step: int) -> None:
    assert moved(np.roll(PICTURE, step, axis=axis)) == "exact"


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_a_mirrored_axis_is_found(axis: int) -> None:
    assert moved(np.flip(PICTURE, axis)) == "exact"


def test_with_noise_it_is_nearly_so() -> None:
    noise = np.random.default_rng(6).normal(0, 0.1, PICTURE.shape)
    assert moved(np.roll(PICTURE, 1, axis=2) + noise) == "near"


def test_other_differences_are_none() -> None:
    random = np.random.default_rng(7)
    for other in (PICTURE, PICTURE + 1, -PICTURE, PICTURE * 0, PICTURE + random.normal(0, 1, PICTURE.shape)):
        assert moved(other) == "none"


def test_few_elements_may_be_their_neighbours_by_chance() -> None:
    peak = np.zeros(100)
    peak[50] = 200
    assert displacement(np.roll(peak, 1), peak, (100,)) == "none"


def test_one_row_that_is_another_is_no_displacement() -> None:
    rows = np.random.default_rng(8).integers(0, 20, (2, 16)).astype(np.float64)
    changed = rows.copy()
    changed[1] = rows[0]
    assert displacement(changed.ravel(), rows.ravel(), (2, 16)) == "none"
