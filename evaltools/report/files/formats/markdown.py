"""A page in Markdown: what is said of each configuration, its figures, the task's own sections, what ran."""

from __future__ import annotations

from typing import Final

from evaltools.report.files.formats.page import page_of
from evaltools.report.words.markdown import escape, table
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Section

PER_CONFIGURATION: Final = False


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """UTF-8, without pictures, fit for a comment in a code review."""
    page = page_of(result)
    parts = [
        f"# {escape(page.title)}",
        "\n".join(f"* **{escape(name)}**: {escape(text)}" for name, text in page.said),
        *("\n\n".join(_section(section)) for section in page.sections),
        "## What ran",
        "\n".join(f"* {escape(name)}: {escape(text)}" for name, text in page.ran),
        "\n".join(f"* warning: {escape(warning)}" for warning in page.warnings),
        escape(page.below),
    ]
    return ("\n\n".join(part for part in parts if part) + "\n").encode(errors="replace")


def _section(section: Section) -> list[str]:
    rows = [list(map(escape, row)) for row in section.rows]
    below = [escape(section.below)] if section.below else []
    return [f"## {escape(section.title)}", table(list(map(escape, section.columns)), rows), *below]
