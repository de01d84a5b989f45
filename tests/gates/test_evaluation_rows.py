"""The rows of an evaluation."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.gates.evaluation_rows import rows_of_evaluation
from evaltools.result.verdict import Verdict
from tests.report.page import samples


def test_of_a_verdict_that_is_none_all_is_kept() -> None:
    result = samples.classifier()
    open_one = Verdict("not decided", "outputs", output="scores", texts=["all outputs are 0"])
    reference, test = result.configurations
    configurations = [reference, replace(test, verdicts=[open_one])]
    rows = rows_of_evaluation(replace(result, configurations=configurations))
    assert [row.verdict for row in rows] == [None, open_one]


def test_a_row_names_its_accuracy_and_says_why_the_first_example_failed() -> None:
    made = samples.classifier()
    rows = rows_of_evaluation(made)
    assert {row.texts["accuracy"] for row in rows} == {"top1"}
    assert {row.texts.get("first_failure") for row in rows} & {each.reason for each in made.failed}
