"""Tables on narrow terminals: names fold, numbers stay whole, what is least important is left out."""

from __future__ import annotations

import io

import pytest

from evaltools.cli.shared.terminal import make_console
from evaltools.report.page.rendering.terminal import folded, print_table
from evaltools.result.section import Number, Table

CHANGE = Number("-0.04449", -0.04449)
NAMES = ("mobilenet_v1_0.25_128_quant-xnnpack", "peak_memory_mb")


def printed(width: int, table: Table) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = width, False
    print_table(table, console)
    return text.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 45, 60, 200])
def test_a_number_is_never_cut(width: int) -> None:
    columns = ("configuration", "figure", "change", "now")
    table = Table("", columns, [(*NAMES, CHANGE, CHANGE)], names=2, ranks=(0, 0, 0, 0))
    lines = printed(width, table)
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split().count(CHANGE.text) == 2


@pytest.mark.parametrize(("ranks", "shown", "left_out"), [((), "change", "before"), ((0, 0, 2, 1), "before", "change")])
def test_columns_are_left_out_by_their_ranks_before_names_are_broken(
    ranks: tuple[int, ...], shown: str, left_out: str
) -> None:
    columns = ("configuration", "figure", "change", "before")
    lines = printed(47, Table("", columns, [(*NAMES, CHANGE, CHANGE)], names=2, ranks=ranks))
    assert lines[0].split() == ["configuration", "figure", shown]
    assert [line.split()[0] for line in lines[1:3]] == ["mobilenet_v1_0.25_", "128_quant-xnnpack"]
    assert lines[-1] == f"a wider terminal also shows: {left_out}"


def test_a_name_stands_in_the_first_of_its_rows() -> None:
    rows = [("a", "x", "1"), ("a", "y", "2"), ("b", "x", "3")]
    assert [line.split() for line in printed(80, Table("", ("model", "name", "n"), rows, names=2))[1:]] == [
        ["a", "x", "1"],
        ["y", "2"],
        ["b", "x", "3"],
    ]


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
