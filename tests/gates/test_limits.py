"""Limits that a user sets: how they are read, and what keeps or breaks them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.gates.limits import Limit, LimitCheck, LimitName, check_limits, parse_limit
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import OutputDifference, summarise_differences

LIMITS: tuple[LimitName, ...] = ("max_avg_error", "max_quanta", "min_snr_db")


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


def kept(limit: Limit, *outputs: OutputDifference) -> list[bool]:
    return [check.kept for check in check_limits([limit], [(found, (found.output,)) for found in outputs])]


def test_a_limit_for_all_outputs_or_for_one() -> None:
    assert parse_limit("max_avg_error", "0.5") == Limit("max_avg_error", 0.5, None)
    assert parse_limit("max_avg_error", "0") == Limit("max_avg_error", 0.0, None)
    assert parse_limit("max_quanta", "StatefulPartitionedCall:0=2") == Limit(
        "max_quanta", 2.0, "StatefulPartitionedCall:0"
    )
    assert parse_limit("min_snr_db", "a=b=-3") == Limit("min_snr_db", -3.0, "a=b")


@pytest.mark.parametrize("text", ["", "nan", "y=nan", "=1", "1=", "y=one", "-1", "y=-0.5", "1,5"])
def test_what_is_no_limit_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_limit("max_avg_error", text)
    message = f"--max_avg_error={text}: use a number of 0 or more, for all outputs or as OUTPUT=NUMBER for one"
    assert str(error.value) == message


def test_limits_are_written_as_flags() -> None:
    assert (str(Limit("max_quanta", 2.0, "y")), str(Limit("min_snr_db", -0.5, None))) == (
        "--max_quanta=y=2",
        "--min_snr_db=-0.5",
    )


def test_a_figure_at_the_limit_keeps_it() -> None:
    half = floats([1.5, 2.5], [1.0, 2.0])
    assert (kept(Limit("max_avg_error", 0.5, None), half), kept(Limit("max_avg_error", 0.49, None), half)) == (
        [True],
        [False],
    )
    off = quanta(([5, 250], [5, 3]))
    assert (kept(Limit("max_quanta", 247, None), off), kept(Limit("max_quanta", 246, None), off)) == ([True], [False])
    snr20 = floats([1.25, 1.0], [1.0, 1.0])
    exactly = -20 * math.log10(math.sqrt(0.0625 / 2))
    assert kept(Limit("min_snr_db", exactly - 1e-6, None), snr20) == [True]
    assert kept(Limit("min_snr_db", exactly + 1e-6, None), snr20) == [False]


def test_a_check_states_the_limit_and_what_was_found() -> None:
    checks = check_limits([Limit("max_quanta", 1, None)], [(quanta(([5], [8])), ("q",))])
    assert checks == [LimitCheck("--max_quanta=1", "q", 3.0, False)]


def test_a_limit_for_one_output_leaves_the_others_alone() -> None:
    first, second = floats([9.0], [1.0], "a"), floats([1.0], [1.0], "b")
    named = [(first, ("a", "StatefulPartitionedCall:0", "0")), (second, ("b", "StatefulPartitionedCall:1", "1"))]
    for name in ("b", "StatefulPartitionedCall:1", "1"):
        assert check_limits([Limit("max_avg_error", 0, name)], named) == [
            LimitCheck(f"--max_avg_error={name}=0", "b", 0.0, True)
        ]
    assert [check.kept for check in check_limits([Limit("max_avg_error", 0, None)], named)] == [False, True]


def test_identical_outputs_keep_every_limit() -> None:
    same = quanta(([5, 6], [5, 6]))
    for name in LIMITS:
        assert kept(Limit(name, 0 if name != "min_snr_db" else 300, None), same) == [True]


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_break_every_limit(name: LimitName, value: float) -> None:
    generous = Limit(name, -1000 if name == "min_snr_db" else math.inf, "y")
    for test, reference in (([value, 3.0], [1.0, 2.0]), ([1.0, 3.0], [value, 2.0]), ([value, 3.0], [value, 2.0])):
        assert kept(generous, floats(test, reference)) == [False]


@pytest.mark.parametrize("name", LIMITS)
def test_another_shape_breaks_every_limit(name: LimitName) -> None:
    generous = Limit(name, -1000 if name == "min_snr_db" else math.inf, None)
    assert kept(generous, quanta(([1, 2], [1])), quanta(([1], [1]))) == [False, True]
    assert kept(generous, quanta(([5], [3]), ([1, 2], [1]))) == [False]


def test_no_signal_in_the_reference_breaks_a_limit_on_the_snr() -> None:
    assert kept(Limit("min_snr_db", -1000, None), floats([1.0], [0.0])) == [False]


def test_quanta_are_not_asked_of_a_float_output_unless_by_name() -> None:
    outputs = floats([2.0], [1.0]), quanta(([1], [1]))
    assert kept(Limit("max_quanta", 0, None), *outputs) == [True]
    assert kept(Limit("max_quanta", 300, "y"), *outputs) == [False]


def test_an_average_error_is_not_asked_of_a_text_output_unless_by_name() -> None:
    outputs = texts(b"a", b"a"), floats([1.0], [1.0])
    assert kept(Limit("max_avg_error", 0, None), *outputs) == [True]
    assert kept(Limit("max_avg_error", 0, "t"), *outputs) == [False]


def test_texts_that_differ_break_a_limit_on_the_snr() -> None:
    limit = Limit("min_snr_db", 0, None)
    assert (kept(limit, texts(b"a", b"a")), kept(limit, texts(b"a", b"b"))) == ([True], [False])


def test_a_limit_that_no_output_has_a_figure_for_is_broken() -> None:
    assert kept(Limit("max_quanta", 300, None), floats([1.0], [1.0])) == [False]
