"""A page is bounded whatever a result gives, and says by how much."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.content import (
    LONGEST_TEXT,
    MOST_COLUMNS,
    MOST_FRAMES,
    MOST_LINES,
    MOST_ROWS,
    First,
    Sources,
    bounded_first,
    bounded_section,
)
from evaltools.result.result import Result
from evaltools.result.section import Frame, Gallery, Lines, Note, Picture, Section, Table
from tests.report.page.samples import classifier, read
from tests.results import result_with, row_with


def many(count: int) -> Result:
    """So many tests, of which the last one could not be measured, and as many warnings."""
    made = classifier([])
    first, test = made.rows
    same = replace(test.verdicts[0], kind="equivalent")
    tests = [replace(test, name=f"test {number}", verdicts=[same]) for number in range(count)]
    tests[-1] = row_with(tests[-1], status="not measured", reason="no Vulkan", runtime=None, latency=None)
    warnings = [f"warning {number}" for number in range(count)]
    return result_with(made, rows=[first, *tests], warnings=warnings)


def test_of_many_configurations_the_first_screen_has_a_row_each_and_charts_say_how_many_they_show() -> None:
    page = read(Sources({"r": many(60)}))
    assert len([row for row in page.all("tr") if "test 59" in row.text]) >= 1
    assert "no Vulkan" in page.source
    assert "12 of 60 warnings shown, all in the JSON result" in page.source
    assert "warning 11" in page.source
    assert "warning 12<" not in page.source
    labels = [svg.attributes["aria-label"] for svg in page.all("svg")]
    bounded_ones = [label for label in labels if "24 of " in label]
    assert [label.split(". ")[0] for label in bounded_ones] == [
        "Change of top-1 against reference",
        "Speed against the reference",
        "Nodes by who ran them",
    ]
    assert all("configurations shown, all in the JSON result" in label for label in bounded_ones)


def test_the_worst_notes_are_kept_and_all_keep_their_order() -> None:
    notes = [Note(str(place), f"x {place}", "bad" if place in (3, 40) else "good") for place in range(50)]
    found = bounded_first(First("", (), tuple(notes))).notes
    assert [note.of for note in found] == [*map(str, range(11)), "40", "and more"]


def test_blocks_from_anywhere_are_bounded_and_short_ones_stay_as_they_are() -> None:
    columns = [str(place) for place in range(30)]
    table = Table("t", columns, [columns] * 1000, "ties apart")
    section = bounded_section(Section("s", [table, Lines(["x" * 5000] * 100)]))
    cut, lines = section.blocks
    assert isinstance(cut, Table)
    assert isinstance(lines, Lines)
    assert (len(cut.rows), len(cut.columns), {len(row) for row in cut.rows}) == (MOST_ROWS, MOST_COLUMNS, {24})
    assert cut.below == (
        "ties apart. 200 of 1000 rows shown, all in the JSON result. 24 of 30 columns shown, all in the JSON result."
    )
    assert len(lines.lines) == MOST_LINES + 1
    assert lines.lines[-1] == "40 of 100 lines shown, all in the JSON result"
    assert {len(str(line)) for line in lines.lines[:-1]} == {LONGEST_TEXT}
    small = Section("s", [Table("t", ("a",), [["b"]], "c"), Lines(["x"])])
    assert bounded_section(small) == small


def test_a_command_is_never_cut() -> None:
    command = " ".join(["evaltools"] * 900)
    (table,) = bounded_section(Section("s", [Table("As it was run", (), [("command", command)])])).blocks
    assert isinstance(table, Table)
    assert table.rows[0][1] == command


def test_a_picture_has_as_many_boxes_as_can_be_distinguished() -> None:
    picture = Picture("", "a.png", "lost", "bad", ["right: cat"], [Frame((0, 0, 1, 1), "cat")] * 100)
    (gallery,) = bounded_section(Section("s", [Gallery("g", [picture])])).blocks
    assert isinstance(gallery, Gallery)
    assert len(gallery.pictures[0].frames) == MOST_FRAMES
    assert gallery.pictures[0].lines == ["right: cat", "24 of 100 boxes shown, all in the JSON result"]
