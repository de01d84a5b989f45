"""How the figures are shown: the native tool's lines and protobuf, the table for a person, sections of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.native_lines import fill, lines
from evaltools.tasks.coco.table import print_figures
from evaltools.tasks.shared.conclusions import next_steps

if TYPE_CHECKING:
    from evaltools.result.section import Section

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.coco import page

    return page.sections(result)
