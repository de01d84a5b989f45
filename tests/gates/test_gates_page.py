"""docs/gates.md says of limits, numbers of pictures and the sample's file what is so."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evaltools.errors import UsageError
from evaltools.gates.criteria import parse_criterion
from evaltools.metrics.proportions import FEW_FLIPS, change_p, change_scores

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gates.md").read_text(encoding="utf-8")
QUANTILE_95 = 1.6448536269514722


def table(heading: str) -> list[list[str]]:
    """The cells of the rows below a heading row."""
    rows = PAGE.partition(f"\n{heading}\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert rows, heading
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def is_limit(text: str) -> bool:
    try:
        parse_criterion(text)
    except UsageError:
        return False
    return True


def test_limits_that_the_page_shows_can_be_read() -> None:
    good = "\n".join(line for line in PAGE.splitlines() if "is refused" not in line)
    shown = [text for text in re.findall(r"`([^`\n]+)`", good) if re.search(r"[<>]= [\d.]+", text)]
    assert len(shown) >= 10
    assert [text for text in shown if not is_limit(text)] == []


def test_so_many_pictures_decide_in_80_of_100_cases() -> None:
    """Drawn: Tango's score for a drop of the limit lies beyond the quantile, with few flips its exact probability."""
    limits = [0.0025, 0.005, 0.01, 0.02]
    rows = table("| flips | 0.25 points | 0.5 points | 1 point | 2 points |")
    assert len(rows) == 5
    chance = np.random.default_rng(9)
    for flips, *numbers in rows:
        share = 0.0 if flips == "none" else float(flips.removesuffix(" %")) / 100
        for limit, number in zip(limits, map(int, numbers), strict=True):
            lost, gained, _ = chance.multinomial(number, [share / 2, share / 2, 1 - share], 4000).T
            decided = np.abs(change_scores(number, lost, gained, -limit)) >= QUANTILE_95
            few = lost + gained < FEW_FLIPS
            drawn, places = np.unique(np.stack([lost[few], gained[few]]), axis=1, return_inverse=True)
            sides = (
                [change_p(number, drawn[0], drawn[1], -limit, above) <= 0.05 for above in (True, False)]
                if few.any()
                else [few]
            )
            decided[few] = np.any(sides, axis=0)[places.ravel()] if few.any() else False
            assert decided.mean() > 0.775
            assert number < 1500 or share == 0 or decided.mean() < 0.85


@pytest.mark.parametrize("line", (ROOT / "datasets/sample/gates.toml").read_text(encoding="utf-8").splitlines()[2:])
def test_the_file_of_the_sample_is_the_one_shown(line: str) -> None:
    assert f"\n{line}\n" in PAGE
