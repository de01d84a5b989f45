"""Draws ``docs/sampling.svg`` from the table in ``docs/sampling.md``: examples until a limit is decided.

``python scripts/sample/draw_sampling.py``; needs matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "sampling.md"
TARGET: Final = ROOT / "docs" / "sampling.svg"
_LEADS: Final = ("100 %", "92 %", "67 %", "tell nothing", "mislead")
_COLUMNS: Final = 10


def table() -> list[list[str]]:
    """The rows without a drop: leads, flips, and numbers of examples."""
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in PAGE.read_text().splitlines()]
    return [row for row in rows if len(row) == _COLUMNS and row[2] == "0"]


def main() -> None:
    """Draw a line for each kind of leads."""
    matplotlib.rcParams.update({"svg.hashsalt": "evaltools", "font.size": 9})
    rows = table()
    figure, axes = pyplot.subplots(figsize=(7, 3.6), layout="constrained")
    start = next(float(row[5]) for row in rows if row[0] == "any")
    for leads in _LEADS:
        own = [(float(row[1].rstrip(" %")), float(row[5])) for row in rows if row[0] == leads]
        flips, examples = zip((0.0, start), *own, strict=True)
        label = f"{leads} of flips in the lowest tenth" if leads.endswith("%") else f"leads {leads}"
        axes.plot(flips, examples, marker="o", markersize=4, label=label)
    even = [(float(row[1].rstrip(" %")), float(row[4])) for row in rows if row[0] == "tell nothing"]
    axes.plot(*zip((0.0, start), *even, strict=True), "k--", linewidth=1, label="even chances")
    axes.set(xlabel="flips, % of all examples", ylabel="examples of 10 000", ylim=(0, None))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
