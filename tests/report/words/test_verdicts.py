"""Verdicts in words."""

from __future__ import annotations

import msgspec
import pytest

from evaltools.gates.decide import Decision
from evaltools.report.words.gates import _REASONS, reason_in_words
from evaltools.report.words.verdicts import _OTHERS, _SENTENCES, change_in_words, outputs_in_words, reasons_in_words
from evaltools.result.verdict import Reason, Verdict

RUN = {"value": 0.02, "index": 7, "tolerance": 0.04}


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (
            [Reason("worst_run", RUN, {"explanation": "fp16", "kind": "real"})],
            "run 7 is worst, 0.02 relative RMS, no more than rounding to fp16 explains (0.04)",
        ),
        (
            [Reason("worst_run", RUN | {"value": 0.5}, {"explanation": "equivalent", "kind": "exact"})],
            "run 7 is worst, 0.5 of the less frequent elements differ, more than CPU kernels explain (0.04)",
        ),
        (
            [Reason("constant", {"value": 0}, {"side": "test"}), Reason("answers", {"changed": 3, "of": 20})],
            "the test's output is 0 everywhere, in every run; answers changed: 3 of 20",
        ),
        ([Reason("mean_iou", {"iou": 0.51234, "spread": None})], "mean iou iou 0.5123, spread no number"),
        ([Reason.of_text("no GPU here")], "no GPU here"),
        ([], ""),
    ],
)
def test_reasons_give_the_same_words_from_a_file(reasons: list[Reason], words: str) -> None:
    assert reasons_in_words(reasons) == words
    assert reasons_in_words(msgspec.json.decode(msgspec.json.encode(reasons), type=list[Reason])) == words


def test_what_a_result_does_not_say_is_left_out() -> None:
    known = Verdict("equivalent", "top1", change=0.001, low=-0.002, high=0.004)
    assert change_in_words(known) == "equivalent: +0.10 points [-0.20, +0.40]"
    assert change_in_words(Verdict("not decided", "ap", change=0.0)) == "not decided: +0.00 points"
    assert outputs_in_words(Verdict("bf16", "outputs", output="y")) == "within expected precision of bf16: y: "


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", [*_SENTENCES, *_OTHERS, "unknown"])
def test_a_reason_that_lacks_its_numbers_is_shown_as_it_is(kind: str, value: float | None) -> None:
    """A result may have been edited."""
    lacking = reasons_in_words([Reason(kind)])
    assert lacking
    numbers = dict.fromkeys(("value", "tolerance", "index", "elements", "test_nan", "at_most", "runs"), value)
    assert reasons_in_words([Reason(kind, numbers)])


@pytest.mark.parametrize("kind", [*_REASONS, "other_direction", "unknown"])
def test_a_reason_of_a_gate_that_lacks_its_names_is_shown_as_it_is(kind: str) -> None:
    assert reason_in_words(Decision("x", "top1 >= 0.7", "inconclusive", reason=Reason(kind)))
