"""The page about a task of one's own: what it draws of the most changed examples, and which lost most."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import evaltools as et
from evaltools.datasets import sample
from evaltools.report.content import Sources
from evaltools.result.json_file import encode_json
from evaltools.result.metrics import of_task
from evaltools.result.result import EXAMPLES, Result
from evaltools.result.section import Gallery, Number, Table
from evaltools.result_file import read_result, result_in
from evaltools.tasks.framework.figures import MOST_DRAWINGS, DrawnExample, WorstDrawings
from evaltools.tasks.framework.report import sections
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.tensors import Outputs
from tests.command import evaltools_here
from tests.report.page.reading import PageRead, at
from tests.report.page.samples import png, read
from tests.tasks.declared import SAMPLE
from tests.tasks.framework.task_files import write_task, write_values

HOSTILE = '"><script>alert(1)</script>\n{{7*7}}'


def drawing(changed: float, *panels: et.Panel, picture: str = "a.png") -> et.Drawing:
    return et.Drawing(changed, "2 pixels", picture, panels)


@et.task
def largest(images: Path) -> et.Task:
    """The largest score, and how far it moved."""

    def draw(outputs: Outputs, reference: Outputs, example: et.Example) -> et.Drawing:
        moved = abs(float(outputs.real(0).max() - reference.real(0).max()))
        return et.Drawing(moved, f"moved by {moved:g}", str(example.input), [et.Panel("test", png())])

    return et.Task(
        examples=et.pairs(images, None, num_images=3),
        prepare=et.image_input,
        score=lambda outputs, _target: {"score": float(outputs.real(0).max())},
        metrics=[et.mean("score")],
        draw=draw,
    )


@pytest.fixture(scope="module")
def measured() -> Result:
    return et.run(
        largest,
        sample.model_file("float32"),
        images=SAMPLE / "images",
        record_examples=True,
        tests={"fp16": "use_xnnpack=true xnnpack_force_fp16=true", "same": "kernels=builtin"},
    ).result


def test_a_run_keeps_what_its_task_drew_of_outputs_that_changed(measured: Result) -> None:
    scores = {entry.name: entry.figures["score"].scores for entry in measured.rows}
    moved = [abs((one or 0.0) - (two or 0.0)) for one, two in zip(scores["fp16"], scores["reference"], strict=True)]
    places = sorted(range(len(moved)), key=lambda place: -moved[place])
    (gallery,) = (block for each in measured.blocks for block in each.blocks if isinstance(block, Gallery))
    assert gallery.caption == "Pictures that fp16 changes most"
    assert [each.name for each in gallery.pictures] == [measured.tables[EXAMPLES]["example"][place] for place in places]
    page = read(Sources({"r": measured}))
    assert len([image for image in page.all("img") if image.attributes["alt"].startswith("test: ")]) == 3


def drawn_of(result: Result, drawn: DrawnExample) -> Result:
    """The result with nothing to show but this, of the configuration fp16."""
    task = largest(SAMPLE / "images")
    return replace(result, blocks=[each for each in sections(task, {}, {}, {"fp16": [drawn]}, {}) if each.blocks])


def page_with(result: Result, drawn: DrawnExample) -> PageRead:
    return read(Sources({"r": drawn_of(result, drawn)}))


def test_the_most_changed_are_kept_and_of_equal_ones_the_first() -> None:
    kept = WorstDrawings("0123456789a")
    changes = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 0.5]
    for index, changed in enumerate(changes):
        kept.add(index, ObservedScores((), (), drawing(changed)))
        kept.add(index, ObservedScores(()))
    assert [entry.example for entry in kept.found] == ["5", "7", "4", "8", "2", "0", "9", "6"]
    assert len(kept.found) == MOST_DRAWINGS


def test_panels_stand_beside_the_picture_or_over_it_and_survive_the_file(measured: Result) -> None:
    panels = (et.Panel("truth", png()), et.Panel("ring: reference", png((5, 5)), is_over=True))
    drawn = DrawnExample("a person 1", drawing(1.0, *panels))
    page = page_with(measured, drawn)
    assert {element.attributes["alt"] for element in page.all("img")} == {"truth: a.png", "ring: reference"}
    assert "Pictures that fp16 changes most" in page.headings
    assert "a person 1" in [line.text for line in page.of_class("line")]
    (section,) = result_in(encode_json(drawn_of(measured, drawn)), Path("result.json")).blocks
    (gallery,) = section.blocks
    assert isinstance(gallery, Gallery)
    assert gallery.pictures[0].panels[0].png == panels[0].png


def test_what_is_no_small_png_is_left_out_and_names_are_shown_as_text(measured: Result) -> None:
    bad = [et.Panel("bomb", png((300, 300))), et.Panel("text", b"<svg onload=alert(1)>"), et.Panel(HOSTILE, png())]
    page = page_with(measured, DrawnExample(HOSTILE, drawing(1.0, *bad, picture=HOSTILE)))
    (shown,) = page.all("img")
    assert shown.attributes["src"].startswith("data:image/png;base64,")
    assert len(page.all("script")) == 1
    assert page.left_open == []


def test_the_examples_that_lose_most_come_first(tmp_path: Path) -> None:
    task, values = write_task(tmp_path), write_values(tmp_path)
    model, saved = str(sample.model_file("float32")), tmp_path / "r.json"
    flags = (f"--values={values}", "--config=plain: kernels=reference", "--record_examples=true", f"--output={saved}")
    assert evaltools_here("run", f"{task}:brightness", model, *flags).code == 0
    result = read_result(saved)
    scores = {
        (row.name, metric): dict(zip(result.tables[EXAMPLES]["example"], figure.scores, strict=True))
        for row in result.rows
        for metric, figure in of_task(row).items()
    }
    tables = [block for section in result.blocks if section.place == "changes" for block in section.blocks]
    assert tables
    for table in tables:
        assert isinstance(table, Table)
        losses = []
        for name, before, after in table.rows:
            assert isinstance(before, Number)
            assert isinstance(after, Number)
            metric = table.caption.partition(":")[0]
            given = [scores[each, metric][str(name)] for each in ("reference", "plain")]
            assert [before.value, after.value] == given
            losses.append((after.value or 0.0) - (before.value or 0.0))
        assert losses == sorted(losses, reverse=True)
    page = read(Sources({"r": result}, saved={"r": saved.read_bytes()}))
    (offered,) = page.results
    assert page.figures == {path: at(offered, path) for path in page.figures}
    assert "Changes on the same examples" in [caption.text for caption in page.all("caption")]
