"""A part of a page: what a task adds to the figures that all tasks have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaltools.result.evaluation import EvaluationResult


@dataclass(frozen=True)
class Section:
    """A heading, a table, and a line below it, empty for none."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    below: str = ""


def no_sections(_result: EvaluationResult) -> list[Section]:
    """For tasks whose figures say all."""
    return []
