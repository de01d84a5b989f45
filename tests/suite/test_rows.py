"""What a suite keeps of a result."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.result.verdict import Verdict
from evaltools.suite.rows import rows_of_evaluation
from tests.report.page import samples


def test_of_a_verdict_that_is_none_all_is_kept() -> None:
    result = samples.classifier()
    open_one = Verdict("not decided", "outputs", output="scores", texts=["all outputs are 0"])
    reference, test = result.configurations
    configurations = [reference, replace(test, verdicts=[open_one])]
    rows = rows_of_evaluation(replace(result, configurations=configurations))
    assert [row.verdict for row in rows] == [None, open_one]
