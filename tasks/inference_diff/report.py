"""How the figures of the task are shown: the native tool's lines and protobuf, the table for a person."""

from __future__ import annotations

from evaltools.tasks.inference_diff.native_lines import fill, lines
from evaltools.tasks.inference_diff.table import print_figures

__all__ = ["fill", "lines", "print_figures"]
