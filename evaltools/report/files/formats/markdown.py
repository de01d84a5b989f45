"""The first screen of the report in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.report.page.content.sources import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

PER_CONFIGURATION: Final = False


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """Answers and figures, without pictures."""
    return markdown_of(page_of(Sources({Path(result.model.file).stem: result})))
