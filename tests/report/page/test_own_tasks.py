"""Tasks of one's own on a page: with and without a reference, alone and several together."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.report.page.content.sources import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.own.definition import Better
from tests.report.page.reading import PageRead
from tests.report.page.samples import own, read


def lone(file: str, figure: float | None, better: Better = "higher") -> EvaluationResult:
    """One configuration and no reference; without a ``figure`` it was not measured."""
    made = own("own", "depth", better)
    entry = replace(made.configurations[1], name="x", verdicts=[], figures={"depth": figure})
    mean = replace(made.part.means[1], configuration="x", mean=figure or 0.0)
    if figure is None:
        entry = replace(entry, status="not measured", reason="no GPU", runtime=None, inference_latency=None, figures={})
    part = replace(made.part, means=[mean] if figure is not None else [], comparisons=[], scores=None, drawings=[])
    return replace(made, configurations=[entry], part=part, model=replace(made.model, file=file, sha256=file))


def cells(page: PageRead, row: str) -> list[list[str]]:
    """The cells of rows that begin so."""
    every = [element for element in page.elements if element.tag in ("th", "td") and "tbody" in element.inside]
    starts = [place for place, element in enumerate(every) if element.tag == "th"]
    ends = [*starts[1:], len(every)]
    found = [[each.text for each in every[start:end]] for start, end in zip(starts, ends, strict=True)]
    return [texts for texts in found if texts[0] == row]


@pytest.mark.parametrize(("better", "front"), [("higher", ["", "yes"]), ("lower", ["yes", ""])])
def test_without_a_reference_they_are_ranked_by_their_first_metric(better: Better, front: list[str]) -> None:
    results = {"a": lone("a.tflite", 0.25, better), "b": lone("b.tflite", 0.75, better), "c": lone("c.tflite", None)}
    page = read(Sources(results))
    assert [cells(page, name)[0][2:4] for name in "abc"] == [["x", "0.25"], ["x", "0.75"], ["x", "-"]]
    assert [cells(page, name)[0][-4] for name in "ab"] == front
    assert "Speed is against the reference" not in page.source
    said = [" ".join(each.text.split()) for each in page.of_class("saying")]
    assert "how gooddepth 0.25; 4 examples" in said[0]
    assert said[2].startswith("c: x not measured whyno GPU")
    assert page.left_open == []


def test_without_any_figure_they_are_told_all_the_same() -> None:
    sources = Sources({"a": lone("a.tflite", None), "b": lone("b.tflite", None)})
    assert [each.text for each in read(sources).of_class("said")] == ["not measured", "not measured"]
    assert "## All together: depth" in markdown_of(page_of(sources)).decode()


def test_examples_without_a_score_on_both_sides_are_left_out() -> None:
    page = read(Sources({"r": own("own", "gpu")}))
    assert "gpu: the examples that gpu loses most on" in page.source
    assert cells(page, "b") == []
