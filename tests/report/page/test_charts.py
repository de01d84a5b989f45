"""Charts: what is drawn, of how much, in which colour."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.locate.conclude import conclude
from evaltools.metrics.interval import Interval
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.drawing import svg_of
from evaltools.report.page.rendering.vega import COLOURS, GREY, TONES, Spec, spec_of
from evaltools.report.screen.charts import each_run, scaled
from evaltools.result.figure import Change, Figure
from evaltools.result.section import Axis, Chart, Mark, Number, Table
from tests.report.benchmark_samples import benchmark, row
from tests.report.page.samples import classifier, operators, read, searched, suite

SHARES = Chart("c", "shares", [Mark(9.0, "gpu", "GPU"), Mark(1.0, "gpu", "CPU", "missing")], "t")


def values(spec: Spec) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["data"]["values"]
    return found


def of_sizes(*sizes: float | None) -> list[float]:
    """Where sizes are drawn on a logarithmic axis."""
    marks = [Mark(size, "o", "gpu") for size in sizes]
    return [value["x"] for value in values(spec_of(Chart("c", "points", marks, "t", Axis("x", "log"))))]


def test_an_interval_is_a_line_from_low_to_high_in_the_colour_of_the_verdict() -> None:
    marks = [Mark(-2.5, "gpu", tone="bad", x_interval=Interval(-5.0, -0.1)), Mark(0.0, "cpu")]
    spec = spec_of(Chart("c", "points", marks, "t", Axis("points", at=0.0, margin=0.5)))
    drawn = [tuple(value[name] for name in ("y", "x", "x_low", "x_high", "colour")) for value in values(spec)]
    assert drawn == [("gpu", -2.5, -5.0, -0.1, TONES["bad"]), ("cpu", 0.0, None, None, COLOURS[0])]
    band, rule, line, point = spec["layer"]
    assert band["data"]["values"] == [{"from": -0.5, "to": 0.5}]
    assert rule["data"]["values"] == [{"at": 0.0}]
    assert (line["encoding"]["x"]["field"], line["encoding"]["x2"]["field"]) == ("x_low", "x_high")
    assert point["encoding"]["x"]["field"] == "x"


def test_parts_of_a_whole_keep_their_order_and_what_is_missing_is_grey() -> None:
    spec = spec_of(SHARES)
    assert [(value["of"], value["x"], value["place"]) for value in values(spec)] == [("GPU", 9.0, 0), ("CPU", 1.0, 1)]
    (bars,) = spec["layer"]
    assert bars["encoding"]["x"]["stack"] == "normalize"
    assert bars["encoding"]["color"]["scale"] == {"domain": ["GPU", "CPU"], "range": [COLOURS[0], GREY]}


def test_of_many_runs_as_many_as_can_be_seen_are_drawn_the_first_among_them() -> None:
    chart = each_run("Runs", {"a": [float(number + 1) for number in range(1000)], "b": [0.0, 2.0]}, 8)
    assert chart is not None
    of_a = [(mark.x, mark.y) for mark in chart.marks if mark.of == "a"]
    assert (len(of_a), of_a[:2]) == (143, [(0, 1.0), (7, 8.0)])
    assert [mark.y for mark in chart.marks if mark.of == "b"] == [2.0]
    assert chart.y.scale == "log"
    near = each_run("Runs", {"a": [1.0, 1.5]}, 8)
    assert near is not None
    assert near.y.scale == ""


def test_identical_outputs_stand_a_decade_below_all_others() -> None:
    assert of_sizes(0.0, 1e-7, 1e-3) == pytest.approx([1e-8, 1e-7, 1e-3])


def test_a_difference_that_no_number_says_stands_a_decade_above_all_others() -> None:
    assert of_sizes(0.0, 1e-7, None, 1e-3, math.nan) == pytest.approx([1e-8, 1e-7, 1e-2, 1e-3, 1e-2])


def test_an_operator_without_a_finite_error_is_the_highest_bar() -> None:
    marks = [Mark(0, 0.5), Mark(1, 40.0), Mark(2, None)]
    chart = Chart("c", "bars", marks, "t", y=Axis("error", "symlog", at=1.0))
    assert [value["y"] for value in values(spec_of(chart))] == [0.5, 40.0, 400.0]


def test_of_many_operators_in_a_row_the_worst_is_drawn() -> None:
    first = operators()[0]
    many = [replace(first, counts={**first.counts, "index": place}, figures=own_error(9.0 if place == 137 else 0.1))
            for place in range(250)]  # fmt: skip
    blocks = [block for each in conclude(searched(many), []).blocks for block in each.blocks]
    drawn = next(block for block in blocks if isinstance(block, Chart) and block.caption.startswith("Error of each"))
    assert len(drawn.marks) == 84
    assert [mark.x for mark in drawn.marks if mark.y == 9.0] == [137]


def own_error(size: float) -> dict[str, Figure]:
    return {"single": Figure(size), "size": Figure(size), "tolerance": Figure(1.0)}


@pytest.mark.parametrize(
    "chart",
    [
        Chart("caption", "points", [Mark(1.0, "a", x_interval=Interval(0.5, 2.0))], "told 1", Axis("x", "", 1.0, 0.5)),
        replace(SHARES, caption="caption", text="told 1"),
        Chart("caption", "points", [Mark(0, 1.0, "a"), Mark(1, 100.0, "a", "missing")], "told 1", y=Axis("", "log")),
        Chart("caption", "lines", [Mark("before", 1.0, "a"), Mark("after", 2.0, "a")], "told 1", y=Axis("MB")),
        Chart("caption", "lines", [Mark(0.0, 1.0, "a"), Mark(0.5, 2.0, "a")], "told 1", Axis("s"), Axis("MB")),
        Chart("caption", "bars", [Mark(1.0, "read"), Mark(0.0, "decode")], "told 1", Axis("s")),
        Chart("caption", "points", [Mark(1e-3, "o", "gpu"), Mark(0.0, "o", "CPU", "missing", beside=True)], "told 1",
              Axis("x", "log")),
        Chart("caption", "bars", [Mark(0, 0.5, tone="good"), Mark(1, None, tone="bad")], "told 1", Axis("operator"),
              Axis("error", "symlog", 1.0)),
        Chart("caption", "strip", [Mark(0, 0.0, "GPU"), Mark(1, 0.0, "CPU", "missing")], "told 1", Axis("operator")),
        Chart("caption", "points", [Mark(1.0, 50.0, "m", shape="a", size=4.0, joined=True), Mark(2.0, 60.0, "n",
              y_interval=Interval(50, 70), shape="b", size=1.0, joined=True)], "told 1", Axis("ms", "log")),
    ],
)  # fmt: skip
def test_a_specification_is_json_that_can_be_drawn(chart: Chart) -> None:
    spec = spec_of(chart)
    assert json.loads(json.dumps(spec)) == spec
    drawn = svg_of(chart)
    assert drawn.startswith('<svg role="img" aria-label="caption. told 1" viewBox="0 0 440')
    assert "NaN" not in drawn
    assert "http" not in drawn
    assert drawn.count("<path") + drawn.count("<line") > 3


def test_names_that_no_picture_can_hold_are_drawn_all_the_same() -> None:
    name = "a\x00\x1b[2J\ud800\ufffe</text><script>"
    marks = [Mark(float("nan"), name, x_interval=Interval(0.0, float("inf")))]
    drawn = svg_of(Chart(name, "points", marks, name, Axis(name)))
    assert "<script>" not in drawn
    assert r"a\x00\x1b[2J\ud800\ufffe&lt;/text&gt;&lt;script&gt;" in drawn


def charts_of(sources: Sources) -> dict[str, Chart]:
    """The charts of a page's first screen."""
    blocks = [block for first in page_of(sources).first for block in first.blocks]
    return {block.caption: block for block in blocks if isinstance(block, Chart)}


def ends(drawn: Chart) -> dict[Any, Any]:
    return {
        mark.y: pytest.approx((mark.x_interval.low, mark.x, mark.x_interval.high))
        for mark in drawn.marks
        if mark.x_interval is not None
    }


def test_charts_of_an_evaluation_show_its_numbers_with_the_lower_end_first() -> None:
    """7 of 200 lost and 2 gained; half the time, 0.4 to 0.625 of it."""
    charts = charts_of(Sources({"r": classifier()}))
    assert ends(charts["Change of top-1 against reference"]) == {"xnnpack": (-5.0, -2.5, -0.1)}
    assert ends(charts["Speed against the reference"]) == {"xnnpack": (1 / 0.625, 2.0, 1 / 0.4)}


def test_charts_of_a_benchmark_show_its_numbers_with_the_lower_end_first() -> None:
    charts = charts_of(Sources(results={"b": benchmark(row("x", 100, 0.8), row("y", 200, 0.9))}))
    assert ends(charts["Median time with its interval"]) == {"x": (0.09, 0.1, 0.11), "y": (0.18, 0.2, 0.22)}
    both = {mark.of: mark for mark in charts["Accuracy against latency and size"].marks}
    assert {name: mark.y for name, mark in both.items()} == {"x": 80.0, "y": 90.0}
    known = both["y"].x_interval
    assert known is not None
    assert (known.low, known.high) == pytest.approx((0.18, 0.22))


def test_the_accuracy_of_models_is_drawn_with_the_lower_end_first() -> None:
    assert scaled(Interval(0.25, 0.75), 100) == Interval(25.0, 75.0)


def test_the_speed_in_a_suite_is_that_of_the_time_with_the_lower_end_first() -> None:
    """0.4 to 0.625 of the time is 1.6 to 2.5 times as fast."""
    ratio = Figure(0.5, interval=Interval(0.4, 0.625))
    (row, *_) = suite("fast").rows
    page = read(Sources(results={"s": suite("fast", [replace(row, figures={**row.figures, "latency_ratio": ratio})])}))
    assert any(cell.text == "2x (1.60 to 2.5)" for cell in page.all("td"))


def test_a_change_that_was_not_judged_shows_its_lower_end_first() -> None:
    result = classifier()
    reference, test = result.rows
    changed = Change("reference", -0.01, Interval(-0.02, -0.001), 200)
    figures = test.figures | {"top2": replace(test.figures["top2"], change=changed)}
    page = page_of(Sources({"r": replace(result, rows=[reference, replace(test, figures=figures)])}))
    tables = [
        block for part in page.parts for each in part.sections for block in each.blocks if isinstance(block, Table)
    ]
    (shown,) = (row for each in tables if each.caption == "Changes on the same examples" for row in each.rows
                if isinstance(row[3], Number) and row[3].value == -0.01)  # fmt: skip
    assert "-2.00" in str(shown[3]).partition("-0.10")[0]
