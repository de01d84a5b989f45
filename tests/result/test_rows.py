"""A result of rows, written and read again; what cannot be is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.metrics.interval import Interval
from evaltools.result.environment import describe_environment
from evaltools.result.facts import Model
from evaltools.result.figure import Change, Figure
from evaltools.result.json_file import encode_json
from evaltools.result.reading import rows_in
from evaltools.result.result import Result, Row
from evaltools.result.section import Chart, Lines, Mark, Note, Number, Section, Sentence, Table, Word


def made_up() -> Result:
    reference = Row("cpu", role="reference", figures={"top1": Figure(0.75, is_share=True, count=4)})
    change = Change("cpu", -0.25, Interval(-0.7, 0.3), count=4, lost=1, gained=0)
    test = Row("gpu", figures={"top1": Figure(0.5, is_share=True, count=4, interval=Interval(0.2, 0.8), change=change)})
    blocks = [
        Section("answer", [Sentence("One answer changed."), Lines(["a", Note("gpu", "slow", "bad")])], "first"),
        Section("table", [Table("c", ("name", "x"), [("gpu", Number("0.5", 0.5)), ("cpu", Word("same", "good"))])]),
        Section("chart", [Chart("c", "bars", [Mark(1.0, "a")], "one bar")]),
    ]
    environment = describe_environment(["evaltools"], "2026-01-01T00:00:00+00:00", 1.0)
    model = Model("m.tflite", "00", 1, 10, [], [])
    return Result("imagenet", environment, [model], [reference, test], blocks=blocks)


def test_what_is_written_is_read_again() -> None:
    assert encode_json(rows_in(encode_json(made_up()), Path("r.json"))) == encode_json(made_up())


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (Figure(1.5, is_share=True), "a share is 0 to 1"),
        (Figure(0.3, is_share=True, count=4), "no number of 4 is such a share"),
        (Figure(0.5, interval=Interval(0.6, 0.7)), "its interval is 0.6 to 0.7"),
        (Figure(0.5, change=Change("tpu", 0.1)), "'tpu', which is not a row"),
        (Figure(0.5, change=Change("cpu", -0.25, count=4, lost=3, gained=2)), "3 lost and 2 gained of 4"),
        (Figure(0.5, change=Change("cpu", -0.5, count=4, lost=1, gained=0)), "changed by -0.5, with 1 lost"),
        (Figure(0.5, count=4, change=Change("cpu", 0.25, count=4)), "and it is 0.5 where 'cpu' has 0.75"),
    ],
)
def test_a_contradiction_is_refused(figure: Figure, message: str) -> None:
    result = made_up()
    edited = replace(result, rows=[result.rows[0], replace(result.rows[1], figures={"top1": figure})])
    with pytest.raises(DataError, match=message):
        rows_in(encode_json(edited), Path("r.json"))


def test_a_row_of_a_suite_is_compared_with_the_one_of_its_own_job_and_model() -> None:
    made = made_up()
    first = [replace(row, job="top1") for row in made.rows]
    second = [replace(row, job="other") for row in made.rows]
    second[0] = replace(second[0], figures={"top1": Figure(0.25, is_share=True, count=4)})
    second[1] = replace(second[1], figures={"top1": Figure(0.5, is_share=True, count=4)})
    both = replace(made, rows=[*first, *second])
    assert rows_in(encode_json(both), Path("r.json")).rows[1].figures["top1"].change is not None
    alone = replace(made, rows=[first[1], *second])
    with pytest.raises(DataError, match="compared with 'cpu', which is not a row"):
        rows_in(encode_json(alone), Path("r.json"))
