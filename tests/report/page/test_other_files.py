"""Files that lie elsewhere: pictures are looked for where they were and beside the result, traces are linked."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.report.content import Sources
from evaltools.report.page.file import page_file, read_sources
from evaltools.report.page.rendering.other_files import linked
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from evaltools.result.section import Linked
from tests.report.page.reading import PageRead
from tests.report.page.samples import changed, classifier


def run_in(folder: Path, trace: str = "") -> Result:
    made = classifier(changed(1), folder="pictures")
    return replace(made, environment=replace(made.environment, folder=str(folder), trace=trace))


def page_in(folder: Path, *results: Path) -> PageRead:
    return PageRead(page_file(read_sources(results), folder / "page.html"))


@pytest.mark.parametrize("place", ["where the command was given", "beside the result"])
def test_relative_pictures_are_looked_for_where_they_were_meant(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, kept, here = (tmp_path / name for name in ("ran", "kept", "here"))
    for folder in (ran, kept, here):
        folder.mkdir()
    (kept / "r.json").write_bytes(encode_json(run_in(ran)))
    (here / "pictures").mkdir()
    Image.new("RGB", (9, 9)).save(here / "pictures" / "0.jpg")
    monkeypatch.chdir(here)
    assert page_in(here, kept / "r.json").all("img") == [], "another folder of that name is no place to look"
    pictures = (ran if place == "where the command was given" else kept) / "pictures"
    pictures.mkdir()
    Image.new("RGB", (6, 5)).save(pictures / "0.jpg")
    (found,) = page_in(here, kept / "r.json").all("img")
    assert found.attributes["width"] == "6"


def test_a_trace_is_linked_as_seen_from_the_page_with_its_size(tmp_path: Path) -> None:
    ran, pages = tmp_path / "ran", tmp_path / "some pages"
    for folder in (ran / "traces", pages):
        folder.mkdir(parents=True)
    name = 'traces/javascript: a "b" #1.json'
    (ran / name).write_bytes(b"x" * 1_230_000)
    sources = Sources({"r": run_in(ran, trace=name)})
    page = PageRead(page_file(sources, pages / "page.html"))
    (link,) = [each for each in page.all("a") if each.text == name]
    address = link.attributes["href"]
    assert address.startswith("./../ran/traces/javascript%3A")
    assert os.path.samefile(pages / unquote(address), ran / name)
    row = next(each.text for each in page.all("tr") if name in each.text)
    assert "1.23 MB" in row
    assert "ui.perfetto.dev (open trace file)" in row
    (ran / name).unlink()
    gone = PageRead(page_file(sources, pages / "page.html"))
    assert "not found any more" in next(each.text for each in gone.all("tr") if name in each.text)
    assert not [each for each in gone.all("a") if each.text == name]


def test_what_no_file_can_be_called_has_no_link(tmp_path: Path) -> None:
    for name in ("a\0b", "x" * 9000, ".", "gone"):
        assert linked(Linked(name, ""), [tmp_path], tmp_path).address == ""
