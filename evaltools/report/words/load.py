"""Whether a machine was too busy for latencies to count, in words."""

from __future__ import annotations

from typing import Final

from evaltools.report.words.facts import counted
from evaltools.result.load import Load

BUSY: Final = 0.5
"""So many other processes for each core, on average, are mentioned."""
MUCH_STEAL: Final = 0.05
"""Of the time of all cores."""


def load_in_words(load: Load | None) -> str:
    """A short sentence where the load matters for latencies; empty where it does not, or is not known.

    >>> load_in_words(Load(2, 11.2, 1.4)), load_in_words(Load(2, 0.4, 0.2)), load_in_words(None)
    ('the machine was busy: 11 other processes on 2 cores', '', '')
    >>> load_in_words(Load(8, 0.2, 0.1, steal=0.12, throttled=3))
    'the machine was busy: its hypervisor gave 12 % of the time to others, heat slowed it down 3 times'
    """
    if load is None:
        return ""
    found = []
    if load.others is not None and load.others >= BUSY * load.cpu_count:
        others = counted(max(1, round(load.others)), "other process", "other processes")
        found.append(f"{others} on {counted(load.cpu_count, 'core')}")
    if load.steal is not None and load.steal >= MUCH_STEAL:
        found.append(f"its hypervisor gave {100 * load.steal:.0f} % of the time to others")
    if load.throttled:
        found.append(f"heat slowed it down {counted(load.throttled, 'time')}")
    return f"the machine was busy: {', '.join(found)}" if found else ""
