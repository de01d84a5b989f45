"""Tables on narrow terminals: names fold, numbers stay whole."""

from __future__ import annotations

import io

import pytest

from evaltools.cli.shared.terminal import make_console
from evaltools.report.tables.columns import Column, folded, print_columns, ranked

Row = tuple[str, str, str]
ROW = ("mobilenet_v1_0.25_128_quant-xnnpack", "peak_memory_mb", "-0.04449")
NAMES = [Column[Row]("configuration", lambda row: row[0]), Column[Row]("figure", lambda row: row[1])]


def printed(width: int, *columns: Column[Row]) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = width, False
    print_columns(NAMES, columns, [ROW], console)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 45, 60, 200])
def test_a_number_is_never_cut(width: int) -> None:
    lines = printed(width, Column("change", lambda row: row[2]), Column("now", lambda row: row[2]))
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split().count(ROW[2]) == 2


def test_columns_are_left_out_from_the_right_before_names_are_broken() -> None:
    columns = ranked([Column[Row]("change", lambda row: row[2]), Column[Row]("before", lambda row: row[2])])
    lines = printed(47, *columns)
    assert lines[0].split() == ["configuration", "figure", "change"]
    assert [line.split()[0] for line in lines[1:3]] == ["mobilenet_v1_0.25_", "128_quant-xnnpack"]
    assert lines[-1] == "a wider terminal also shows: before"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("a/long/path.tflite", 8, ["a/long/", "path.", "tflite"]),
        ("unbreakable", 4, ["unbr", "eaka", "ble"]),
        ("two words", 5, ["two", "words"]),
        ("-_-", 5, ["-_-"]),
        ("x [unclosed", 9, ["x", "[unclosed"]),
        ("top1 >= 85 % at 95 %", 18, ["top1 >= 85 % at", "95 %"]),
        ("", 3, [""]),
    ],
)
def test_a_name_breaks_at_blanks_then_at_its_own_marks(text: str, width: int, lines: list[str]) -> None:
    assert folded(text, width).split("\n") == lines
