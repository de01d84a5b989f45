"""What a terminal shows of a search: steps in words, and long names with their middle left out."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.locate import print_answer, print_operators
from evaltools.locate.conclude import conclude
from evaltools.locate.findings import Answer, Errors, Findings, InFloat, KeepInFloat, Operator, OutputErrors
from evaltools.locate.words import suspect_lines
from evaltools.metrics.interval import Interval
from tests.locate.bundle_cases import CPU, addition, case_of, result_of

LONG = "functional_1/block_13_expand/Conv2D;" * 3 + "functional_1/block_13_expand_relu/Relu6"


def shown(result: Findings) -> str:
    console = Console(file=io.StringIO(), width=400)
    print_operators(conclude(result), console)
    print_answer(conclude(result), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture
def result(tmp_path: Path) -> Findings:
    found = result_of(case_of(addition(), CPU, tmp_path))
    operators = (replace(found.operators[0], tensor=LONG), *found.operators[1:])
    return replace(found, operators=operators, suspects=(replace(found.suspects[0], tensor=LONG),))


def test_long_names_lose_their_middle_in_a_terminal_alone(result: Findings) -> None:
    text = shown(result)
    assert LONG not in text
    short = re.search(r"#0 ADD -> '(.*)':", text)
    assert short is not None
    begin, _, end = short[1].partition("...")
    assert (len(short[1]), LONG.startswith(begin), LONG.endswith(end)) == (60, True, True)
    assert max(len(word) for word in text.split()) <= 60 + len("'':")
    assert repr(LONG) in "\n".join(suspect_lines(result))


def test_of_many_operators_a_few_are_named_and_explained(result: Findings) -> None:
    operators = tuple(replace(result.operators[0], index=number) for number in range(9))
    suspects = tuple(replace(result.suspects[0], first=number, last=number) for number in range(9))
    many = replace(result, operators=operators, suspects=suspects)
    heads = [line for line in suspect_lines(many) if line.startswith("#")]
    assert len(heads) == 9
    assert suspect_lines(many)[-5:] == heads[-5:], "nothing stands between those that are not explained"


@pytest.mark.parametrize(("worst", "words"), [(1.0, "1 step"), (2.0, "2 steps"), (0.0, "0 steps")])
def test_one_step_is_no_steps(result: Findings, worst: float, words: str) -> None:
    errors = Errors(worst=worst, median=worst, relative=0.5, runs=4, beyond=0)
    operator = replace(result.operators[1], unit="steps", local=errors, tolerance=1.0)
    output = OutputErrors("total", "steps", errors, 1.0, worst)
    text = shown(replace(result, operators=(result.operators[0], operator), outputs=(output,)))
    assert f"output 'total': off by up to {words}" in text
    assert f" {words} " in next(line for line in text.splitlines() if line.startswith("1  MUL "))


def test_what_the_answer_says_is_not_said_again_of_each_operator(result: Findings) -> None:
    said = "the delegate found no GPU"
    refused = tuple(replace(operator, status="refused by itself", reason=said) for operator in result.operators)
    other = replace(refused[1], reason="the delegate does not take it")
    answer = Answer("not decided", f"not decided: {said}")
    text = shown(replace(result, operators=(refused[0], other), suspects=(), outputs=(), answer=answer))
    first, second = (line.rstrip() for line in text.splitlines() if line[:3] in ("0  ", "1  "))
    assert first.endswith("refused by itself, as the answer says")
    assert second.endswith("refused by itself: the delegate does not take it")
    assert text.count(said) == 1


@pytest.fixture
def two_models(result: Findings) -> Findings:
    """Of 9 layers 7 are worth keeping in float; one could not be tried."""
    errors = Errors(worst=0.5, median=0.5, relative=0.1, runs=4, beyond=0)
    operators = tuple(
        Operator(number, "CONV_2D", f"tensor {number}", "absolute", "compared", local=errors, accumulated=errors)
        for number in range(9)
    )
    tried = [
        InFloat(each.index, each.name, each.tensor, 30.0 - each.index, 10.0 - each.index, Interval(0.5, 10.25))
        for each in operators[:8]
    ]
    failed = InFloat(8, "CONV_2D", "tensor 8", reason="CONV_2D keeps a state")
    keep = KeepInFloat(tuple(range(7)), ("logits", "boxes"), 20.0, 30, (*tried, failed))
    answer = Answer("compared by name", "compared by name: 9 of 9 operators")
    return replace(
        result, operators=operators, suspects=(), answer=answer, keep_in_float=keep, warnings=("coarse weights",)
    )


def test_what_to_keep_in_float_is_listed_best_first(two_models: Findings) -> None:
    lines = shown(two_models).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("SQNR at"))
    assert lines[head] == (
        "SQNR at 'logits', 'boxes': 20.0 dB; keep these in float, best first (9 of 30 quantised layers tried, one at a "
        "time):"
    )
    assert lines[head + 1] == "  #0 CONV_2D -> 'tensor 0': 30.0 dB, 10.0 dB better (95 %: 0.5 to 10.2)"
    assert lines[head + 5].startswith("  #4 CONV_2D")
    assert lines[head + 6] == "  and 2 more, which gain less"


def test_warnings_about_two_models_come_first(two_models: Findings) -> None:
    text = shown(two_models)
    assert text.splitlines()[0] == "warning: coarse weights"
    assert text.splitlines()[-1] == "coarse weights"


def test_columns_without_figures_are_left_out(two_models: Findings) -> None:
    heading = shown(two_models).splitlines()[1]
    columns = ["#", "operator", "tensor", "largest error", "SQNR", "single", "in float"]
    assert re.split("  +", heading.strip()) == columns
    bare = tuple(replace(operator, local=None) for operator in two_models.operators)
    text = shown(replace(two_models, operators=bare, keep_in_float=None, warnings=()))
    assert re.split("  +", text.splitlines()[0].strip()) == columns[:-2]
