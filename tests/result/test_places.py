"""The reference of configurations that were measured at several places."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.result.places import reference_of
from evaltools.result.result import Row
from tests.results import configuration, evidence, result


def at(place: str, name: str, role: str = "test") -> Row:
    return replace(configuration(f"{name}@{place}", role), place=place)


def test_the_reference_is_that_of_the_own_place() -> None:
    run = [at("A", "reference", "reference"), at("A", "test"), at("B", "reference", "reference"), at("B", "test")]
    assert [reference_of(entry, run) for entry in run] == [run[0], run[0], run[2], run[2]]


def test_where_one_place_alone_has_a_reference_it_is_that_of_all() -> None:
    run = [at("A", "reference", "reference"), at("A", "test"), at("B", "reference"), at("B", "test")]
    assert [reference_of(entry, run) for entry in run] == [run[0]] * 4
    assert reference_of(run[1], run[1:]) is None
    plain = [configuration("test"), configuration("reference", "reference")]
    assert reference_of(plain[0], plain) == plain[1]


def test_a_gate_asks_for_the_reference_of_the_own_place() -> None:
    lost = replace(at("A", "reference", "reference"), status="not measured", reason="lost")
    run = [lost, at("A", "test"), at("B", "reference", "reference"), at("B", "test")]
    reasons = [evidence(result(*run), entry.name).reference_not_measured for entry in run]
    assert reasons[1:] == ["the reference: lost", "", ""]
