"""Reads a page back: what a browser would find in it, by the parser of the standard library."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any, Final

from msgspec import Struct

_EMPTY: Final = {"meta", "img", "rect", "br", "path", "line", "link", "input"}


class Element(Struct):
    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: tuple[str, ...] = ()
    """The tags around it, from the outermost."""
    source: str = ""
    """The name of the JSON result that it is from."""


class PageRead(HTMLParser):
    """All elements in their order, with the text that stands directly or indirectly inside."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.source: Final = content.decode()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(self.source)
        self.left_open: Final = [element.tag for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        around = self._open[-1].source if self._open else ""
        element = Element(
            tag, found, inside=tuple(each.tag for each in self._open), source=found.get("data-source", around)
        )
        self.elements.append(element)
        if tag not in _EMPTY:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append(Element(tag, found, inside=tuple(each.tag for each in self._open)))

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if self._open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def of_class(self, name: str) -> list[Element]:
        return [element for element in self.elements if name in element.attributes.get("class", "").split()]

    @property
    def headings(self) -> list[str]:
        return [element.text.strip() for element in self.elements if element.tag in ("h2", "h3", "h4")]

    @property
    def figures(self) -> dict[str, float]:
        """The values of cells by the path that they have in their JSON result."""
        return {path: value for of in self.figures_by_source.values() for path, value in of.items()}

    @property
    def figures_by_source(self) -> dict[str, dict[str, float]]:
        """The same, by the name of the JSON result."""
        found: dict[str, dict[str, float]] = {}
        for cell in (element for element in self.all("td") if "data-value" in element.attributes):
            if "data-path" in cell.attributes:
                of = found.setdefault(cell.source, {})
                of[cell.attributes["data-path"]] = float(cell.attributes["data-value"])
        return found

    @property
    def results(self) -> list[Any]:
        """The JSON results that the page offers for download."""
        return list(self.results_by_name.values())

    @property
    def results_by_name(self) -> dict[str, Any]:
        """The same, by name."""
        return {
            element.attributes["download"].removesuffix(".json.gz"): json.loads(
                gzip.decompress(base64.b64decode(element.attributes["href"].partition(",")[2]))
            )
            for element in self.all("a")
            if "download" in element.attributes
        }


_WHOLE: Final = {
    "h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "caption": "table: ", "figcaption": "figure: ", "dt": "  ",
    "dd": "    ", "li": "* ", "p": "",
}  # fmt: skip


def transcript(page: PageRead) -> str:
    """Every text of a page in its order, a line each; of a verdict its colour, of a table a line for each row."""
    lines: list[str] = []
    for element in page.elements:
        text, around = " ".join(element.text.split()), element.inside
        tone = [name for name in element.attributes.get("class", "").split() if name.startswith("tone-")]
        if element.tag == "tr":
            lines.append("")
        elif element.tag in ("th", "td"):
            lines[-1] += f"| {text} "
        elif "word" in element.attributes.get("class", "").split():
            marked = f"[{' '.join(tone)}]"
            lines[-1] = f"{lines[-1].rstrip()} {marked} " if "td" in around else f"{lines[-1]} {marked}"
        elif element.tag == "img":
            lines.append(f"picture: {element.attributes['alt']}")
        elif element.tag in ("span", "a") and "figcaption" in around:
            lines.append(f"  {text}")
        elif element.tag in _WHOLE and "nav" not in around and not _is_of_a_picture(element):
            lines.append(f"{_WHOLE[element.tag]}{text}")
    return "\n".join(line.rstrip() for line in lines)


def _is_of_a_picture(element: Element) -> bool:
    """Its texts are in elements of their own."""
    return "picture" in element.attributes.get("class", "") or (element.tag == "figcaption" and "li" in element.inside)


def at(document: Any, path: str) -> Any:
    """What stands at a path such as ``rows/1/figures/top1``, a JSON Pointer without its first slash."""
    for step in (each.replace("~1", "/").replace("~0", "~") for each in path.split("/")):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document
