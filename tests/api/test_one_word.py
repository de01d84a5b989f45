"""What became of a row is one word, wherever it stands: verdict, frame, CSV, table, sentence, chart."""

from __future__ import annotations

import csv
import io

import pytest
from msgspec.structs import replace

from evaltools.api.result import Result
from evaltools.gates.accuracy_verdict import in_words
from evaltools.report.files.rows import csv_of_rows
from evaltools.report.screen.answer import answer_of
from evaltools.report.screen.charts import changes
from evaltools.report.screen.rows import ModelRows
from evaltools.report.screen.table import summary_of
from evaltools.result.facts import FailedExample
from evaltools.result.result import Row
from evaltools.result.section import Tone, Word, text_of
from evaltools.result.verdict import Verdict
from tests.results import configuration, result, row_with

OPEN = Verdict("not decided", "top1", "reference", change=0.0, low=-0.1, high=0.1, margin=0.005)
SURE = Verdict("equivalent", "top1", "reference", change=0.0, low=-0.001, high=0.001, margin=0.005)
EVERY: dict[str, Row] = {
    "identical": replace(configuration("a"), verdicts=[in_words(OPEN, 20, identical=20)]),
    "unchanged": replace(configuration("a"), verdicts=[in_words(OPEN, 20, is_unchanged=True)]),
    "equivalent": replace(configuration("a"), verdicts=[in_words(SURE, 20)]),
    "not decided": replace(configuration("a"), verdicts=[in_words(OPEN, 20)]),
    "not clean": replace(configuration("a"), verdicts=[in_words(SURE, 20)], not_clean="it died"),
    "fell back": replace(configuration("a"), verdicts=[in_words(SURE, 20)], fallback="no GPU"),
}
TONES: dict[str, Tone] = {"identical": "good", "unchanged": "near", "equivalent": "good", "not decided": "open"}


@pytest.mark.parametrize("word", EVERY)
def test_verdict_frame_file_table_and_chart_have_one_word(word: str) -> None:
    pytest.importorskip("pandas")
    made = result(replace(configuration("reference", "reference"), delegates=[]), EVERY[word])
    asked = Result(made)
    verdict = asked["a"].verdict
    assert verdict is not None
    assert verdict.kind == word
    assert asked.to_dataframe().loc["a", "verdict"] == word
    assert [line["verdict"] for line in csv.DictReader(io.StringIO(csv_of_rows(made).decode()))] == ["", word]
    table = summary_of({"m": made})
    assert table is not None
    cell = table.rows[1][list(table.columns).index("verdict")]
    tone: Tone = TONES.get(word, "bad")
    assert (text_of(cell), cell) == (word, Word(word, tone))
    chart = changes(ModelRows.of({"m": made}))
    assert chart is not None
    assert [mark.tone for mark in chart.marks] == [tone]


def test_of_many_that_do_other_things_each_is_named_by_its_word() -> None:
    failing = replace(EVERY["equivalent"], name="e")
    others = [replace(EVERY[word], name=word) for word in ("not decided", "not clean", "fell back")]
    made = result(replace(configuration("reference", "reference"), delegates=[]), failing, *others)
    made = replace(made, failed=[FailedExample("0", "e", "inference", "lost")])
    assert answer_of({"m": made}) == (
        'Of 4 configurations: "e" and "not clean" not clean; "fell back" fell back; "not decided" not decided.'
    )


def test_what_was_not_measured_has_no_other_word() -> None:
    lost = row_with(configuration("a"), status="not measured", reason="no GPU", latency=None)
    asked = Result(result(configuration("reference", "reference"), lost))
    assert (asked["a"].facts["verdict"], asked["a"].verdict) == ("not measured", None)
