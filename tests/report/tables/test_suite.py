"""The table of a suite says of every configuration without a plain answer why."""

from __future__ import annotations

from msgspec.structs import replace
from rich.console import Console

from evaltools.gates.suite_result import SuiteEntry, SuiteRow
from evaltools.report.page.sections.suite import sections
from evaltools.report.tables.suite import print_suite
from evaltools.result.verdict import Reason, Verdict
from tests.report.page import samples

OPEN_VERDICT = Verdict("not decided", "outputs", output="scores", reasons=[Reason("all_zero")])
SAID = "fast (m): not decided: scores: all outputs are 0 everywhere"


def test_what_is_not_decided_has_its_reason() -> None:
    row = SuiteRow(
        "fast", "test", [], "measured", "bad.jpg", "not decided", not_decided=OPEN_VERDICT, failed_examples=3
    )
    entry = SuiteEntry("m", "m.tflite", "00", "diff", [], "done", result="r.json", rows=[row])
    result = replace(samples.suite("x"), entries=[entry], changes=None)
    console = Console(width=200, record=True)
    print_suite(result, console)
    (models,) = sections(result)
    for text in (console.export_text(), str(models)):
        assert SAID in text
        assert "fast (m): 3 runs failed: bad.jpg" in text
