"""Charts are plain specifications: what is drawn, of how much, in which colour."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.report.content import Sources
from evaltools.report.page.charts.figures import (
    Apart,
    Layer,
    Spread,
    Tradeoff,
    floor_chart,
    intervals_chart,
    local_chart,
    strip_chart,
    tradeoff_chart,
    worst_in_a_row,
)
from evaltools.report.page.charts.look import COLOURS, REFERENCE, TONES, Spec, colours_of
from evaltools.report.page.charts.times import bars_chart, moments_chart, runs_chart, shares_chart
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.drawing import svg_of
from evaltools.report.page.sections.tradeoff import scaled
from evaltools.result.figure import Figure
from evaltools.result.section import Chart
from tests.report.benchmark_samples import benchmark, row
from tests.report.page.samples import classifier, read, suite

LAYERS = [Layer(0, 0.5, "good", "XNNPACK"), Layer(1, 40.0, "bad", ""), Layer(2, None, "", "XNNPACK")]


def values(spec: Spec) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def test_an_interval_is_a_line_from_low_to_high_in_the_colour_of_the_verdict() -> None:
    spec = intervals_chart([Spread("gpu", -2.5, -5.0, -0.1, "bad"), Spread("cpu", 0.0, None, None)], "points", 0.0, 0.5)
    assert values(spec) == [
        {"name": "gpu", "value": -2.5, "low": -5.0, "high": -0.1, "colour": TONES["bad"]},
        {"name": "cpu", "value": 0.0, "low": None, "high": None, "colour": TONES[""]},
    ]
    band, rule, line, point = spec["layer"]
    assert band["data"]["values"] == [{"from": -0.5, "to": 0.5}]
    assert rule["data"]["values"] == [{"at": 0.0}]
    assert (line["encoding"]["x"]["field"], line["encoding"]["x2"]["field"]) == ("low", "high")
    assert point["encoding"]["x"]["field"] == "value"


def test_parts_of_a_whole_keep_their_order() -> None:
    spec = shares_chart({"xnnpack": {"XNNPACK": 9.0, "CPU": 1.0}}, colours_of(["XNNPACK", "CPU"], "CPU"), "nodes", True)
    assert [(value["part"], value["size"], value["place"]) for value in values(spec)] == [
        ("XNNPACK", 9.0, 0),
        ("CPU", 1.0, 1),
    ]
    assert spec["encoding"]["x"]["stack"] == "normalize"
    assert spec["encoding"]["color"]["scale"] == {"domain": ["XNNPACK", "CPU"], "range": [COLOURS[0], REFERENCE]}


def test_of_many_runs_as_many_as_can_be_seen_are_drawn_the_first_among_them() -> None:
    spec = runs_chart({"a": [float(number + 1) for number in range(1000)], "b": [0.0, 2.0]}, "a")
    of_a = [value for value in values(spec) if value["configuration"] == "a"]
    assert len(of_a) == 143
    assert (of_a[0]["run"], of_a[0]["ms"]) == (0, 1.0)
    assert (of_a[1]["run"], of_a[1]["ms"]) == (7, 8.0)
    assert [value["ms"] for value in values(spec) if value["configuration"] == "b"] == [2.0]
    assert spec["encoding"]["y"]["scale"]["type"] == "log"
    assert "type" not in runs_chart({"a": [1.0, 1.5]}, None)["encoding"]["y"]["scale"]


def test_identical_outputs_stand_a_decade_below_all_others() -> None:
    spec = floor_chart([Apart("o", "CPU", 0.0, True), Apart("o", "CPU", 1e-7, True), Apart("o", "gpu", 1e-3, False)])
    assert [value["size"] for value in values(spec)] == [pytest.approx(1e-8), 1e-7, 1e-3]
    assert [value["floor"] for value in values(spec)] == [True, True, False]


def test_a_difference_that_no_number_says_stands_a_decade_above_all_others() -> None:
    sizes = (0.0, 1e-7, math.inf, 1e-3, math.nan)
    drawn = [value["size"] for value in values(floor_chart([Apart("o", "gpu", size, False) for size in sizes]))]
    assert drawn == pytest.approx([1e-8, 1e-7, 1e-2, 1e-3, 1e-2])


def test_an_operator_without_a_finite_error_is_the_highest_bar() -> None:
    layers = [*LAYERS, Layer(3, math.inf, "bad", "")]
    assert [value["error"] for value in values(local_chart(layers))] == [0.5, 40.0, 400.0]


def test_of_many_operators_in_a_row_the_worst_is_drawn() -> None:
    many = [Layer(number, 9.0 if number == 137 else 0.1, "", "") for number in range(250)]
    drawn = worst_in_a_row(many, most=100)
    assert len(drawn) == 84
    assert [layer.index for layer in drawn if layer.local == 9.0] == [137]


@pytest.mark.parametrize(
    "spec",
    [
        intervals_chart([Spread("a", 1.0, 0.5, 2.0)], "x", 1.0, 0.5),
        shares_chart({"a": {"x": 1.0}, "b": {"x": 2.0}}, colours_of(["x"]), "nodes"),
        runs_chart({"a": [1.0, 100.0]}, "a"),
        moments_chart({"a": {"before": 1.0, "after": 2.0}}, "MB"),
        bars_chart({"read": 1.0, "decode": 0.0}, "s"),
        floor_chart([Apart("o", "gpu", 1e-3, False)]),
        local_chart(LAYERS),
        strip_chart(LAYERS),
        tradeoff_chart([Tradeoff("m", "a", 1.0, 50.0, 4.0, True)], "top-1"),
    ],
)
def test_a_specification_is_json_that_can_be_drawn(spec: Spec) -> None:
    assert json.loads(json.dumps(spec)) == spec
    drawn = svg_of(Chart("caption", spec, "told 1"))
    assert drawn.startswith('<svg role="img" aria-label="caption. told 1" viewBox="0 0 440')
    assert "NaN" not in drawn
    assert "http" not in drawn
    assert drawn.count("<path") + drawn.count("<line") > 3


def test_names_that_no_picture_can_hold_are_drawn_all_the_same() -> None:
    name = "a\x00\x1b[2J\ud800\ufffe</text><script>"
    drawn = svg_of(Chart(name, intervals_chart([Spread(name, float("nan"), 0.0, float("inf"))], name), name))
    assert "<script>" not in drawn
    assert r"a\x00\x1b[2J\ud800\ufffe&lt;/text&gt;&lt;script&gt;" in drawn


def charts_of(sources: Sources) -> dict[str, list[dict[str, Any]]]:
    """What is drawn in each chart of a page's details."""
    blocks = [block for part in page_of(sources).parts for section in part.sections for block in section.blocks]
    return {block.caption: values(dict(block.spec)) for block in blocks if isinstance(block, Chart)}


def ends(drawn: list[dict[str, Any]]) -> dict[str, Any]:
    return {each["name"]: pytest.approx((each["low"], each["value"], each["high"])) for each in drawn}


def test_charts_of_an_evaluation_show_its_numbers_with_the_lower_end_first() -> None:
    """7 of 200 lost and 2 gained; half the time, 0.4 to 0.625 of it."""
    charts = charts_of(Sources({"r": classifier()}))
    assert ends(charts["Change of top-1 against reference"]) == {"xnnpack": (-5.0, -2.5, -0.1)}
    assert ends(charts["Speed against the reference"]) == {"xnnpack": (1 / 0.625, 2.0, 1 / 0.4)}


def test_charts_of_a_benchmark_show_its_numbers_with_the_lower_end_first() -> None:
    charts = charts_of(Sources(results={"b": benchmark(row("x", 100, 0.8), row("y", 200, 0.9))}))
    assert ends(charts["Median time with its interval"]) == {"x": (0.09, 0.1, 0.11), "y": (0.18, 0.2, 0.22)}
    both = {each["model"]: each for each in charts["Accuracy against latency and size"]}
    assert {name: each["figure"] for name, each in both.items()} == {"x": 80.0, "y": 90.0}
    assert both["y"]["latency"] == pytest.approx((0.18, 0.22))


def test_the_accuracy_of_models_is_drawn_with_the_lower_end_first() -> None:
    assert scaled(Interval(0.25, 0.75), 100) == (25.0, 75.0)


def test_the_speed_in_a_suite_is_that_of_the_time_with_the_lower_end_first() -> None:
    """0.4 to 0.625 of the time is 1.6 to 2.5 times as fast."""
    ratio = Figure(0.5, interval=Interval(0.4, 0.625))
    (row, *_) = suite("fast").rows
    page = read(Sources(results={"s": suite("fast", [replace(row, figures={**row.figures, "latency_ratio": ratio})])}))
    assert "2 times faster [1.6, 2.5]" in page.source
