from __future__ import annotations

import json
import math
from typing import Any

import pytest

from evaltools.locate.bundle.write import node_data
from evaltools.result.locate import Errors, Operator

FIELDS = {"results", "name", "thresholds"}


def operator(index: int, worst: float, tolerance: float | None) -> Operator:
    errors = Errors(worst=worst, median=0.0, relative=0.0, runs=1, beyond=0)
    return Operator(index, "ADD", "x", "absolute", "right", local=errors, tolerance=tolerance)


def read(*operators: Operator, graph: str = "") -> dict[str, Any]:
    content = json.loads(node_data(operators, graph), parse_constant=pytest.fail)
    assert isinstance(content, dict)
    return content


def test_errors_are_shares_of_the_tolerance_by_number_of_the_operator() -> None:
    content = read(operator(0, 1.0, 0.5), operator(3, 0.1, 1.0), Operator(4, "MUL", "y", "absolute", "not tried"))
    assert content["main"]["results"] == {"0": {"value": 2.0}, "3": {"value": 0.1}}


def test_the_format_is_that_of_model_explorer() -> None:
    """As ``GraphNodeData`` of ``model_explorer.node_data_builder`` has it, version 0.1.34."""
    graph = read(operator(0, 1.0, 0.5))["main"]
    assert set(graph) == FIELDS
    values = [threshold["value"] for threshold in graph["thresholds"]]
    assert values == sorted(values)
    assert all(set(threshold) == {"value", "bgColor"} for threshold in graph["thresholds"])
    assert all(isinstance(key, str) and set(entry) == {"value"} for key, entry in graph["results"].items())


@pytest.mark.parametrize(("worst", "tolerance"), [(math.inf, 1.0), (math.nan, 1.0), (1.0, 0.0), (1e300, 1e-300)])
def test_what_json_cannot_hold_has_the_last_colour(worst: float, tolerance: float) -> None:
    graph = read(operator(0, worst, tolerance))["main"]
    assert graph["results"]["0"]["value"] == graph["thresholds"][-1]["value"]


def test_no_error_is_none_even_where_none_is_allowed() -> None:
    assert read(operator(0, 0.0, 0.0))["main"]["results"]["0"]["value"] == 0.0


def test_a_graph_is_known_by_its_name() -> None:
    assert list(read(operator(0, 1.0, 1.0), graph='odd "né')) == ['odd "né']
