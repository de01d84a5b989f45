"""The first screen: a sentence that answers, and the table below it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.report.screen.answer import answer_of
from evaltools.report.screen.first import first_screen
from evaltools.report.screen.table import summary_of
from evaltools.report.words.next_steps import HOW_FAST
from evaltools.report.words.numbers import times_as_fast
from evaltools.result.facts import FailedExample
from evaltools.result.figure import Figure
from evaltools.result.result import Result, Row
from evaltools.result.section import Word
from evaltools.result.verdict import Verdict, VerdictKind
from tests.results import configuration, result, row_with


def judged(name: str, kind: VerdictKind, change: float = 0.0, **others: object) -> Row:
    verdict = Verdict(kind, "top1", "reference", change=change)
    return replace(configuration(name), verdicts=[verdict], **others)


def of(*tests: Row) -> dict[str, Result]:
    reference = replace(configuration("reference", "reference"), delegates=[])
    return {"m": result(reference, *tests)}


FELL_BACK = judged("d", "equivalent", fallback="no GPU")
CRASHED = judged("a", "equivalent", not_clean="crashed once")
FAILED = row_with(judged("a", "equivalent"), examples=4, failed_examples=1)
FAILURE = FailedExample("0", "a", "inference", "the GPU is lost")


@pytest.mark.parametrize(("entry", "failed"), [(FELL_BACK, []), (CRASHED, []), (FAILED, [FAILURE])])
def test_a_delegate_that_did_not_run_or_failed_is_never_a_good_word(entry: Row, failed: list[FailedExample]) -> None:
    table = summary_of({"m": replace(of(entry)["m"], failed=failed)})
    assert table is not None
    word = table.rows[1][list(table.columns).index("verdict")]
    assert isinstance(word, Word)
    assert word.tone == "bad"


def test_where_the_reference_does_not_run_it_is_said_what_runs_and_can_be_compared_with() -> None:
    ran = replace(configuration("xnnpack"), flags=["--use_xnnpack=true"])
    fp16 = replace(ran, name="fp16", flags=[*ran.flags, "--xnnpack_force_fp16=true"])
    reference = replace(configuration("reference", "reference"), status="not measured", reason="no op", runtime=None)
    steps = [step.line for step in first_screen({"m": result(reference, fp16, ran)}).steps]
    assert '--reference="use_xnnpack=true" compares with what runs: "xnnpack"' in steps


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (Figure(14.0), "about 0.071x"),
        (Figure(0.3, interval=Interval(0.25, 0.4)), "3.3x (2.5 to 4)"),
        (Figure(1.04, interval=Interval(1.0, 1.1)), "0.96x (0.91 to 1.00)"),
        (Figure(1 / 480, interval=Interval(1 / 500, 1 / 450)), "480x (450 to 500)"),
        (Figure(0.5, interval=Interval(0.1, 2.0)), "about 2x"),
    ],
)
def test_a_ratio_of_times_is_how_many_times_as_fast(ratio: Figure, words: str) -> None:
    assert times_as_fast(ratio) == words


def test_a_pass_within_a_precision_says_which_limit_it_met() -> None:
    judged_outputs = Verdict("fp16", "outputs", "reference", output="y", texts=["channel 5 of axis 0 is off by 0.1"])
    notes = first_screen(of(replace(configuration("a"), verdicts=[judged_outputs]))).notes
    (note,) = [note.text for note in notes if note.of == "a"]
    assert note.startswith("within expected precision of fp16: channel 5 of axis 0 is off by 0.1; ")


METRICS = ("iou", "margin", "error")


@pytest.mark.parametrize(
    ("kinds", "word", "sentence"),
    [
        (
            ("better", "worse", "equivalent"),
            Word("mixed", ""),
            '"a" is worse in "margin" by 0.2 and better in "iou" by 0.1',
        ),
        (("equivalent", "worse", "not decided"), Word("worse", "bad"), '"a" is worse in "margin" by 0.2'),
        (
            ("equivalent", "not decided", "not decided"),
            Word("not decided", "open"),
            'is not decided in "margin", "error"',
        ),
        (("equivalent", "better", "identical"), Word("better", "good"), '"a" is better in "margin" by 0.2'),
    ],
)
def test_a_row_of_several_metrics_is_what_the_worst_of_them_says(
    kinds: tuple[VerdictKind, ...], word: Word, sentence: str
) -> None:
    """A better one hides no worse one, and how many answers changed stands beside it."""
    verdicts = [
        Verdict(kind, metric, "reference", change=(place + 1) / 10, examples_needed=100 * place)
        for place, (kind, metric) in enumerate(zip(kinds, METRICS, strict=True))
    ]
    found = of(replace(configuration("a"), verdicts=verdicts, texts={"answers_changed": "3 of 4 answers changed"}))
    table = summary_of(found)
    assert table is not None
    assert table.rows[1][list(table.columns).index("verdict")] == word
    assert sentence in answer_of(found)
    assert "3 of 4 answers changed" in answer_of(found)


@pytest.mark.parametrize(
    ("emulator", "step"), [("QEMU 10", "--at=adb:SERIAL in place of the emulator"), ("", HOW_FAST)]
)
def test_after_a_clean_run_the_speed_is_next_and_of_an_emulator_a_phone(emulator: str, step: str) -> None:
    row = judged("a", "equivalent")
    assert row.runtime is not None
    row = replace(row, runtime=replace(row.runtime, emulator=emulator))
    (found,) = first_screen(of(row)).steps
    assert step in found.text
