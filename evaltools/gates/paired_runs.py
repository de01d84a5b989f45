"""Runs beside the same runs of the yardsticks: an input that is hard for every kernel is so on both sides.

Over all runs together, one such input would excuse what another run alone cannot be excused for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from evaltools.metrics.output_difference import RunDifference

ByRun = Mapping[int, RunDifference]
"""The runs of an output, by number."""
_SEVERAL_RUNS: Final = 3


class YardsticksByRun(Struct, frozen=True):
    """The runs of one output in CPU variants and in precisions, by the name of these."""

    floor: Mapping[str, ByRun]
    precisions: Mapping[str, ByRun]

    def at(self, run: int) -> list[RunDifference]:
        """What a run shows in every yardstick; empty where it is not among theirs."""
        return [by_run[run] for by_run in (*self.floor.values(), *self.precisions.values()) if run in by_run]


def blank_runs(found: ByRun, yardsticks: YardsticksByRun) -> list[int]:
    """The runs in which one side has the same number everywhere, and none of the yardsticks makes that of them."""
    return [
        run
        for run, difference in found.items()
        if difference.blank and (others := yardsticks.at(run)) and not any(other.blank for other in others)
    ]


def blank_block(found: ByRun, yardsticks: YardsticksByRun) -> tuple[int, int] | None:
    """A block that is blank whenever it differs, and the number of runs in which no yardstick makes it so.

    It takes three such runs. None where there is no such block.
    """
    changed = Counter(block for difference in found.values() for block in difference.changed)
    blank = Counter(block for difference in found.values() for block in difference.blank_blocks)
    alone = Counter(
        block
        for run, difference in found.items()
        if (others := yardsticks.at(run))
        for block in difference.blank_blocks.difference(*(other.blank_blocks for other in others))
    )
    blocks = [block for block, runs in alone.items() if runs >= _SEVERAL_RUNS and blank[block] == changed[block]]
    return max(((block, alone[block]) for block in blocks), key=lambda entry: entry[1], default=None)
