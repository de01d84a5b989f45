"""A suite on its page: the first screen says where to look next, and asks for nothing where all is right."""

from __future__ import annotations

from evaltools.report.content import Sources
from evaltools.report.screen.first import first_screen
from evaltools.result.metrics import figures_of
from evaltools.result.result import NEXT, Result, Row
from evaltools.result.section import Table, Word
from evaltools.result.verdict import Verdict
from tests.report.page.samples import read, suite


def table_of(made: Result) -> Table:
    (table,) = [block for block in first_screen({"s": made}).blocks if isinstance(block, Table)]
    return table


def steps(made: Result) -> list[str]:
    return [note.line for note in made.notes if note.of == NEXT]


def test_the_run_folder_is_that_of_the_command() -> None:
    (step,) = steps(suite("xnnpack", command=["evaltools", "suite", "--run_dir=my runs"]))
    assert step.startswith("evaltools report 'my runs/entries/1/r.json' --output=FILE.html")


def test_a_suite_in_which_all_is_right_says_how_to_keep_its_results_and_a_single_job_takes_no_column() -> None:
    made = suite("xnnpack")
    right = suite("xnnpack", made.rows[:1])
    assert [cell for row in table_of(right).rows for cell in row if isinstance(cell, Word)] == [
        Word("equivalent", "good")
    ]
    assert steps(right) == [
        "the same command with --run_dir=FOLDER keeps the result of each model, for evaltools report",
    ]
    one, several = ([head.text for head in read(Sources(results={"s": each})).all("th")] for each in (right, made))
    assert (one.count("job"), several.count("job")) == (0, 1)


def test_what_is_not_decided_has_its_reason() -> None:
    verdict = Verdict("not decided", "outputs", output="scores", texts=["all outputs are 0"])
    figures = figures_of({"failed_examples": 3})
    row = Row("fast", verdicts=[verdict], figures=figures, texts={"first_failure": "bad.jpg"})
    (note,) = [note.text for note in first_screen({"s": suite("m", [row])}).notes if note.of == "fast"]
    assert note == "3 runs failed: bad.jpg; not decided: all outputs are 0"
