"""The first screen: a sentence that answers, and the table below it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.report.screen.answer import answer_of
from evaltools.report.screen.first import first_screen
from evaltools.report.screen.table import summary_of
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


SAME, WORSE = judged("a", "equivalent"), judged("b", "worse", -0.021)
LOST = replace(judged("c", "equivalent"), status="not measured")
FELL_BACK = judged("d", "equivalent", fallback="no GPU")
OPEN = judged("e", "not decided")


@pytest.mark.parametrize(
    ("tests", "sentence"),
    [
        ([SAME], '"a" gives the same answers as the CPU.'),
        ([WORSE], '"b" is worse by 2.10 points.'),
        ([SAME, WORSE], '1 of 2 configurations gives the same answers as the CPU; "b" is worse by 2.10 points.'),
        (
            [WORSE, LOST],
            '"b" is worse by 2.10 points; "c" was not measured.',
        ),
        ([OPEN], 'Whether "e" gives the same answers as the CPU is not decided.'),
        (
            [OPEN, OPEN],
            "Whether 2 configurations give the same answers as the CPU is not decided.",
        ),
        ([WORSE, OPEN], '"b" is worse by 2.10 points; "e" is not decided.'),
        ([WORSE, OPEN, LOST], "Of 3 configurations: 1 worse, 1 not decided, 1 not measured."),
        ([WORSE, WORSE, WORSE], "None of 3 configurations give the same answers as the CPU; 3 worse."),
        ([FELL_BACK], '"d" fell back to the CPU.'),
        (
            [SAME, WORSE, LOST, FELL_BACK],
            "1 of 4 configurations gives the same answers as the CPU; 1 worse, 1 not measured, 1 fell back.",
        ),
        ([], '"reference": 4 examples, top-1 50.00 %; it was compared with nothing.'),
    ],
)
def test_the_sentence_says_who_does_the_same_job_and_what_the_others_do(tests: list[Row], sentence: str) -> None:
    assert answer_of(of(*tests)) == sentence


@pytest.mark.parametrize(
    ("kind", "failing", "sentence"),
    [
        (
            "equivalent",
            "a",
            '"a" gives the same answers as the CPU in 4 of 5 runs, and returned an error in 1.',
        ),
        ("diverged", "a", '"a" diverged from the CPU in 4 of 5 runs, and returned an error in 1.'),
        (
            "equivalent",
            "reference",
            '"a" gives the same answers as the CPU; the reference "reference" returned an error in 1 of 5 runs.',
        ),
    ],
)
def test_runs_that_returned_an_error_are_in_the_sentence_and_no_clean_row(
    kind: VerdictKind, failing: str, sentence: str
) -> None:
    entry = row_with(judged("a", kind), examples=4, failed_examples=1)
    found = {"m": replace(of(entry)["m"], failed=[FailedExample("0", failing, "inference", "the GPU is lost")])}
    reference, *others = found["m"].rows
    found["m"] = replace(found["m"], rows=[row_with(reference, examples=4, failed_examples=1), *others])
    assert answer_of(found) == sentence
    table = summary_of(found)
    assert table is not None
    is_clean = failing == "reference"
    assert (Word("not clean", "bad") in table.rows[1]) != is_clean


def test_answers_of_which_none_changed_are_the_same_as_far_as_was_seen() -> None:
    verdict = Verdict("identical", "top1", "reference", change=0.0)
    found = of(row_with(configuration("a"), verdicts=[verdict], examples=20))
    assert answer_of(found) == '"a" gives the same answers as the CPU on 20 examples.'
    table = summary_of(found)
    assert table is not None
    assert table.rows[1][list(table.columns).index("verdict")] == Word("identical", "good")


def test_what_returned_errors_is_in_the_sentence_though_nothing_was_judged() -> None:
    entry = row_with(configuration("a"), examples=45, failed_examples=5)
    failed = [FailedExample(str(number), "a", "inference", "lost") for number in range(5)]
    assert answer_of({"m": replace(result(entry), failed=failed)}) == (
        '"a": 45 examples, top-1 50.00 %; it returned an error in 5 of 50 runs; it was compared with nothing.'
    )
    both = replace(result(entry, configuration("b")), failed=failed)
    assert answer_of({"m": both}) == (
        '1 configuration measured, compared with nothing; "a" returned an error in 5 of 50 runs.'
    )


def test_where_the_reference_does_not_run_it_is_said_what_was_not_compared_and_with_what_it_could_be() -> None:
    ran = replace(configuration("xnnpack"), flags=["--use_xnnpack=true"])
    fp16 = replace(ran, name="fp16", flags=[*ran.flags, "--xnnpack_force_fp16=true"])
    gone = replace(configuration("gpu"), status="not measured", reason="no GPU", runtime=None)
    reference = replace(configuration("reference", "reference"), status="not measured", reason="no op", runtime=None)
    found = result(reference, fp16, ran, gone)
    assert answer_of({"m": found}) == ('Nothing was compared, as "reference" was not measured; "gpu" was not measured.')
    steps = [step.line for step in first_screen({"m": found}).steps]
    assert '--reference="use_xnnpack=true" compares with what runs: "xnnpack"' in steps
    assert answer_of({"m": result(reference, gone)}) == '"gpu" was not measured.'


def test_a_delegate_that_did_not_run_is_never_a_good_word() -> None:
    for entry in (FELL_BACK, replace(SAME, not_clean="crashed once")):
        table = summary_of(of(entry))
        assert table is not None
        word = table.rows[1][list(table.columns).index("verdict")]
        assert isinstance(word, Word)
        assert word.tone == "bad"


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


def test_where_answers_changed_it_does_the_same_job() -> None:
    """Of 50 best classes 3 are others, and the verdict is that it does not matter."""
    shares = {"a": 0.94, "b": 1.0}
    rows = [replace(judged(name, "equivalent"), figures=configuration(name).figures) for name in shares]
    others = [replace(row, figures=row.figures | {"same_best": share_of(shares[row.name])}) for row in rows]
    assert answer_of(of(others[0])) == '"a" does the same job as the CPU.'
    assert answer_of(of(others[1])) == '"b" gives the same answers as the CPU.'
    assert answer_of(of(*others)) == "2 of 2 configurations do the same job as the CPU."


def share_of(value: float) -> Figure:
    return Figure(value, better="higher", is_share=True)


def test_a_pass_within_a_precision_says_which_limit_it_met() -> None:
    judged_outputs = Verdict("fp16", "outputs", "reference", output="y", texts=["channel 5 of axis 0 is off by 0.1"])
    notes = first_screen(of(replace(configuration("a"), verdicts=[judged_outputs]))).notes
    assert "within expected precision of fp16: channel 5 of axis 0 is off by 0.1" in [note.text for note in notes]
