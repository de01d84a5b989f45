"""Which configurations are compared with which."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.engine.opening import comparison_pairs
from evaltools.result.result import Row
from tests.results import configuration

REFERENCE = configuration("reference", "reference")
CPU = configuration("cpu")
GPU = configuration("gpu")


def at(place: str, *entries: Row, is_first: bool = False) -> list[Row]:
    """Configurations as a place of several gives them: only the first place has a reference."""
    return [
        replace(entry, name=f"{entry.name}@{place}", place=place, role=entry.role if is_first else "test")
        for entry in entries
    ]


def lost(entry: Row) -> Row:
    return replace(entry, status="not measured", reason="no GPU")


@pytest.mark.parametrize(
    ("rows", "pairs"),
    [
        ([], []),
        ([REFERENCE], []),
        ([CPU], []),
        ([REFERENCE, CPU], [("reference", "cpu")]),
        ([CPU, GPU], [("cpu", "gpu")]),
        ([REFERENCE, CPU, GPU], [("reference", "cpu"), ("reference", "gpu"), ("cpu", "gpu")]),
        ([CPU, REFERENCE], [("reference", "cpu")]),
        (
            [CPU, GPU, configuration("npu")],
            [("cpu", "gpu"), ("cpu", "npu")],
        ),
        ([lost(REFERENCE), CPU, GPU], [("cpu", "gpu")]),
        ([REFERENCE, lost(CPU), GPU], [("reference", "gpu")]),
        (
            [REFERENCE, lost(CPU), GPU, configuration("npu")],
            [("reference", "gpu"), ("reference", "npu"), ("gpu", "npu")],
        ),
    ],
)
def test_tests_are_compared_with_the_reference_and_against_the_first_of_them(
    rows: list[Row], pairs: list[tuple[str, str]]
) -> None:
    assert comparison_pairs(rows) == pairs


def test_at_several_places_a_test_is_compared_with_the_same_one_elsewhere() -> None:
    """And all against the one reference, those that were references at other places as well."""
    run = [*at("host", REFERENCE, CPU, GPU, is_first=True), *at("R5", REFERENCE, CPU, GPU)]
    assert comparison_pairs(run) == [
        ("reference@host", "cpu@host"),
        ("reference@host", "gpu@host"),
        ("reference@host", "reference@R5"),
        ("reference@host", "cpu@R5"),
        ("reference@host", "gpu@R5"),
        ("cpu@host", "cpu@R5"),
        ("gpu@host", "gpu@R5"),
    ]


def test_a_place_without_figures_is_passed_over() -> None:
    run = [*map(lost, at("A", GPU, is_first=True)), *at("B", GPU), *at("C", GPU)]
    assert comparison_pairs(run) == [("gpu@B", "gpu@C")]


def test_names_that_only_look_like_those_of_places_are_names() -> None:
    run = [configuration("gpu@A"), configuration("cpu@A"), configuration("gpu@B")]
    assert comparison_pairs(run) == [("gpu@A", "cpu@A"), ("gpu@A", "gpu@B")]
    doubled = [
        *at("A", configuration("x@B"), is_first=True),
        *at("B", configuration("x")),
        *at("B", configuration("x@B")),
    ]
    assert comparison_pairs(doubled) == [("x@B@A", "x@B@B")]
