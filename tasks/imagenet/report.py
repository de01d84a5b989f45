"""How the figures are shown: the native tool's lines and protobuf, the table for a person, sections of a page."""

from __future__ import annotations

from evaltools.tasks.imagenet.changes import sections
from evaltools.tasks.imagenet.native_lines import fill, lines
from evaltools.tasks.imagenet.table import print_figures

__all__ = ["fill", "lines", "print_figures", "sections"]
