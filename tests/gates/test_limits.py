"""Limits that a user sets: how they are read, and what keeps or breaks them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import LimitCheck, check_limits
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import OutputDifference, summarise_differences
from evaltools.result.figure import Part
from evaltools.tasks.inference_diff.figures import limited_figures
from tests.limits import LIMITS, limit_of


def limit(name: str, value: float, output: str | None = None) -> Criterion:
    return limit_of(name, f"{f'{output}=' if output else ''}{value!r}")


def floats(test: list[float], reference: list[float], name: str = "y") -> OutputDifference:
    part = compare_tensors(np.array(test, np.float32), np.array(reference, np.float32))
    return summarise_differences(name, "float32", [part])


def quanta(*runs: tuple[list[int], list[int]]) -> OutputDifference:
    scale = Scale(0.5, 0)
    pairs = [(np.array(test, np.uint8), np.array(reference, np.uint8)) for test, reference in runs]
    parts = [compare_tensors(test, reference, scale, scale) for test, reference in pairs]
    return summarise_differences("q", "uint8", parts, dequantised=True)


def texts(test: bytes, reference: bytes) -> OutputDifference:
    part = compare_tensors(np.array([test], object), np.array([reference], object))
    return summarise_differences("t", "string", [part])


def named(found: OutputDifference, *names: str) -> Part:
    return Part(found.output, list(names), limited_figures(found))


def kept(limited: Criterion, *outputs: OutputDifference) -> list[bool]:
    return [check.kept for check in check_limits([limited], [named(found) for found in outputs])]


@pytest.mark.parametrize(
    ("name", "text", "figure", "output", "at_most", "value"),
    [
        ("max_avg_error", "0.5", "avg_error", None, True, 0.5),
        ("max_avg_error", "0", "avg_error", None, True, 0.0),
        ("max_quanta", "StatefulPartitionedCall:0=2", "max_quanta", "StatefulPartitionedCall:0", True, 2.0),
        ("min_snr_db", "a=b=-3", "snr_db", "a=b", False, -3.0),
    ],
)
def test_a_limit_for_all_outputs_or_for_one(
    name: str, text: str, figure: str, output: str | None, at_most: bool, value: float
) -> None:
    found = limit_of(name, text)
    assert (found.figure, found.output, found.at_most, found.value) == (figure, output, at_most, value)


@pytest.mark.parametrize(
    "text", ["", "nan", "y=nan", "inf", "y=-inf", "1e400", "=1", "1=", "y=one", "-1", "y=-0.5", "1,5"]
)
def test_what_is_no_limit_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(UsageError) as error:
        limit_of("max_avg_error", text)
    assert str(error.value).startswith(f"--max_avg_error={text}: use a number of 0 or more")


def test_limits_are_written_as_flags() -> None:
    assert limit_of("max_quanta", "y=2.0").text == "--max_quanta=y=2"
    assert limit_of("min_snr_db", "-0.50").text == "--min_snr_db=-0.5"


def test_a_figure_at_the_limit_keeps_it() -> None:
    half = floats([1.5, 2.5], [1.0, 2.0])
    assert (kept(limit("max_avg_error", 0.5), half), kept(limit("max_avg_error", 0.49), half)) == (
        [True],
        [False],
    )
    off = quanta(([5, 250], [5, 3]))
    assert (kept(limit("max_quanta", 247), off), kept(limit("max_quanta", 246), off)) == ([True], [False])
    snr20 = floats([1.25, 1.0], [1.0, 1.0])
    exactly = -20 * math.log10(math.sqrt(0.0625 / 2))
    assert kept(limit("min_snr_db", exactly - 1e-6), snr20) == [True]
    assert kept(limit("min_snr_db", exactly + 1e-6), snr20) == [False]


def test_a_check_states_the_limit_and_what_was_found() -> None:
    checks = check_limits([limit("max_quanta", 1)], [named(quanta(([5], [8])))])
    assert checks == [LimitCheck("--max_quanta=1", "q", 3.0, False)]


def test_a_limit_for_one_output_leaves_the_others_alone() -> None:
    first, second = floats([9.0], [1.0], "a"), floats([1.0], [1.0], "b")
    both = [named(first, "StatefulPartitionedCall:0", "0"), named(second, "StatefulPartitionedCall:1", "1")]
    for name in ("b", "StatefulPartitionedCall:1", "1"):
        assert check_limits([limit("max_avg_error", 0, name)], both) == [
            LimitCheck(f"--max_avg_error={name}=0", "b", 0.0, True)
        ]
    assert [check.kept for check in check_limits([limit("max_avg_error", 0)], both)] == [False, True]


def test_identical_outputs_keep_every_limit() -> None:
    same = quanta(([5, 6], [5, 6]))
    for name in LIMITS:
        assert kept(limit(name, 0 if name != "min_snr_db" else 300), same) == [True]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_break_every_limit(name: str, value: float) -> None:
    generous = limit(name, -1000 if name == "min_snr_db" else 1e300, "y")
    for test, reference in (([value, 3.0], [1.0, 2.0]), ([1.0, 3.0], [value, 2.0]), ([value, 3.0], [value, 2.0])):
        assert kept(generous, floats(test, reference)) == [False]


@pytest.mark.parametrize("name", LIMITS)
def test_another_shape_breaks_every_limit(name: str) -> None:
    generous = limit(name, -1000 if name == "min_snr_db" else 1e300)
    assert kept(generous, quanta(([1, 2], [1])), quanta(([1], [1]))) == [False, True]
    assert kept(generous, quanta(([5], [3]), ([1, 2], [1]))) == [False]


def test_no_signal_in_the_reference_breaks_a_limit_on_the_snr() -> None:
    assert kept(limit("min_snr_db", -1000), floats([1.0], [0.0])) == [False]


def test_quanta_are_not_asked_of_a_float_output_unless_by_name() -> None:
    outputs = floats([2.0], [1.0]), quanta(([1], [1]))
    assert kept(limit("max_quanta", 0), *outputs) == [True]
    assert kept(limit("max_quanta", 300, "y"), *outputs) == [False]


def test_an_average_error_is_not_asked_of_a_text_output_unless_by_name() -> None:
    outputs = texts(b"a", b"a"), floats([1.0], [1.0])
    assert kept(limit("max_avg_error", 0), *outputs) == [True]
    assert kept(limit("max_avg_error", 0, "t"), *outputs) == [False]


def test_texts_that_differ_break_a_limit_on_the_snr() -> None:
    limited = limit("min_snr_db", 0)
    assert (kept(limited, texts(b"a", b"a")), kept(limited, texts(b"a", b"b"))) == ([True], [False])


def test_a_limit_that_no_output_has_a_figure_for_is_broken() -> None:
    assert kept(limit("max_quanta", 300), floats([1.0], [1.0])) == [False]
