"""What a terminal shows of a search: steps in words, and long names with their middle left out."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.locate import print_answer, print_operators
from evaltools.locate.rows import ACCUMULATED, figures, operator_row
from evaltools.locate.words import suspect_lines
from evaltools.metrics.interval import Interval
from evaltools.operators.answer import Answer
from evaltools.result.result import Result, Row
from tests.locate import found
from tests.locate.bundle_cases import CPU, addition, case_of, result_of

LONG = "functional_1/block_13_expand/Conv2D;" * 3 + "functional_1/block_13_expand_relu/Relu6"


def shown(result: Result) -> str:
    console = Console(file=io.StringIO(), width=400)
    print_operators(found.concluded(result), console)
    print_answer(found.concluded(result), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return result_of(case_of(addition(), CPU, tmp_path))


def of(result: Result, *operators: Row, answer: Answer | None = None, parts: tuple[Row, ...] = ()) -> Result:
    """The same with other operators, and other parts of the configuration."""
    entry = replace(result.rows[0], rows=list(parts))
    return found.search(entry, result.models[0], result.environment, operators, answer)


def test_long_names_lose_their_middle_in_a_terminal_alone(result: Result) -> None:
    first = found.suspected(found.operator(0, "ADD", LONG, "wrong", (2.0, 0.5)), [])
    text = shown(of(result, first))
    assert LONG not in text
    short = re.search(r"#0 ADD -> '(.*)':", text)
    assert short is not None
    begin, _, end = short[1].partition("...")
    assert (len(short[1]), LONG.startswith(begin), LONG.endswith(end)) == (60, True, True)
    assert max(len(word) for word in text.split()) <= 60 + len("'':")
    assert repr(LONG) in "\n".join(suspect_lines(of(result, first)))


def test_of_many_operators_a_few_are_explained(result: Result) -> None:
    rows = [found.operator(number, "ADD", "sum", "wrong", (2.0, 0.5)) for number in range(9)]
    lines = suspect_lines(of(result, *(found.suspected(row, ["seen"]) for row in rows)))
    heads = [line for line in lines if line.startswith("#")]
    assert len(heads) == 9
    assert lines[-5:] == heads[-5:], "nothing stands between those that are not explained"


@pytest.mark.parametrize(("worst", "words"), [(1.0, "1 step"), (2.0, "2 steps"), (0.0, "0 steps")])
def test_one_step_is_no_steps(result: Result, worst: float, words: str) -> None:
    row = found.operator(1, "MUL", "product", "right", (worst, 0.5), unit="steps", size=0.5, tolerance=1.0)
    output = Row("total", "output", figures=found.errors(ACCUMULATED, worst, 0.5, "steps") | figures(explained=worst))
    text = shown(of(result, row, parts=(output,)))
    assert f"output 'total': off by up to {words}" in text
    assert f" {words} " in next(line for line in text.splitlines() if line.startswith("1  MUL "))


def test_what_the_answer_says_is_not_said_again_of_each_operator(result: Result) -> None:
    said = "the delegate found no GPU"
    refused = operator_row(0, "ADD", "sum", "refused by itself", said)
    other = operator_row(1, "MUL", "product", "refused by itself", "the delegate does not take it")
    text = shown(of(result, refused, other, answer=found.not_decided(said)))
    first, second = (line.rstrip() for line in text.splitlines() if line[:3] in ("0  ", "1  "))
    assert first.endswith("refused by itself, as the answer says")
    assert second.endswith("refused by itself: the delegate does not take it")
    assert text.count(said) == 1


def two_models(result: Result, count: int = 9, is_alone: bool = True) -> Result:
    """Of 9 layers 7 are worth keeping in float; one could not be tried."""
    pair = (0.5, 0.1)
    rows = [
        found.operator(number, "CONV_2D", f"tensor {number}", "compared", pair if is_alone else None, pair)
        for number in range(count)
    ]
    parts: tuple[Row, ...] = ()
    if is_alone:
        parts = (found.tried_in_float("'logits', 'boxes'", 20.0, 30, 9),)
        for place in range(8):
            rank, known = place + 1 if place < 7 else 0, Interval(0.5, 10.25)
            rows[place] = found.in_float(rows[place], 30.0 - place, 10.0 - place, rank, known)
    return of(result, *rows, answer=found.by_name("9 of 9 operators"), parts=parts)


def test_what_to_keep_in_float_is_listed_best_first(result: Result) -> None:
    lines = shown(two_models(result)).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("SQNR at"))
    assert lines[head] == (
        "SQNR at 'logits', 'boxes': 20.0 dB; keep these in float, best first (9 of 30 quantised layers tried, one at a "
        "time):"
    )
    assert lines[head + 1] == "  #0 CONV_2D -> 'tensor 0': 30.0 dB, 10.0 dB better (95 %: 0.5 to 10.2)"
    assert lines[head + 5].startswith("  #4 CONV_2D")
    assert lines[head + 6] == "  and 2 more, which gain less"


def test_warnings_about_two_models_come_first(result: Result) -> None:
    made = two_models(result)
    warned = found.search(
        made.rows[0], made.models[0], made.environment, made.rows[1:], found.by_name("9 of 9"), warnings=["coarse"]
    )
    text = shown(warned)
    assert text.splitlines()[0] == "warning: coarse"
    assert text.splitlines()[-1] == "coarse"


def test_columns_without_figures_are_left_out(result: Result) -> None:
    heading = shown(two_models(result)).splitlines()[0]
    columns = ["#", "operator", "tensor", "largest error", "SQNR", "single", "in float"]
    assert re.split("  +", heading.strip()) == columns
    text = shown(two_models(result, is_alone=False))
    assert re.split("  +", text.splitlines()[0].strip()) == columns[:-2]
