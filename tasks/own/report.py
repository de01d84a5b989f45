"""How the figures of a task of your own are shown: lines in the manner of the native tools, a table for a person."""

from __future__ import annotations

from evaltools.result.section import no_sections as sections
from evaltools.tasks.own.native_lines import fill, lines
from evaltools.tasks.own.table import print_figures
from evaltools.tasks.shared.next_step import to_the_outputs as next_step

__all__ = ["fill", "lines", "next_step", "print_figures", "sections"]
