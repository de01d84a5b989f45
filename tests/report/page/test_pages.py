"""A page says what the JSON results say, in the order of questions, and nothing of what these lack."""

from __future__ import annotations

import itertools
import re
from functools import cache

import pytest

from tests.report.page.pages import FOLDER, KEPT, PAGES, kept, shown
from tests.report.page.reading import PageRead, at
from tests.report.page.samples import read

FEWEST = {"classifier": 45, "imagenet": 30, "diff": 15, "coco": 40, "searches": 20, "slashes": 60, "benchmark": 20}
"""How many figures of the result are on a page, at least."""


@pytest.mark.parametrize("name", KEPT)
def test_the_page_is_the_kept_one(name: str) -> None:
    """``python -m tests.report.page.pages`` writes them anew."""
    assert shown(name) == kept(name).read_text()


def test_no_page_is_left_behind() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {kept(name).name for name in KEPT}


@cache
def page_of(name: str) -> PageRead:
    return read(PAGES[name]())


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_on_the_page_is_that_of_the_result_it_offers(name: str) -> None:
    page = page_of(name)
    found = page.figures_by_source
    assert found.keys() <= page.results_by_name.keys()
    for source, figures in found.items():
        assert figures == {path: at(page.results_by_name[source], path) for path in figures}
    assert sum(map(len, found.values())) >= FEWEST.get(name, 0)


@pytest.mark.parametrize("name", PAGES)
def test_the_page_can_be_read_without_seeing_it(name: str) -> None:
    """Headings skip no level, charts say their figures, tables have captions, links within the page lead somewhere."""
    page = page_of(name)
    assert page.source.lstrip().startswith("<!doctype html>")
    assert page.all("html")[0].attributes == {"lang": "en"}
    assert page.all("title")[0].text == page.all("h1")[0].text
    levels = [int(each.tag[1]) for each in page.elements if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    charts = [each.attributes for each in page.all("svg") if "aria-hidden" not in each.attributes]
    texts = [each.text for tag in ("p", "li") for each in page.all(tag) if "figure" in each.inside]
    assert [chart["role"] for chart in charts] == ["img"] * len(charts)
    labels = [chart["aria-label"] for chart in charts]
    assert [label for label in labels if not re.search(r"\d", label)] == []
    assert [text for text in texts if not any(text in label for label in labels)] == []
    assert len(page.all("caption")) == len(page.all("table"))
    ids = [each.attributes["id"] for each in page.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    links = [each.attributes["href"] for each in page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert page.left_open == []
