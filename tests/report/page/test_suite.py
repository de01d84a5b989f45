"""A suite on its page: the first screen says where to look next, and asks for nothing where all is right."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.gates.suite_result import SuiteEntry
from evaltools.report.content import Sources
from evaltools.report.page.sections.suite import answer
from evaltools.result.result import Row
from evaltools.result.section import Lines, Note, Table, Word
from evaltools.result.verdict import Verdict
from tests.report.page.samples import read, suite


def test_the_run_folder_is_that_of_the_command() -> None:
    made = suite("xnnpack")
    asked = replace(made, environment=replace(made.environment, command=["evaltools", "suite", "--run_dir=my runs"]))
    (step,) = answer("s", asked).steps
    assert step.startswith("evaltools report 'my runs/entries/1/r.json' --output=FILE.html")


def test_a_suite_in_which_all_is_right_says_how_to_keep_its_results_and_a_single_job_takes_no_column() -> None:
    made = suite("xnnpack")
    right = replace(made, entries=made.entries[:1])
    found = answer("s", right)
    (table,) = [block for block in found.blocks if isinstance(block, Table)]
    assert [cell for row in table.rows for cell in row if isinstance(cell, Word)] == [Word("equivalent", "good")]
    assert found.steps == (
        "the same command with --run_dir=FOLDER keeps the result of each model, for evaltools report",
    )
    one, several = ([head.text for head in read(Sources(suites={"s": each})).all("th")] for each in (right, made))
    assert (one.count("job"), several.count("job")) == (0, 1)


def test_what_is_not_decided_has_its_reason() -> None:
    verdict = Verdict("not decided", "outputs", output="scores", texts=["all outputs are 0"])
    row = Row("fast", verdicts=[verdict], counts={"failed": 3}, texts={"first_failure": "bad.jpg"})
    entry = SuiteEntry("m", "m.tflite", "00", "diff", [], "done", result="r.json", rows=[row])
    found = answer("s", replace(suite("x"), entries=[entry]))
    (lines,) = [block.lines for block in found.blocks if isinstance(block, Lines)]
    reasons = {line.text for line in lines if isinstance(line, Note) and line.of == "fast (m)"}
    assert "3 runs failed: bad.jpg" in reasons
    assert any(reason.startswith("not decided: scores") for reason in reasons)
