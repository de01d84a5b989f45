"""Texts from elsewhere read in Markdown as they are: as another parser of Markdown finds them."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evaltools.report.page.rendering.markdown import escape, escape_line, table

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
NASTY = [
    "# heading", "## a #", "- item", "+ item", "* item", "1. first", "12) second", "= rule", "===", "---", "- - -",
    "***", "> quote", "a | b", "`code` and ``more`", "```", "~~~", "~~gone~~", "<b>bold</b>", "<!-- hidden",
    "&amp; &lt;", "[link](address)", "![picture](address)", "a_b_c and *d*", "\\ back\\slash \\*", "$math$", "a  b\nc",
    "-2.5 points", "#3 ADD", "@team", "xnnpack@10.0.0.9:5555", "[ ] to do", "=", "-", "#", "c#", "1.5 ms",
]  # fmt: skip


def text_in(tokens: list[Token]) -> str:
    """What a reader sees; comments are not seen."""
    return "".join(child.content for token in tokens for child in token.children or [] if child.type != "html_inline")


def kinds_in(markdown: str) -> list[str]:
    tokens = PARSER.parse(markdown)
    inner = [child.type for token in tokens for child in token.children or []]
    return [kind for kind in [*(token.type for token in tokens), *inner] if kind not in ("text", "text_special")]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("frame", ["{}", "* {}", "* **x**: y\n  * {}"])
def test_a_line_is_the_text_and_nothing_else(text: str, frame: str) -> None:
    written = frame.format(escape_line(text))
    plain = frame.format("plain")
    assert [kind for kind in kinds_in(written) if kind != "html_inline"] == kinds_in(plain)
    assert text_in(PARSER.parse(written)).endswith(" ".join(text.split()))


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("frame", ["## {}", "## a: {} (b)"])
def test_a_heading_is_the_text_and_nothing_else(text: str, frame: str) -> None:
    seen = text_in(PARSER.parse(frame.format(escape(text))))
    assert seen == frame.format(" ".join(text.split())).removeprefix("## ")


@pytest.mark.parametrize("text", NASTY)
def test_a_cell_is_the_text_and_nothing_else(text: str) -> None:
    tokens = PARSER.parse(table(["a", escape(text)], [[escape(text), "b"]]))
    cells = [text_in([token]) for token in tokens if token.type == "inline"]
    assert cells == ["a", " ".join(text.split()), " ".join(text.split()), "b"]


def test_hosts_of_code_find_no_mention_no_address_and_no_reference() -> None:
    """They look at runs of text, which a comment ends."""
    for text in ("@team is wrong", "see #12", "gpu@phone.local", "by (@someone)"):
        runs = re.split("<!-- -->", escape(text))
        assert not [run for run in runs if re.search(r"@\w|#\d", run)]
    assert escape("xnnpack@phone") == "xnnpack@phone"
