"""The drawings of a configuration that its result keeps."""

from __future__ import annotations

import heapq
from typing import Final

from evaltools.engine.task import Example
from evaltools.tasks.own.result import DrawnExample
from evaltools.tasks.own.task import ObservedScores

MOST_DRAWINGS: Final = 8
"""Of each configuration."""


class WorstDrawings:
    """Collects the drawings of the examples that a configuration changes most; those of others are let go."""

    def __init__(self, configuration: str) -> None:
        self._configuration = configuration
        self._kept: list[tuple[float, int, DrawnExample]] = []

    def add(self, example: Example, observation: ObservedScores) -> None:
        """Add what was observed of one example."""
        drawing = observation.drawing
        if drawing is not None:
            entry = (drawing.changed, -example.index, DrawnExample(self._configuration, example.id, drawing))
            heapq.heappush(self._kept, entry)
            if len(self._kept) > MOST_DRAWINGS:
                heapq.heappop(self._kept)

    @property
    def found(self) -> list[DrawnExample]:
        """Those kept, the most changed first, else in the order of the examples."""
        return [entry for _, _, entry in sorted(self._kept, reverse=True)]
