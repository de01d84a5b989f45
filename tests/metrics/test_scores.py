"""Agreement of scores against sets of best classes found by plain sorting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.scores import ScoreAgreement, compare_scores, looks_like_scores


def best_five(scores: npt.NDArray[np.generic]) -> set[int]:
    """With all classes that are as good as the fifth."""
    fifth = sorted((float(score) for score in scores), reverse=True)[4]
    return {index for index, score in enumerate(scores) if float(score) >= fifth}


@pytest.mark.parametrize("positions", [1, 40])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "float32"])
def test_top5_with_many_ties_equals_plain_sorting(positions: int, dtype: str) -> None:
    random = np.random.default_rng(positions)
    test, reference = (random.integers(0, 4, (positions, 11)).astype(dtype) for _ in range(2))
    pairs = zip(test, reference, strict=True)
    common = sum(min(5, len(best_five(first) & best_five(second))) for first, second in pairs)
    found = compare_scores(test, reference)
    assert found is not None
    assert found.top5_common == common
    assert found.top5_overlap == pytest.approx(common / (5 * positions))


def test_ties_at_the_end_of_the_five_take_nothing_away() -> None:
    test, reference = np.zeros(20), np.zeros(20)
    test[[3, 7]], reference[3] = (9, 1), 9
    assert compare_scores(test, reference) == ScoreAgreement(1, 1, 5)


def test_of_equal_scores_the_first_class_is_the_better_one() -> None:
    assert compare_scores(np.array([3, 7, 7]), np.array([1, 8, 2])) == ScoreAgreement(1, 1, None)
    assert compare_scores(np.array([3, 7, 7]), np.array([1, 2, 8])) == ScoreAgreement(1, 0, None, tied_best=1)


def test_another_best_class_is_a_tie_where_one_side_scores_both_the_same() -> None:
    """Worked out by hand: a tie in the test, one in the reference, and a best class that is really another."""
    test = np.array([[5, 5, 1], [3, 4, 1], [3, 4, 1]])
    reference = np.array([[4, 6, 1], [7, 7, 1], [6, 2, 1]])
    assert compare_scores(test, reference) == ScoreAgreement(3, 0, None, tied_best=2)


def test_the_lowest_int8_and_uint8_are_the_worst() -> None:
    signed = np.array([-128, -1, -2, -3, -4, -5, 127], np.int8)
    unsigned = np.array([0, 4, 3, 2, 1, 0, 255], np.uint8)
    assert compare_scores(signed, unsigned) == ScoreAgreement(1, 1, 5)


def test_a_map_is_compared_pixel_by_pixel() -> None:
    test = np.random.default_rng(2).random((1, 6, 5, 3))
    reference = test.copy()
    reference[0, 2, 3] = test[0, 2, 3][::-1] + np.array([0, 100, 0])
    reference[0, 4, 1, test[0, 4, 1].argmin()] = 200
    same = sum(
        max(range(3), key=lambda c: test[0, y, x, c]) == max(range(3), key=lambda c: reference[0, y, x, c])
        for y in range(6)
        for x in range(5)
    )
    found = compare_scores(test, reference)
    assert found == ScoreAgreement(30, same, None)
    assert same in (28, 29)


def test_five_classes_have_no_top5() -> None:
    five, six = np.arange(5), np.arange(6)
    assert compare_scores(five, five) == ScoreAgreement(1, 1, None)
    assert compare_scores(six, six) == ScoreAgreement(1, 1, 5)


def test_agreements_add_up() -> None:
    total = ScoreAgreement(2, 1, 7) + ScoreAgreement(1, 1, 5)
    assert (total, total.top5_overlap) == (ScoreAgreement(3, 2, 12), 12 / 15)
    assert (ScoreAgreement(1, 1, 5) + ScoreAgreement(1, 0, None)).top5_overlap is None


@pytest.mark.parametrize(
    ("shape", "from_softmax", "expected"),
    [
        ((1, 1001), False, True),
        ((1, 3), False, True),
        ((1, 2), False, False),
        ((1, 2), True, True),
        ((1, 1), True, False),
        ((), True, False),
        ((1, 16, 16, 21), False, False),
        ((1, 32, 32, 1), False, False),
        ((1, 10, 4), False, False),
    ],
)
def test_which_outputs_hold_scores(shape: tuple[int, ...], from_softmax: bool, expected: bool) -> None:
    assert looks_like_scores(shape, from_softmax) is expected
