"""A suite on its page: the first screen answers what became of each configuration, and where to look next."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.page.content.sources import Sources
from evaltools.report.page.sections.suite import sayings
from tests.report.page.samples import read, suite


def test_the_first_screen_says_what_was_found_how_fast_what_ran_and_where_to_look() -> None:
    changed, found, failed = sayings(suite("xnnpack"))
    assert (changed.of, changed.tone) == ("what changed", "bad")
    assert (found.of, found.tone, found.said) == ("xnnpack", "bad", "1 equivalent, 1 worse, 1 not measured")
    assert found.facts == (
        ("how fast", "1.25x to 2.00x the speed of the reference"),
        ("did it run", "8 of 10 nodes on delegates; 1 of 3 not measured"),
        ("why not", "xnnpack"),
    )
    assert found.next_steps == (
        "evaltools report RUN_DIR/entries/1/r.json --output=FILE.html tells all about xnnpack1",
    )
    assert (failed.of, failed.said) == ("all", "1 failed")
    assert failed.facts == (("did it run", "1 of 1 not measured"), ("why not", "xnnpack"))


def test_the_run_folder_is_that_of_the_command_and_long_reasons_are_cut() -> None:
    made = suite("xnnpack " * 60)
    asked = replace(made, environment=replace(made.environment, command=["evaltools", "suite", "--run_dir=my runs"]))
    _, found, _ = sayings(asked)
    assert found.next_steps[0].startswith("evaltools report 'my runs/entries/1/r.json' --output=FILE.html tells all")
    (why,) = (answer for question, answer in found.facts if question == "why not")
    assert why.endswith("xnnpack ...")
    assert len(why) <= 200


def test_a_suite_in_which_all_is_right_asks_for_nothing() -> None:
    made = suite("xnnpack")
    (found,) = sayings(replace(made, entries=made.entries[:1], changes=None))
    assert (found.tone, found.next_steps) == ("good", ())
    assert found.facts == (
        ("how fast", "2.00x the speed of the reference"),
        ("did it run", "7 of 9 nodes on delegates"),
    )


def test_every_model_and_every_reason_is_on_the_page() -> None:
    page = read(Sources(suites={"suite": suite("xnnpack")}))
    assert [cell.text for cell in page.all("th") if cell.text.startswith("xnnpack")][:3] == [
        "xnnpack0", "xnnpack1", "xnnpack2"
    ]  # fmt: skip
    assert "the suite ended early: xnnpack" in page.source


def test_a_single_job_takes_no_column() -> None:
    made = suite("xnnpack")
    one_job = replace(made, entries=made.entries[:3])
    one, several = (
        [head.text for head in read(Sources(suites={"suite": each})).all("th")].count("job") for each in (one_job, made)
    )
    assert (one, several) == (1, 2)
