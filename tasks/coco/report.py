"""How the figures are shown: the native tool's lines and protobuf, the table for a person, sections of a page."""

from __future__ import annotations

from evaltools.tasks.coco.native_lines import fill, lines
from evaltools.tasks.coco.page import sections
from evaltools.tasks.coco.table import print_figures
from evaltools.tasks.shared.next_steps import to_the_outputs as next_steps

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]
