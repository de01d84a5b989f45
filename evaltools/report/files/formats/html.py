"""A page in HTML: one file that needs no network and no script; what it says is what the page in Markdown says."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from evaltools.report.files.formats.page import page_of
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Section

PER_CONFIGURATION: Final = False
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
body { overflow-wrap: anywhere; }
div { overflow-x: auto; }
table { border-collapse: collapse; overflow-wrap: normal; }
th, td { border-bottom: 1px solid #8886; padding: .25rem .75rem; text-align: left; vertical-align: top; }
footer { color: GrayText; margin-top: 2rem; }
"""


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """UTF-8; every text of the result is escaped."""
    page = page_of(result)
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}</title>\n<style>{_STYLE}</style>",
        f"<h1>{escape(page.title)}</h1>",
        _list(f"<strong>{escape(name)}</strong>: {escape(text)}" for name, text in page.said),
        *map(_section, page.sections),
        "<h2>What ran</h2>",
        _list(f"{escape(name)}: {escape(text)}" for name, text in page.ran),
        _list(f"warning: {escape(warning)}" for warning in page.warnings),
        f"<footer>{escape(page.below)}</footer>\n</html>",
    ]
    return ("\n".join(part for part in parts if part) + "\n").encode(errors="replace")


def _list(items: Iterable[str]) -> str:
    lines = [f"<li>{item}</li>" for item in items]
    return "\n".join(["<ul>", *lines, "</ul>"]) if lines else ""


def _section(section: Section) -> str:
    rows = [_row("td", row) for row in section.rows]
    table = "\n".join(["<div><table>", _row("th", section.columns), *rows, "</table></div>"])
    below = f"\n<p>{escape(section.below)}</p>" if section.below else ""
    return f"<h2>{escape(section.title)}</h2>\n{table}{below}"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
