"""Figures over several runs against plain NumPy formulas over all values at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.difference import Scale, TensorDifference, compare_tensors
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference, differences_by_run, summarise_differences

EIGHTH = Scale(0.125, 3)
Floats = Sequence[Sequence[float]]


def summary(test: Floats, reference: Floats) -> OutputDifference:
    pairs = zip(test, reference, strict=True)
    parts = [compare_tensors(np.array(first, np.float32), np.array(second, np.float32)) for first, second in pairs]
    return summarise_differences("y", "float32", parts)


def quantised(test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic]) -> TensorDifference:
    return compare_tensors(test, reference, EIGHTH, EIGHTH)


def test_figures_over_runs_equal_plain_formulas_over_all_values() -> None:
    random = np.random.default_rng(1)
    reference = random.normal(size=(7, 300)).astype(np.float32)
    test = reference + random.normal(scale=0.01, size=reference.shape).astype(np.float32)
    found = summary(test.tolist(), reference.tolist())
    first, second = test.astype(float).ravel(), reference.astype(float).ravel()
    errors = abs(first - second)
    noise = np.linalg.norm(errors) / np.linalg.norm(second)
    assert (found.runs, found.elements, found.different, found.kind) == (7, 2100, 2100, "real")
    assert found.mean == pytest.approx(errors.mean())
    assert found.max == pytest.approx(errors.max(), rel=1e-7)
    assert found.max_relative == pytest.approx((errors / abs(second)).max())
    assert found.relative_rms == pytest.approx(noise)
    assert found.snr_db == pytest.approx(10 * np.log10((second**2).sum() / (errors**2).sum()))
    assert found.cosine == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    for figure, percent in ((found.p50, 50), (found.p90, 90), (found.p99, 99)):
        assert figure == pytest.approx(np.percentile(errors, percent, method="inverted_cdf"), rel=0.004)
    assert (found.test.low, found.test.high) == pytest.approx((first.min(), first.max()), rel=1e-7)


def test_runs_of_different_length_weigh_by_their_elements_but_equally_for_the_native_figure() -> None:
    found = summary([[1.0], [0.0, 0.0, 0.0]], [[0.0], [0.0, 0.0, 0.0]])
    assert (found.mean, found.native) == (0.25, NativeError(0.5, 0.5, 0.0, 1.0))


def test_an_all_zero_reference_has_no_relative_figures() -> None:
    found = summary([[0, 1]], [[0, 0]])
    assert (found.max, found.max_relative, found.relative_rms, found.snr_db, found.cosine) == (1.0,) + (None,) * 4
    assert (found.reference.all_zero, found.test.all_zero) == (True, False)


def test_opposite_outputs_have_cosine_minus_1() -> None:
    found = summary([[1, -2]], [[-1, 2]])
    assert found.cosine == pytest.approx(-1)
    assert found.relative_rms == 2.0
    assert found.snr_db == pytest.approx(-6.0206, abs=1e-4)


def test_nan_is_counted_and_the_rest_compared() -> None:
    found = summary([[np.nan, 3.0], [np.inf, 1.0]], [[1.0, 1.0], [np.inf, 1.0]])
    assert (found.elements, found.compared, found.different, found.mean, found.max) == (4, 2, 2, 1.0, 2.0)
    assert (found.test.nan, found.test.infinite, found.reference.infinite) == (1, 1, 1)
    assert found.native == NativeError(None, None, None, None)


def test_nothing_to_compare_has_no_figures() -> None:
    for found in (summary([[np.nan]], [[1.0]]), summary([[]], [[]])):
        assert (found.compared, found.mean, found.max, found.p50, found.relative_rms, found.cosine) == (0,) + (
            None,
        ) * 5
    assert summary([[]], [[]]).identical


def test_quanta_over_runs_equal_plain_formulas() -> None:
    random = np.random.default_rng(2)
    tests, references = (random.integers(100, 106, (5, 40)).astype(np.uint8) for _ in range(2))
    parts = [quantised(test, reference) for test, reference in zip(tests, references, strict=True)]
    found = summarise_differences("y", "uint8", parts, dequantised=True)
    steps = abs(tests.astype(int) - references.astype(int))
    counts = tuple(int(np.count_nonzero(at)) for at in (steps == 0, steps == 1, steps == 2, steps > 2))
    quanta = found.quanta
    assert quanta is not None
    assert (quanta.off_by_0, quanta.off_by_1, quanta.off_by_2, quanta.off_by_more) == counts
    assert (quanta.max, quanta.shares) == (5, tuple(count / 200 for count in counts))
    assert quanta.rms == pytest.approx(np.sqrt((steps**2).mean()))
    assert (found.kind, found.p50, found.p99) == (
        "quantised",
        np.percentile(steps, 50, method="inverted_cdf") / 8,
        np.percentile(steps, 99, method="inverted_cdf") / 8,
    )


@pytest.mark.parametrize(
    ("dtype", "dequantised", "kind"),
    [("int32", False, "exact"), ("bool", False, "exact"), ("int32", True, "real"), ("float16", False, "real")],
)
def test_kinds(dtype: str, dequantised: bool, kind: str) -> None:
    part = compare_tensors(np.array([1], dtype), np.array([0], dtype))
    assert summarise_differences("y", dtype, [part], dequantised).kind == kind


def test_texts_have_no_native_figure() -> None:
    part = compare_tensors(np.array([b"a", b"b"], object), np.array([b"a", b"c"], object))
    found = summarise_differences("y", "string", [part])
    assert (found.kind, found.native, found.mean, found.different, found.test.low) == ("exact", None, None, 1, None)


def test_constant_means_one_value_in_all_runs() -> None:
    assert summary([[5, 5], [5, 5]], [[1, 2], [1, 2]]).test.constant
    found = summary([[5, 5], [6, 6]], [[0, 0], [-0.0, 0]])
    assert not found.test.constant
    assert (found.reference.constant, found.reference.all_zero) == (True, True)
    assert not summary([[5, np.nan], [5, 5]], [[1, 2], [1, 2]]).test.constant


def test_scores_add_up_over_runs() -> None:
    six = np.arange(6.0)
    parts = [
        compare_tensors(test, reference, as_scores=True)
        for test, reference in ((six, six), (six, -six), (six, np.roll(six, 1)))
    ]
    scores = summarise_differences("y", "float64", parts).scores
    assert scores is not None
    assert (scores.positions, scores.same_best, scores.share) == (3, 1, 1 / 3)
    assert scores.top5_overlap == pytest.approx((5 + 4 + 4) / 15)


@pytest.mark.parametrize(("values", "is_seen"), [(9, False), (10, True), (12, True)])
def test_a_run_that_gives_what_an_earlier_one_gave_repeats_it(values: int, is_seen: bool) -> None:
    """Of few values two runs may give the same by chance; eight must lie between the smallest and the largest."""
    reference = [np.random.default_rng(run).permutation(values).astype(np.float32) for run in range(3)]
    stale = [reference[0], reference[0], reference[2]]
    parts = [compare_tensors(test, right) for test, right in zip(stale, reference, strict=True)]
    assert [run.repeats for run in differences_by_run("float32", parts)] == [False, is_seen, False]
    swapped = [compare_tensors(right, test) for test, right in zip(stale, reference, strict=True)]
    assert [run.repeats for run in differences_by_run("float32", swapped)] == [False, is_seen, False]
