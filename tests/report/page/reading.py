"""Reads a page back: what a browser would find in it, by the parser of the standard library."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Final

_EMPTY: Final = {"meta", "img", "rect", "br", "path", "line", "link", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    inside: tuple[str, ...] = ()
    """The tags around it, from the outermost."""


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
        element = Element(tag, found, inside=tuple(each.tag for each in self._open))
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
        """The values of cells by the path that they have in the JSON result."""
        cells = [element.attributes for element in self.all("td") if "data-path" in element.attributes]
        return {cell["data-path"]: float(cell["data-value"]) for cell in cells if "data-value" in cell}

    @property
    def results(self) -> list[Any]:
        """The JSON results that the page offers for download."""
        found = [element.attributes["href"] for element in self.all("a") if "download" in element.attributes]
        return [json.loads(gzip.decompress(base64.b64decode(address.partition(",")[2]))) for address in found]


def at(document: Any, path: str) -> Any:
    """What stands at a path such as ``configurations/1/figures/top1``."""
    for step in path.split("/"):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document
