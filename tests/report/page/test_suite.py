"""A suite on its page: the first screen says where to look next, and asks for nothing where all is right."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.page.content.sources import Sources
from evaltools.report.page.sections.suite import sayings
from tests.report.page.samples import read, suite


def test_the_run_folder_is_that_of_the_command_and_long_reasons_are_cut() -> None:
    made = suite("xnnpack " * 60)
    asked = replace(made, environment=replace(made.environment, command=["evaltools", "suite", "--run_dir=my runs"]))
    _, found, _ = sayings(asked)
    assert found.next_steps[0].startswith("evaltools report 'my runs/entries/1/r.json' --output=FILE.html")
    why = dict(found.facts)["why not"]
    assert why.endswith("xnnpack ...")
    assert len(why) <= 200


def test_a_suite_in_which_all_is_right_asks_for_nothing_and_a_single_job_takes_no_column() -> None:
    made = suite("xnnpack")
    right = replace(made, entries=made.entries[:1], changes=None)
    (found,) = sayings(right)
    assert (found.tone, found.next_steps) == ("good", ())
    one, several = ([head.text for head in read(Sources(suites={"s": each})).all("th")] for each in (right, made))
    assert (one.count("job"), several.count("job")) == (0, 1)
